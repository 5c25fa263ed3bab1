//! Prints how fast outputs of several styles are inspected: `cargo run --release -p krm --example speed`.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

const SIZE: usize = 6 * 1024 * 1024;

const HEAD: &str = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n";

const DEPLOYMENT: &str = r#"- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web-frontend
    namespace: shop
    annotations:
      config.kubernetes.io/index: '0'
      internal.config.kubernetes.io/path: 'web/deployment.yaml'
    labels:
      app.kubernetes.io/name: web-frontend
  spec:
    replicas: 3 # kpt-set: ${replicas}
    selector:
      matchLabels:
        app.kubernetes.io/name: web-frontend
    template:
      spec:
        containers:
        - name: server
          image: registry.example.com/shop/web-frontend:v1.2.3
          args: ["--port", "8080"]
          env:
          - name: LOG_LEVEL
            value: "info"
          resources:
            requests:
              cpu: 100m
              memory: 64Mi
"#;

const CONFIG_MAP: &str = r"- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: settings
  data:
    nginx.conf: |
      server {
        listen 8080;
        location / {
          proxy_pass http://backend:9000; # not a YAML comment
        }
      }
";

const JSON: &str = r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"ports":[{"name":"http","port":80,"targetPort":8080}],"selector":{"app":"web"},"sessionAffinity":"None"}}"#;

const PRETTY: &str = r#"
    {
      "apiVersion": "v1",
      "kind": "Service",
      "metadata": {
        "name": "web",
        "labels": {
          "app": "web"
        }
      }
    }"#;

fn main() {
    let json = |item: &str| {
        let items = vec![item; SIZE / item.len()].join(",");
        format!(
            "{{\"apiVersion\":\"config.kubernetes.io/v1\",\"kind\":\"ResourceList\",\"items\":[{items}]}}\n"
        )
    };
    let yaml = |item: &str| HEAD.to_owned() + &item.repeat(SIZE / item.len());
    let result =
        "- message: replicas should be at least two\n  severity: warning\n  field: {path: spec.replicas}\n";
    let outputs = [
        ("deployments, YAML", yaml(DEPLOYMENT)),
        ("config maps, YAML", yaml(CONFIG_MAP)),
        ("services, compact JSON", json(JSON)),
        ("services, indented JSON", json(PRETTY)),
        ("deployments, YAML with CRLF (full parser)", yaml(DEPLOYMENT).replace('\n', "\r\n")),
        ("results only", format!("kind: ResourceList\nresults:\n{}", result.repeat(SIZE / result.len()))),
        ("five deployments", HEAD.to_owned() + &DEPLOYMENT.repeat(5)),
    ];
    for (name, output) in outputs {
        let mut best = Duration::MAX;
        for _ in 0..7 {
            let start = Instant::now();
            assert!(krm::inspect(black_box(output.as_bytes())).is_ok(), "{name}");
            best = best.min(start.elapsed());
        }
        let megabytes = f64::from(u32::try_from(output.len()).unwrap_or(u32::MAX)) / 1e6;
        println!("{name:45} {:8.0} MB/s  ({best:?} for {megabytes:.3} MB)", megabytes / best.as_secs_f64());
    }
}
