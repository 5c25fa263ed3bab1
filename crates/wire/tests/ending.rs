//! The end of a server as its clients see it, frame by frame.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use wire::{FinishedRpc, Front, Health, Observer, ServeOptions, listen};

const PATIENCE: Duration = Duration::from_mins(2);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// The stream of a GOAWAY that still allows every request.
const ANY: u32 = 0x7fff_ffff;

struct Unobserved;

impl Observer for Unobserved {
    fn finished(&self, _: &FinishedRpc) {}
}

/// A server, how to reach it, and how to end it.
struct Scene {
    port: u16,
    end: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
}

impl Scene {
    /// Before anything is accepted, `before` happens.
    async fn start<T>(options: ServeOptions, before: impl AsyncFnOnce(u16) -> T) -> (Self, T) {
        let listener = listen(None, 0).unwrap();
        let port = listener.local_addr().unwrap().port();
        let prepared = before(port).await;
        let front = Front::new(1000, wire::Memory::unlimited(), Arc::new(Unobserved))
            .mount(Health::new().service(), &["Check"]);
        let (end, ended) = oneshot::channel();
        let server = tokio::spawn(wire::serve(listener, front, options, async {
            let _ = ended.await;
        }));
        (Self { port, end: Some(end), server }, prepared)
    }

    fn end(&mut self) {
        self.end.take().unwrap().send(()).unwrap();
    }

    async fn ended(self) {
        timeout(PATIENCE, self.server).await.unwrap().unwrap();
        assert!(TcpStream::connect(("127.0.0.1", self.port)).await.is_err(), "the port is closed");
    }
}

#[derive(Debug)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    fn last_stream(&self) -> u32 {
        assert_eq!(self.kind, GOAWAY);
        u32::from_be_bytes(self.payload[..4].try_into().unwrap())
    }
}

/// A client that says just what it is told to say.
struct Raw(TcpStream);

impl Raw {
    async fn connect(port: u16) -> Self {
        let mut raw = Self(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        raw.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        raw.send(SETTINGS, 0, 0, &[]).await;
        raw
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.0.write_all(&[&head, payload].concat()).await.unwrap();
    }

    /// Asks for the server's health.
    async fn request(&mut self, stream: u32) {
        let mut headers = Vec::new();
        for (name, value) in [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/grpc.health.v1.Health/Check"),
            (":authority", "test"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ] {
            // Literal, not indexed, not compressed.
            headers.push(0);
            for text in [name, value] {
                headers.push(u8::try_from(text.len()).unwrap());
                headers.extend(text.as_bytes());
            }
        }
        self.send(HEADERS, END_HEADERS, stream, &headers).await;
        self.send(DATA, END_STREAM, stream, &[0; 5]).await;
    }

    /// The next frame; nothing at the end of the connection.
    async fn frame(&mut self) -> io::Result<Option<Frame>> {
        timeout(PATIENCE, async {
            let mut head = [0; 9];
            match self.0.read_exact(&mut head).await {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                read => read?,
            };
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.0.read_exact(&mut payload).await?;
            let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
            Ok(Some(Frame { kind: head[3], flags: head[4], stream, payload }))
        })
        .await
        .unwrap()
    }

    /// Reads up to the frame that `wanted` tells; all frames on the way.
    async fn until(&mut self, wanted: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let frame = self.frame().await.unwrap().unwrap_or_else(|| panic!("ended after {frames:?}"));
            let found = wanted(&frame);
            frames.push(frame);
            if found {
                return frames;
            }
        }
    }

    async fn answered(&mut self, stream: u32) -> Vec<Frame> {
        let is_end = |frame: &Frame| frame.stream == stream && frame.flags & END_STREAM != 0;
        self.until(|frame| is_end(frame) && frame.kind == HEADERS).await
    }
}

fn announcements(frames: &[Frame]) -> usize {
    frames.iter().filter(|frame| frame.kind == GOAWAY && frame.last_stream() == ANY).count()
}

#[tokio::test]
async fn the_end_is_announced_with_a_request_and_requests_behind_it_are_answered() {
    let (mut scene, ()) = Scene::start(ServeOptions::default(), async |_| ()).await;
    let mut client = Raw::connect(scene.port).await;
    client.request(1).await;
    assert_eq!(announcements(&client.answered(1).await), 0);
    scene.end();
    let told = client.until(|frame| frame.kind == GOAWAY).await;
    assert_eq!(announcements(&told), 1, "an idle client is told all the same");
    // Queued before the GOAWAY was read, say.
    for stream in [3, 5] {
        client.request(stream).await;
        client.answered(stream).await;
    }
    drop(client);
    scene.ended().await;
}

#[tokio::test]
async fn who_waits_to_be_accepted_at_the_end_is_answered_and_then_told() {
    let (mut scene, mut client) = Scene::start(ServeOptions::default(), async |port| {
        let mut client = Raw::connect(port).await;
        client.request(1).await;
        client
    })
    .await;
    scene.end();
    let mut frames = client.answered(1).await;
    if announcements(&frames) == 0 {
        frames = client.until(|frame| frame.kind == GOAWAY).await;
    }
    assert_eq!(announcements(&frames), 1);
    drop(client);
    scene.ended().await;
}

#[tokio::test]
async fn what_is_not_processed_is_told_so_and_nothing_is_reset() {
    let age = ServeOptions { max_connection_age: Some(Duration::from_millis(1)), ..ServeOptions::default() };
    for options in [ServeOptions::default(), age] {
        let (mut scene, ()) = Scene::start(options, async |_| ()).await;
        let mut client = Raw::connect(scene.port).await;
        client.request(1).await;
        client.answered(1).await;
        if options.max_connection_age.is_none() {
            scene.end();
        }
        // A client that stays is asked whether it has read the announcement.
        let asked = client.until(|frame| frame.kind == PING && frame.flags & ACK == 0).await;
        client.send(PING, ACK, 0, &asked.last().unwrap().payload).await;
        client.request(3).await;
        let told = client.until(|frame| frame.kind == GOAWAY && frame.last_stream() != ANY).await;
        assert_eq!(told.last().unwrap().last_stream(), 1, "{told:?}");
        // More that nobody reads; a reset would destroy what we have not read.
        for stream in (5..99).step_by(2) {
            client.request(stream).await;
        }
        while let Some(frame) = client.frame().await.unwrap() {
            assert!(frame.stream < 3, "{frame:?}");
        }
        drop(client);
        if options.max_connection_age.is_some() {
            scene.end();
        }
        scene.ended().await;
    }
}

#[tokio::test]
async fn a_client_that_neither_answers_nor_leaves_is_not_waited_for() {
    let (mut scene, ()) = Scene::start(ServeOptions::default(), async |_| ()).await;
    let mut client = Raw::connect(scene.port).await;
    client.request(1).await;
    client.answered(1).await;
    scene.end();
    scene.ended().await;
    drop(client);
}
