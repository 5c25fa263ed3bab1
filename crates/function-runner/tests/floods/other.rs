//! The client that must not notice anything.

use std::{net::IpAddr, time::Duration};

use tokio::{sync::oneshot, task::JoinHandle, time::Instant};
use wire::client::{CallOptions, Client, endpoint};

/// What it calls with: a function to run in the service and a resource for it.
const LIST: &str = "apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: config}
  data: {namespace: elsewhere}
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: one}
";

/// Where it calls from.
const SOURCE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

/// Calls a function, asks for health, and connects anew, until it is told to finish.
pub(crate) struct OtherClient {
    calling: JoinHandle<Vec<Duration>>,
    finish: oneshot::Sender<()>,
}

async fn connect(port: u16) -> Client {
    let endpoint = endpoint(&format!("127.0.0.1:{port}")).unwrap().local_address(Some(SOURCE));
    Client::new(endpoint.connect().await.unwrap(), 6 * 1024 * 1024)
}

impl OtherClient {
    pub(crate) async fn start(port: u16) -> Self {
        let (finish, mut finished) = oneshot::channel();
        let client = connect(port).await;
        let calling = tokio::spawn(async move {
            let mut times = Vec::new();
            while finished.try_recv().is_err() {
                let begun = Instant::now();
                let image = "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.1";
                let answer = client.evaluate(image, LIST.into(), CallOptions::default()).await.unwrap();
                let text = String::from_utf8(answer.resource_list.to_vec()).unwrap();
                assert!(text.contains("{name: one, namespace: elsewhere}"), "{text}");
                assert!(client.is_serving().await.unwrap());
                times.push(begun.elapsed());
                if times.len() % 20 == 0 {
                    assert!(connect(port).await.is_serving().await.unwrap());
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            times
        });
        Self { calling, finish }
    }

    /// How long its calls took. Fails where one was not answered.
    pub(crate) async fn finish(self) -> String {
        let _ = self.finish.send(());
        let mut times = super::within_patience(self.calling).await.unwrap();
        times.sort();
        let at = |share: f64| {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a place in a list"
            )]
            let place = (times.len() as f64 * share) as usize;
            times.get(place.min(times.len() - 1)).copied().unwrap_or_default()
        };
        format!("{} calls, p50 {:.1?}, p99 {:.1?}, longest {:.1?}", times.len(), at(0.5), at(0.99), at(1.0))
    }
}
