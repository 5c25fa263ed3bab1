//! Several runners with one namespace of pods.

use std::{collections::BTreeSet, time::Duration};

use cluster_tests::{HostRunner, host_of, on_cluster, order, push};

use super::{Lab, connect};
use crate::installation::within;

#[test]
#[ignore = "needs the cluster: make test"]
fn two_replicas_share_their_pods_and_delete_none_of_each_other() {
    on_cluster("two-replicas", async |space| {
        let flags = [
            "--max-parallel-pods-per-function=2",
            "--max-waitlist-length=1",
            "--scan-interval=500ms",
            "--pod-ttl=8s",
        ];
        let image = push("test-function").await;
        let one = Lab::start(&space, &flags).await;
        let other = HostRunner::another(&space).await.flags(flags).start();
        let clients = [one.client.clone(), connect(&other)];
        // Both are asked for the same at the same time.
        let calls: Vec<_> = (0..16)
            .map(|number| {
                let (client, image) = (clients[number % 2].clone(), image.clone());
                let input = order(&[("host", "true"), ("sleep", "1500")]);
                tokio::spawn(async move { client.evaluate(&image, input, within(60)).await })
            })
            .collect();
        let mut pods = BTreeSet::new();
        for call in calls {
            pods.insert(host_of(&call.await.unwrap().expect("each call is answered").resource_list));
        }
        assert!(!pods.is_empty());
        let seen = one.witness.seen();
        assert_eq!(seen.ever.len(), 2, "together they keep to the limit: {:?}", seen.ever);

        // Only one of them has calls; the other must not take its pods for unused, scan after scan.
        for _ in 0..12 {
            let calls = (0..4).map(|_| clients[0].evaluate(&image, order(&[("host", "true")]), within(60)));
            for answer in futures::future::join_all(calls).await {
                let pod = host_of(&answer.expect("each call is answered").resource_list);
                assert!(pods.contains(&pod) || seen.ever.values().any(|name| *name == pod), "{pod} is new");
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let seen = one.witness.seen();
        assert_eq!((seen.there.len(), seen.ever.len()), (2, 2), "{:?}\n{}", seen.ever, other.log());
        one.was_refused_nothing();
    });
}
