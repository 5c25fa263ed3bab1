//! How long set-namespace takes: `cargo run --release -p functions --example set_namespace_speed`.

use std::fmt::Write as _;
use std::time::Instant;

fn list(resources: usize) -> String {
    let mut text = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: settings
  data:
    namespace: other
items:
"
    .to_owned();
    for number in 0..resources {
        let _ = write!(
            text,
            "\
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web-{number}
    namespace: shop # the team's own
    labels:
      app: web-{number}
      tier: frontend
    annotations:
      example.com/contact: team-a@example.com
  spec:
    replicas: 2
    selector:
      matchLabels:
        app: web-{number}
    template:
      metadata:
        labels:
          app: web-{number}
          tier: frontend
      spec:
        containers:
        - name: web
          image: example.com/shop/web:1.4.{number}
          ports:
          - containerPort: 8080
          env:
          - name: MODE
            value: \"production\"
"
        );
    }
    text
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() {
    for (style, change) in [("usual", ""), ("odd", "? odd\n: &a key\n")] {
        for resources in [5, 100, 2_000, 9_000] {
            let mut text = list(resources);
            text.insert_str(0, change);
            let rounds = (20_000 / resources).clamp(5, 2_000);
            let mut best = f64::MAX;
            for _ in 0..rounds {
                let start = Instant::now();
                let outcome = functions::run("set-namespace", text.as_bytes());
                best = best.min(start.elapsed().as_secs_f64());
                assert!(outcome.is_some_and(|outcome| outcome.succeeded));
            }
            let megabytes = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX)) / 1e6;
            println!(
                "{style:6} {resources:5} resources, {megabytes:7.3} MB: {:9.3} ms, {:6.0} MB/s",
                best * 1e3,
                megabytes / best
            );
        }
    }
}
