//! The end of a schedule: nobody calls, nothing goes wrong, and time passes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pool::{Event, Moment, Phase};

use crate::check::ensure;
use crate::replica::Checked;
use crate::scenario::{self, FUNCTIONS, LONGEST_TIME_TO_LIVE};
use crate::world::World;

/// Lets everything come to its end and checks that nothing is left.
pub(crate) fn quiet_down(world: &mut World) -> Checked {
    world.faults = false;
    for replica in 0..world.replicas.len() {
        world.relist(replica);
        for function in 0..FUNCTIONS {
            world.want(replica, function, false)?;
        }
    }
    // Those who wait are answered, by a pod or by their end.
    for _ in 0..300 {
        work(world)?;
        if world.replicas.iter().all(|replica| replica.calls.is_empty()) {
            break;
        }
        let next =
            next_wake(world).unwrap_or(world.cluster.now).max(world.cluster.now + Duration::from_millis(100));
        world.pass(next)?;
    }
    for (number, replica) in world.replicas.iter().enumerate() {
        ensure!(replica.calls.is_empty(), "{} calls of replica {number} have no end", replica.calls.len());
    }
    // Then pods are kept for their time, and go.
    for _ in 0..5 {
        let until = world.cluster.now + LONGEST_TIME_TO_LIVE / 2 + Duration::from_mins(1);
        while let Some(wake) = next_wake(world).filter(|wake| *wake <= until) {
            world.pass(wake)?;
            work(world)?;
        }
        world.pass(until)?;
        for replica in 0..world.replicas.len() {
            world.handle(replica, Event::Scan)?;
            work(world)?;
        }
    }
    settled(world)
}

fn next_wake(world: &World) -> Option<Moment> {
    world.replicas.iter().filter_map(|replica| replica.pool.wake_at()).min()
}

/// Does everything that there is to do, which takes its time.
fn work(world: &mut World) -> Checked {
    for _ in 0..1000 {
        world.pass(world.cluster.now + Duration::from_millis(100))?;
        let mut idle = true;
        for replica in 0..world.replicas.len() {
            while !world.replicas[replica].watch.is_empty() {
                world.watch(replica, 500)?;
                idle = false;
            }
            for _ in 0..world.replicas[replica].tasks.len() {
                idle &= matches!(world.replicas[replica].tasks[0], crate::replica::Task::Connect { .. });
                world.carry(replica, 0, 999)?;
            }
            let calls: Vec<_> = world.replicas[replica].calls.iter().collect();
            let calls: Vec<_> =
                calls.into_iter().filter(|(_, call)| call.pod.is_some()).map(|(&id, _)| id).collect();
            for call in calls {
                world.handle(replica, Event::Left { call })?;
                idle = false;
            }
            let connections = world.replicas[replica].pods.len();
            for connection in 0..connections {
                world.break_connection(replica, connection, 999)?;
            }
        }
        for pod in (0..world.cluster.pods.len()).rev() {
            world.progress(pod, 999);
        }
        if idle {
            let starting =
                |pod: &crate::cluster::ClusterPod| pod.observed.phase == Phase::Alive && !pod.answers;
            ensure!(!world.cluster.pods.values().any(starting), "a pod does not come up");
            if world.replicas.iter().all(|replica| replica.watch.is_empty() && replica.tasks.is_empty()) {
                return Ok(());
            }
        }
    }
    Err("there is no end of work".to_owned())
}

/// Whether only what is to stay is left.
fn settled(world: &World) -> Checked {
    for (function, spec) in world.specs.iter().enumerate() {
        let name = scenario::name(function);
        let pods = world.cluster.pods.values().filter(|pod| pod.observed.function == name).count();
        let current = world.cluster.current(&name, spec);
        let limited = world.replicas[0].limits.max_pods.is_some();
        let (fewest, most) = (if limited { 0 } else { spec.min_pods.min(spec.max_pods) }, spec.min_pods);
        ensure!(current >= fewest, "{current} pods of f{function} and {fewest} wanted");
        ensure!(pods <= most.min(spec.max_pods), "{pods} pods of f{function} stay and {most} wanted");
    }
    let uids: BTreeSet<&Arc<str>> = world.cluster.pods.keys().collect();
    for (number, replica) in world.replicas.iter().enumerate() {
        let snapshot = replica.pool.snapshot();
        let known: BTreeSet<&Arc<str>> = snapshot.pods.iter().filter_map(|pod| pod.uid.as_ref()).collect();
        ensure!(known == uids, "replica {number} knows {known:?} and there are {uids:?}");
        ensure!(snapshot.pods.len() == known.len(), "replica {number} waits for pods: {:?}", snapshot.pods);
        ensure!(snapshot.pods.iter().all(|pod| pod.calls == 0), "replica {number} has calls in pods");
        let wake = replica.pool.wake_at();
        ensure!(wake.is_none(), "replica {number} wants to be woken at {wake:?}");
    }
    Ok(())
}
