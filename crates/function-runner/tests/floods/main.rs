//! Floods of every kind against the service in a control group of 256 MiB, while another client's calls and health
//! checks are all answered. Needs root and a memory controller.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]
#![allow(clippy::print_stdout, reason = "the figures are told")]

#[path = "../common/mod.rs"]
mod common;
mod frames;
mod group;
mod other;

use std::net::SocketAddr;

use bytes::Bytes;
use common::{EMPTY, image, runner, within_patience};
use futures::future::join_all;
use group::Group;
use h2::client::SendRequest;
use other::OtherClient;
use testing::{Functions, Server};
use tokio::net::TcpStream;

const MIB: usize = 1024 * 1024;

/// A service in a group of 256 MiB, and another client that calls it all the time.
struct Scene {
    server: Server,
    group: Group,
    _functions: Functions,
}

impl Scene {
    fn start() -> Self {
        let group = Group::new(256 * MIB);
        let functions = Functions::new()
            .with_script("echo", "cat")
            .with_script(
                "large",
                &format!("cat <<'END'\n{EMPTY}END\nprintf '# '; head -c 3000000 /dev/zero | tr '\\0' x"),
            )
            .with_script("slow", "sleep 2; cat");
        let server = runner(&functions)
            .flags(["--builtin-functions=all", "--max-concurrent-executions=2"])
            .under(group.launcher())
            .start();
        Self { server, group, _functions: functions }
    }

    fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.server.port()).into()
    }

    /// Runs a flood while the other client calls, and tells what it saw.
    async fn flood(&self, name: &str, flood: impl Future<Output = String>) {
        let other = OtherClient::start(self.server.port()).await;
        let seen = flood.await;
        let told = other.finish().await;
        println!("{name}: {seen}; the other client: {told}; {}", self.group.figures());
        assert_eq!(self.group.kills(), 0, "{name}: the kernel killed a process\n{}", self.server.log());
    }
}

/// A connection that takes answers only as far as `window` bytes each.
async fn connect(address: SocketAddr, window: u32) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (client, connection) = h2::client::Builder::new()
        .initial_window_size(window)
        .initial_max_send_streams(1000)
        .handshake(stream)
        .await
        .unwrap();
    // It may end as it likes: the service may well close it.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    client
}

/// Begins a call, and sends `body` of it as far as the service takes it.
async fn begin(
    client: &SendRequest<Bytes>,
    body: Bytes,
    end: bool,
) -> Option<(h2::client::ResponseFuture, h2::SendStream<Bytes>)> {
    let request = http::Request::post("http://service/evaluator.FunctionEvaluator/EvaluateFunction")
        .header("content-type", "application/grpc")
        .header("grpc-encoding", if body.first() == Some(&1) { "gzip" } else { "identity" })
        .body(())
        .unwrap();
    let mut client = client.clone().ready().await.ok()?;
    let (answer, mut sending) = client.send_request(request, false).ok()?;
    sending.send_data(body, end).ok()?;
    Some((answer, sending))
}

/// A request for the function `name` over a list of so many bytes.
fn request(name: &str, bytes: usize) -> Bytes {
    let list = format!("{EMPTY}# {}\n", "x".repeat(bytes));
    frames::message(&[(1, list.as_bytes()), (2, image(name).as_bytes())])
}

/// A request for a built-in function on a list with one long list of values.
fn list_request(name: &str, values: &str) -> Bytes {
    let list = format!(
        "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig: {{apiVersion: v1, kind: ConfigMap, \
         metadata: {{name: c}}, data: {{a: b}}}}\nitems:\n- {{apiVersion: v1, kind: A, metadata: {{name: x}}, spec: \
         [{values}]}}\n"
    );
    let image = format!("gcr.io/kpt-fn/{name}:v1");
    frames::message(&[(1, list.as_bytes()), (2, image.as_bytes())])
}

/// Of calls that have begun, how many were answered with what.
async fn answers(
    calls: impl IntoIterator<Item = Option<(h2::client::ResponseFuture, h2::SendStream<Bytes>)>>,
) -> (Vec<http::Response<h2::RecvStream>>, String) {
    let calls = calls.into_iter().flatten().map(async |(answer, _sending)| {
        tokio::time::timeout(std::time::Duration::from_secs(20), answer).await
    });
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    let mut kept = Vec::new();
    for answer in join_all(calls).await {
        let what = match answer {
            Err(_) => "no answer yet".to_owned(),
            Ok(Err(_)) => "reset".to_owned(),
            Ok(Ok(answer)) => {
                let code = answer.headers().get("grpc-status").map(|code| code.to_str().unwrap().to_owned());
                kept.push(answer);
                code.map_or_else(|| "a body".to_owned(), |code| format!("status {code}"))
            }
        };
        *counts.entry(what).or_default() += 1;
    }
    (kept, format!("{counts:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_survives_floods_and_answers_others() {
    let scene = Scene::start();
    let address = scene.address();

    scene
        .flood("endless bodies, one connection", async {
            let client = connect(address, 65_535).await;
            // Announced as 6 MiB, and nearly all of it sent.
            let body = Bytes::from([&frames::prefix(6 * MIB)[..], &vec![b'x'; 5 * MIB]].concat());
            let calls = join_all((0..120).map(|_| begin(&client, body.clone(), false))).await;
            answers(calls).await.1
        })
        .await;

    scene
        .flood("endless bodies, many connections", async {
            let body = Bytes::from([&frames::prefix(6 * MIB)[..], &vec![b'x'; MIB]].concat());
            let clients = join_all((0..100).map(|_| connect(address, 65_535))).await;
            let calls = clients.iter().map(|client| begin(client, body.clone(), false));
            answers(join_all(calls).await).await.1
        })
        .await;

    scene
        .flood("answers that nobody reads", async {
            let client = connect(address, 0).await;
            let calls = join_all((0..200).map(|_| begin(&client, request("large", 4000), true))).await;
            let (unread, told) = answers(calls).await;
            drop(unread);
            told
        })
        .await;

    scene
        .flood("waiting calls", async {
            let client = connect(address, 65_535).await;
            let body = request("slow", 5 * MIB);
            let calls = join_all((0..150).map(|_| begin(&client, body.clone(), true))).await;
            answers(calls).await.1
        })
        .await;

    scene
        .flood("lists of nothing but small values", async {
            let client = connect(address, 65_535).await;
            let body = list_request("set-labels", &"a,".repeat(2_900_000));
            answers(join_all((0..8).map(|_| begin(&client, body.clone(), true))).await).await.1
        })
        .await;

    scene
        .flood("compressed bodies", async {
            let client = connect(address, 65_535).await;
            let mut body = frames::prefix(MIB);
            body[0] = 1;
            let body = Bytes::from([&body[..], &vec![0x1f; MIB]].concat());
            answers(join_all((0..200).map(|_| begin(&client, body.clone(), true))).await).await.1
        })
        .await;

    for (name, frames) in frames::floods() {
        scene.flood(name, async { frames::send(address, 20, frames).await }).await;
    }

    scene
        .flood("connections", async {
            let halves = join_all((0..600).map(|_| frames::half_a_frame(address))).await;
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
            format!("{} connections", halves.into_iter().flatten().count())
        })
        .await;

    // Alive at the end, and all as before.
    let client = scene.server.client().await;
    assert!(within_patience(client.is_serving()).await.unwrap());
    let answer = common::call(&client, "echo", EMPTY.into()).await.unwrap();
    assert_eq!(answer.resource_list, EMPTY);
}
