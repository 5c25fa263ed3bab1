//! More connections than there is room for.

use tokio::{
    io::AsyncReadExt,
    net::{TcpSocket, TcpStream},
};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use wire::ServeOptions;

use crate::scene::*;

const PLACES: usize = 20;

fn few() -> ServeOptions {
    ServeOptions::default().at_most(PLACES)
}

/// A connection whose client never says a word.
async fn mute(to: std::net::SocketAddr) -> TcpStream {
    TcpSocket::new_v4().unwrap().connect(to).await.unwrap()
}

#[tokio::test]
async fn the_silent_connections_of_one_client_make_room_for_those_who_call() {
    let (address, _) = start_with(few());
    let caller = connect_from([127, 0, 0, 2], address, 1 << 20).await;
    let mut client = caller.clone().ready().await.unwrap();
    let (waiting, mut sending) = client.send_request(request(EVALUATE, &[]), false).unwrap();
    sending.send_data(evaluate("wait", 10), true).unwrap();
    assert!(is_healthy(&caller).await);
    let mut silent = Vec::new();
    for _ in 0..5 * PLACES {
        silent.push(mute(address).await);
    }
    // They are closed at once, long before they would be for saying nothing: the first of them first.
    let mut said = Vec::new();
    let first = silent[0].read_to_end(&mut said);
    let _ = tokio::time::timeout(PATIENCE, first).await.unwrap();
    for source in 3..10 {
        let other = connect_from([127, 0, 0, source], address, 1 << 20).await;
        assert_eq!(call(&other, &[], evaluate("x", 10)).await.code(), Code::Ok);
    }
    // Who has a call under way keeps its connection.
    assert!(is_healthy(&caller).await);
    drop((waiting, sending));
}

#[tokio::test]
async fn who_has_few_connections_keeps_them_while_another_has_most() {
    let (address, _) = start_with(few());
    let mut silent = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..PLACES / 3 {
        for _ in 0..PLACES {
            silent.push(mute(address).await);
        }
        let client = connect_from([127, 0, 0, 2], address, 1 << 20).await;
        assert!(is_healthy(&client).await);
        clients.push(client);
    }
    // Idle as they are.
    for client in &clients {
        assert!(is_healthy(client).await);
    }
}

#[tokio::test]
async fn one_client_does_not_take_all_connections_whatever_it_does_with_them() {
    let (address, _) = start_with(few());
    let mut watching = Vec::new();
    let mut refused = 0;
    for _ in 0..2 * PLACES {
        let stream = mute(address).await;
        let Ok((client, connection)) = h2::client::handshake(stream).await else {
            refused += 1;
            continue;
        };
        let connection = tokio::spawn(connection);
        let body = framed(&HealthCheckRequest { service: String::new() });
        let Ok(mut ready) = client.clone().ready().await else {
            refused += 1;
            continue;
        };
        let Ok((answer, mut sending)) = ready.send_request(request(WATCH, &[]), false) else {
            refused += 1;
            continue;
        };
        let _ = sending.send_data(body, true);
        match answer.await {
            Ok(answer) => watching.push((answer, sending, connection)),
            Err(_) => refused += 1,
        }
    }
    assert!(watching.len() >= PLACES / 2 && refused >= PLACES, "{} watch", watching.len());
    let other = connect_from([127, 0, 0, 2], address, 1 << 20).await;
    assert!(is_healthy(&other).await);
    // Those that are there stay.
    assert!(watching.iter().all(|(_, _, connection)| !connection.is_finished()));
}
