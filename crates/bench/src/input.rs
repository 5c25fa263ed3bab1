//! Lists of deployments as people write them.

use std::fmt::Write;

use bytes::Bytes;

const HEAD: &str = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: settings
  data:
    owner: team-a
    namespace: other
items:
";

/// About 650 bytes each.
pub fn resource_list(resources: usize) -> Bytes {
    let mut text = HEAD.to_owned();
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
    text.into()
}
