//! `make bench`, the part inside a cluster: what the pod runtime adds to a
//! bare start in such a pod, to the exec runtime, and to a bare pod. Everything
//! is measured in one run, interleaved, so that only ratios are told.

#![allow(clippy::print_stdout, reason = "it prints a table for people")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "it ends where its set-up fails")]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use bench::{
    input, memory,
    table::{Row, Table, Target},
};
use bytes::Bytes;
use cluster_tests::{HostRunner, Rights, Space, client, on_cluster, processes_of, push, push_as};
use images::{
    catalogue::Image,
    layer::{Layer, Owner},
    program::Program,
    time::Timestamp,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
};
use testing::{Functions, Server};
use wire::client::{CallOptions, Client};

/// A function as most are: in Go, on the usual libraries.
const USUAL: &str = "set-namespace";
/// A function that takes hardly any time.
const LEAN: &str = "set-owner";
/// The function that starts it bare.
const SPAWNS: &str = "bare-spawns";
/// Functions in the pool when it is crowded.
const CROWD: usize = 30;

fn main() {
    let binaries =
        PathBuf::from(std::env::args_os().nth(1).expect("usage: cluster-bench FOLDER-OF-BINARIES"));
    on_cluster("bench", |space| async move {
        let table = measure(&space, &binaries).await;
        print!("{}", table.text());
        let path = binaries.parent().unwrap_or(Path::new(".")).join("bench-cluster.json");
        std::fs::write(&path, table.json()).unwrap();
        println!("\n{} of {} targets met; also in {}", table.passed(), table.targets(), path.display());
    });
}

/// Makes the images of the functions that are measured.
fn make_images(binaries: &Path) {
    let out = binaries.parent().unwrap_or(Path::new(".")).join("images");
    let program = |name: &str| Program::read(&binaries.join(name)).unwrap();
    let (function, spawns) = (program(USUAL), program(SPAWNS));
    let architecture = function.architecture;
    let time = Timestamp::from_source_date_epoch(None).unwrap();
    let layer = Layer::new("functions")
        .folder("tmp", 0o1777, Owner(0, 0))
        .program(USUAL, &function.bytes)
        .program(SPAWNS, &spawns.bytes)
        .pack(time)
        .unwrap();
    let image = |name, entrypoint, arguments| Image {
        name,
        description: "A function that is measured",
        entrypoint,
        arguments,
        folder: "/",
        ports: &[],
        layers: vec![layer.clone()],
        for_tests: true,
    };
    let images =
        [image(USUAL, "/set-namespace", &[] as &[_]), image(SPAWNS, "/bare-spawns", &["/set-namespace"])];
    for image in images {
        images::layout::write(&image, architecture, None, time, &out.join(image.name)).unwrap();
    }
}

async fn measure(space: &Arc<Space>, binaries: &Path) -> Table {
    make_images(binaries);
    let offered = Functions::new().with_program(USUAL, &binaries.join(USUAL));
    let exec = format!("example.com/{USUAL}:v1");
    let runner = HostRunner::with_pods(space, Rights::Files)
        .await
        .flags(offered.flags())
        .flags(["--max-parallel-pods-per-function=1", "--pod-ttl=1h"])
        .metrics()
        .start();
    let bench = Bench {
        space: space.clone(),
        client: client(&format!("127.0.0.1:{}", runner.port())),
        runner,
        _functions: offered,
    };
    let mut table = Table::default();
    bench.warm_calls(&mut table).await;
    bench.throughput(&exec, &mut table).await;
    bench.first_calls(&mut table).await;
    bench.crowd(&mut table).await;
    table
}

struct Bench {
    space: Arc<Space>,
    client: Client,
    runner: Server,
    _functions: Functions,
}

impl Bench {
    async fn call(&self, image: &str, input: &Bytes) -> (Duration, Bytes) {
        let begun = Instant::now();
        let options = CallOptions { timeout: Some(Duration::from_mins(2)), trace: None };
        let answer = self.client.evaluate(image, input.clone(), options).await;
        let answer = answer.unwrap_or_else(|status| panic!("{image}: {status}"));
        (begun.elapsed(), answer.resource_list)
    }

    /// A warm call against a bare start of the same function in the same kind of pod.
    async fn warm_calls(&self, table: &mut Table) {
        let (function, bare) = (push(USUAL).await, push(SPAWNS).await);
        for (resources, size) in [(5, "3 KB"), (100, "64 KB")] {
            let input = input::resource_list(resources);
            self.call(&function, &input).await;
            self.call(&bare, &input).await;
            let (mut served, mut alone) = (Vec::new(), Vec::new());
            for _ in 0..12 {
                alone.extend(durations(&self.call(&bare, &input).await.1));
                for _ in 0..10 {
                    served.push(self.call(&function, &input).await.0);
                }
            }
            table.push(Row::against(
                format!("{USUAL} in a warm pod, {size}, 1 caller"),
                "ms median",
                median_ms(&mut served),
                median_ms(&mut alone),
                Some(Target::AtMost(1.25)),
            ));
        }
    }

    /// Throughput against the exec runtime of the same service.
    async fn throughput(&self, exec: &str, table: &mut Table) {
        let function = push(USUAL).await;
        let input = input::resource_list(5);
        for callers in [8, 32] {
            let (mut pods, mut executables) = (Duration::ZERO, Duration::ZERO);
            let rounds = 8;
            for _ in 0..rounds {
                executables += self.round(exec, &input, callers).await;
                pods += self.round(&function, &input, callers).await;
            }
            let rate = |elapsed: Duration| f64::from(rounds * CALLS) / elapsed.as_secs_f64();
            table.push(Row::against(
                format!("{USUAL} in a warm pod, 3 KB, {callers} callers"),
                "calls/s",
                rate(pods),
                rate(executables),
                Some(Target::AtLeast(0.85)),
            ));
        }
    }

    async fn round(&self, image: &str, input: &Bytes, callers: u32) -> Duration {
        let begun = Instant::now();
        let calls = (0..callers).map(|caller| async move {
            for _ in 0..CALLS / callers + u32::from(caller < CALLS % callers) {
                self.call(image, input).await;
            }
        });
        futures::future::join_all(calls).await;
        begun.elapsed()
    }

    /// The first call of a function whose image the node has, against a bare pod.
    async fn first_calls(&self, table: &mut Table) {
        let wrapper = push("wrapper-server").await;
        let input = input::resource_list(5);
        let (mut first, mut bare) = (Vec::new(), Vec::new());
        for round in 0..7 {
            let begun = Instant::now();
            let name = format!("bare-{round}");
            let command = ["/home/nonroot/wrapper-server/wrapper-server", "--", "/none"];
            self.space.start_pod(&name, &wrapper, &command).await;
            self.space.pod_ready(&name).await;
            bare.push(begun.elapsed());
            self.space.kill_pod(&name).await;
            // Another tag is another function; its layers are there.
            let image = push_as(USUAL, &format!("first-{round}")).await;
            first.push(self.call(&image, &input).await.0);
            self.remove_pods_of(&format!("first-{round}")).await;
        }
        table.push(Row::against(
            format!("first call of {USUAL}, image present"),
            "ms median",
            median_ms(&mut first),
            median_ms(&mut bare),
            Some(Target::AtMost(3.0)),
        ));
    }

    /// Memory and the cost of a warm call with few and with many functions in the pool.
    async fn crowd(&self, table: &mut Table) {
        let input = input::resource_list(5);
        let mut images = Vec::new();
        for number in 0..CROWD {
            images.push(push_as(LEAN, &format!("crowd-{number}")).await);
        }
        let first = &images[0];
        self.call(first, &input).await;
        let mut alone = self.warm(first, &input).await;
        for image in &images {
            self.call(image, &input).await;
        }
        let mut crowded = self.warm(first, &input).await;
        table.push(Row::against(
            format!("warm call of {LEAN} among {CROWD} functions"),
            "ms median",
            median_ms(&mut crowded),
            median_ms(&mut alone),
            Some(Target::AtMost(1.1)),
        ));
        tokio::time::sleep(Duration::from_secs(5)).await;
        let runner = memory::resident_mb(self.runner.process()).unwrap();
        table.push(Row::bound(&format!("idle runner with {CROWD} pods, resident"), "MB", runner, 30.0));
        let pod = self.pods_of("crowd-0").await.pop().expect("a pod");
        let resident = processes_of(&pod).into_iter().map(|it| memory::resident_mb(it).unwrap()).sum();
        table.push(Row::bound("idle function pod beyond the function, resident", "MB", resident, 4.0));
    }

    async fn warm(&self, image: &str, input: &Bytes) -> Vec<Duration> {
        let mut durations = Vec::new();
        for _ in 0..500 {
            durations.push(self.call(image, input).await.0);
        }
        durations
    }

    async fn pods_of(&self, tag: &str) -> Vec<Pod> {
        let mark = format!("-{tag}-1-");
        let pods = self.space.api::<Pod>().list(&ListParams::default()).await.unwrap();
        pods.items.into_iter().filter(|pod| pod.name_any().contains(&mark)).collect()
    }

    async fn remove_pods_of(&self, tag: &str) {
        for pod in self.pods_of(tag).await {
            let now = DeleteParams::default().grace_period(0);
            let _ = self.space.api::<Pod>().delete(&pod.name_any(), &now).await;
        }
    }
}

/// Calls of a round over all its callers.
const CALLS: u32 = 96;

/// The durations that `bare-spawns` tells.
fn durations(output: &[u8]) -> Vec<Duration> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().find_map(|line| line.strip_prefix("- message: '")).expect("a message");
    let numbers = line.trim_end_matches('\'').split(' ');
    numbers.map(|number| Duration::from_micros(number.parse().expect("a number"))).collect()
}

fn median_ms(durations: &mut [Duration]) -> f64 {
    durations.sort_unstable();
    durations[durations.len() / 2].as_secs_f64() * 1e3
}
