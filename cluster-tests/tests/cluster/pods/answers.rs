//! Whose answer a call gets: its own, whatever becomes of pods.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use cluster_tests::{Seen, eventually, host_of, on_cluster, order, push, signal_pod};
use kube::ResourceExt;
use testing::Signal;

use super::{Lab, PATIENCE};
use crate::installation::within;

/// Callers at once: more than the pods of the test take without sharing.
const CALLERS: usize = 12;

/// What no other call is given; of many lengths, so that no part of one answer fits into another.
fn payload(caller: usize, call: usize) -> Bytes {
    let sleep = ((caller + call) % 5 * 40).to_string();
    let filling = "x".repeat((caller * 31 + call * 97) % 61 * 500);
    let text = format!("{caller} {call} {filling}");
    order(&[("sleep", &sleep), ("payload", &text)])
}

#[test]
#[ignore = "needs the cluster: make test"]
fn each_call_gets_its_own_answer_while_pods_are_killed() {
    on_cluster("own-answers", async |space| {
        let image = push("test-function").await;
        let flags = ["--max-parallel-pods-per-function=3", "--max-waitlist-length=2"];
        let lab = Lab::start(&space, &flags).await;
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (client, image) = (lab.client.clone(), image.clone());
                let (stop, answered) = (stop.clone(), answered.clone());
                tokio::spawn(async move {
                    for call in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let input = payload(caller, call);
                        let answer = client.evaluate(&image, input.clone(), within(60)).await;
                        let answer = answer.unwrap_or_else(|status| panic!("{caller} {call}: {status}"));
                        assert!(answer.resource_list == input, "{caller} {call}: not its answer: {answer:?}");
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        // By turns without a word to anybody, and by the cluster; each time with calls in it.
        for round in 0..6 {
            let ready = |seen: &Seen| seen.ready().count() == 3;
            let seen = lab.witness.until("three and ready", PATIENCE, ready).await;
            let before = answered.load(Ordering::Relaxed);
            eventually("calls are answered", || async {
                answered.load(Ordering::Relaxed) > before + 2 * CALLERS
            })
            .await;
            let pod = seen.ready().nth(round % 3).unwrap().clone();
            if round % 2 == 0 {
                signal_pod(&pod, Signal::KILL);
            } else {
                space.kill_pod(&pod.name_any()).await;
            }
            let gone = |seen: &Seen| !seen.names().contains(&pod.name_any());
            lab.witness.until("without the killed one", PATIENCE, gone).await;
        }
        stop.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.await.expect("each of its calls got its own answer");
        }
        assert!(lab.witness.seen().ever.len() >= 8, "pods were killed: {:?}", lab.witness.seen().ever);
        lab.was_refused_nothing();
    });
}

#[test]
#[ignore = "needs the cluster: make test"]
fn a_call_that_was_given_up_leaves_nothing_to_the_next_one() {
    on_cluster("given-up", async |space| {
        let image = push("test-function").await;
        let lab = Lab::start(&space, &[]).await;
        let pod = lab.pod_of_call(&image, &[]).await;
        let mut hosts = BTreeSet::new();
        for number in 0..10 {
            // Given up at any moment: before it is sent, while it runs, while it is answered.
            let patience = Duration::from_millis(number * 15);
            let input = order(&[("sleep", "60"), ("payload", "the one before")]);
            let call = lab.client.evaluate(&image, input, within(60));
            let _ = tokio::time::timeout(patience, call).await;
            let own = format!("number {number}");
            let input = order(&[("host", "true"), ("payload", &own)]);
            let answer = lab.client.evaluate(&image, input, within(60)).await.unwrap().resource_list;
            let text = String::from_utf8_lossy(&answer);
            assert!(text.contains(&own) && !text.contains("the one before"), "{text}");
            hosts.insert(host_of(&answer));
        }
        assert_eq!(hosts, BTreeSet::from([pod]), "no pod is lost over it");
        lab.was_refused_nothing();
    });
}
