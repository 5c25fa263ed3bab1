//! The API server is away for a while.

use std::{fs, path::PathBuf, time::Duration};

use cluster_tests::{Relay, Rights, Space, host_of, on_cluster, order, push};

use super::{Lab, PATIENCE};

/// Cluster access over a relay.
async fn access_over(space: &Space, relay: &Relay) -> PathBuf {
    space.make_account(Rights::Files).await;
    let direct = space.kubeconfig().await;
    let text = fs::read_to_string(&direct).unwrap();
    assert!(text.contains("127.0.0.1:6443"), "{text}");
    let relayed = direct.with_extension("relayed");
    fs::write(&relayed, text.replace("127.0.0.1:6443", &relay.address().to_string())).unwrap();
    relayed
}

#[test]
#[ignore = "needs the cluster: make test"]
fn warm_calls_do_not_notice_that_the_api_server_is_away_and_others_wait_for_it() {
    on_cluster("api-away", async |space| {
        let image = push("test-function").await;
        let relay = Relay::to(([127, 0, 0, 1], 6443).into()).await;
        let access = access_over(&space, &relay).await;
        let lab =
            Lab::start_as(&space, |builder| builder.variable("KUBECONFIG", access.to_str().unwrap())).await;
        let first = lab.pod_of_call(&image, &[]).await;

        relay.close();
        assert_eq!(lab.pod_of_call(&image, &[]).await, first, "nothing is asked of it");
        space.kill_pod(&first).await;
        // Its process takes a moment to end, and answers until then.
        tokio::time::sleep(Duration::from_secs(12)).await;
        let call = lab.spawn(&image, &order(&[("host", "true")]));
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(!call.is_finished(), "there is no pod and none can be made: {:?}", call.await);
        relay.open();
        let answer = call.await.unwrap().expect("it waits for the API server");
        let second = host_of(&answer.resource_list);
        assert_ne!(second, first);
        lab.witness.until("only the new one", PATIENCE, |seen| seen.names() == [second.clone()]).await;

        // However often it is away: what happened meanwhile is found out, and nothing is made twice.
        let calls: Vec<_> =
            (0..4).map(|_| lab.spawn(&image, &order(&[("host", "true"), ("sleep", "4000")]))).collect();
        for _ in 0..8 {
            relay.close();
            tokio::time::sleep(Duration::from_millis(200)).await;
            relay.open();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        for call in calls {
            assert_eq!(host_of(&call.await.unwrap().expect("it is in its pod").resource_list), second);
        }
        assert_eq!(lab.pod_of_call(&image, &[]).await, second);
        assert_eq!(lab.witness.seen().ever.len(), 2);
        lab.was_refused_nothing();
    });
}
