//! What must hold, whatever happens.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pool::{Action, CallId, Event, Function, PodId, PodView, Reason, Refusal, Snapshot};

use crate::cluster::Cluster;
use crate::replica::{Call, Checked, Failure, Known, Replica};

macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(format!($($why)+));
        }
    };
}
pub(crate) use ensure;

/// Whether an action is right at its time, everything before it being done.
pub(crate) fn action(
    replica: &Replica,
    action: &Action<Failure>,
    actions: &[Action<Failure>],
    event: &Event<Failure>,
    cluster: &Cluster,
) -> Checked {
    match action {
        Action::Launch { .. } | Action::Connect { .. } => connect(replica, action),
        Action::Grant { call, pod } => {
            let Some(known) = replica.calls.get(call) else { return Err(format!("{call:?} is not there")) };
            ensure!(known.pod.is_none(), "{call:?} is answered twice");
            let Some(pod) = replica.pods.get(pod) else { return Err(format!("{pod:?} is not known")) };
            ensure!(pod.connected && !pod.closed, "{call:?} is given a pod that takes no calls");
            ensure!(pod.function == known.function, "{call:?} is given a pod of another function");
            Ok(())
        }
        Action::Refuse { call, refusal } => {
            let Some(known) = replica.calls.get(call) else { return Err(format!("{call:?} is not there")) };
            ensure!(known.pod.is_none(), "{call:?} is answered twice");
            let of_function = |failure: &Failure| replica.failures.get(failure) == Some(&known.function);
            match refusal {
                Refusal::Failed(failure) => {
                    ensure!(of_function(failure), "{call:?} is told another's failure");
                    let hope =
                        |view: &PodView<Failure>| view.function == known.function && view.phase != "ending";
                    let pods = replica.pool.snapshot().pods;
                    ensure!(!pods.iter().any(hope), "{call:?} is refused although a pod is there or coming");
                }
                Refusal::TimedOut { trouble, .. } => {
                    ensure!(known.end <= cluster.now, "{call:?} is refused before its time");
                    ensure!(trouble.as_ref().is_none_or(of_function), "{call:?} is told another's trouble");
                }
                Refusal::Crowded { waiting } => {
                    ensure!(
                        *waiting >= replica.limits.max_waiting,
                        "{call:?} is refused with {waiting} waiting"
                    );
                }
            }
            Ok(())
        }
        Action::Delete { pod, uid, reason } => delete(replica, (*pod, uid, *reason), actions, event, cluster),
        Action::Record { pod, uid, keep_until } => {
            let Some(known) = replica.pods.get(pod) else { return Err(format!("{pod:?} is not known")) };
            ensure!(known.uid.as_ref() == Some(uid), "{pod:?} is not {uid}");
            let time_to_live = keep_until.saturating_sub(cluster.now);
            if let Some((last, before)) = known.recorded.filter(|_| time_to_live > Duration::ZERO)
                && before == time_to_live
            {
                let interval = Duration::from_mins(1).min(time_to_live / 4);
                ensure!(cluster.now >= last + interval, "{pod:?} is recorded on too often");
            }
            Ok(())
        }
        Action::Lost { pod } => {
            ensure!(replica.calls_in(*pod) > 0, "{pod:?} is lost without a call in it");
            ensure!(replica.pods.get(pod).is_some_and(|pod| pod.dead), "{pod:?} is lost and not dead");
            Ok(())
        }
    }
}

fn connect(replica: &Replica, action: &Action<Failure>) -> Checked {
    if let Action::Connect { uid, .. } = action {
        ensure!(!replica.connected_uids.contains(uid), "{uid} is connected to twice");
    }
    Ok(())
}

fn delete(
    replica: &Replica,
    (pod, uid, reason): (PodId, &Arc<str>, Reason),
    actions: &[Action<Failure>],
    event: &Event<Failure>,
    cluster: &Cluster,
) -> Checked {
    let calls = replica.calls_in(pod);
    ensure!(calls == 0, "{pod:?} is deleted with {calls} calls in it");
    let snapshot = replica.pool.snapshot();
    let Some(known) = replica.pods.get(&pod).filter(|known| known.uid.is_some()) else {
        // A failed pod that was found, or one whose launch was given up.
        let found = matches!(event, Event::Seen(seen) if seen.uid == *uid) && reason == Reason::Failed;
        let late = matches!(event, Event::Launched { .. }) && reason == Reason::Surplus;
        ensure!(found || late, "{pod:?} is not known");
        return Ok(());
    };
    if matches!(event, Event::Scan) && known.closed {
        return Ok(()); // Asked for again.
    }
    let is_other =
        |call: CallId| !matches!(event, Event::Arrived { call: arriving, .. } if *arriving == call);
    let waits = |call: &Call| call.pod.is_none() && call.function == known.function;
    let waiting = replica.calls.iter().filter(|(id, call)| is_other(**id) && waits(call)).count();
    let ready = |view: &PodView<Failure>| {
        view.function == known.function && view.current && view.phase == "ready" && view.pod != pod
    };
    match reason {
        Reason::Idle => {
            ensure!(waiting == 0, "{pod:?} is idle and {waiting} calls wait");
            idle(replica, known, uid, cluster)
        }
        Reason::NotReady => {
            ensure!(waiting == 0, "{pod:?} is given up and {waiting} calls wait");
            let end = known.begun + replica.limits.ready_timeout;
            ensure!(end <= cluster.now, "{pod:?} is given up too early");
            Ok(())
        }
        Reason::Outdated | Reason::Surplus => {
            // What replaces it may have to make room in the same breath.
            let for_room =
                |action: &Action<Failure>| matches!(action, Action::Delete { reason: Reason::Room, .. });
            let replaced = snapshot.pods.iter().any(ready) || actions.iter().any(for_room);
            ensure!(replaced, "{pod:?} goes and nothing replaces it");
            Ok(())
        }
        Reason::Room => {
            ensure!(waiting == 0, "{pod:?} makes room and {waiting} calls wait");
            let full = replica.limits.max_pods.is_some_and(|limit| snapshot.pods.len() >= limit);
            ensure!(full, "{pod:?} makes room and there is some");
            Ok(())
        }
        Reason::Failed => {
            let failed = matches!(event, Event::Seen(seen) if seen.uid == *uid);
            ensure!(known.dead || failed, "{pod:?} is said to have failed and has not");
            Ok(())
        }
    }
}

fn idle(replica: &Replica, known: &Known, uid: &Arc<str>, cluster: &Cluster) -> Checked {
    let recorded = replica.keep_until.get(uid).copied().unwrap_or_default();
    ensure!(recorded <= cluster.now, "{uid} goes although another keeps it until {recorded:?}");
    let told = replica.specs.get(&known.function).map(|spec| spec.time_to_live);
    let found = replica.found.get(&known.function).map(|spec| spec.time_to_live);
    let time_to_live = told.into_iter().chain(found).min().unwrap_or_default();
    let end = known.last_used.unwrap_or_default() + time_to_live;
    ensure!(end <= cluster.now, "{uid} goes before its time");
    Ok(())
}

/// Whether the pool is right after an event.
pub(crate) fn state(
    replica: &Replica,
    before: &Snapshot<Failure>,
    actions: &[Action<Failure>],
    cluster: &Cluster,
) -> Checked {
    let now = cluster.now;
    let wake = replica.pool.wake_at();
    ensure!(wake.is_none_or(|wake| wake > now), "it wants to be woken at {wake:?}, and that is over");
    let snapshot = replica.pool.snapshot();
    let waiting = replica.calls.values().filter(|call| call.pod.is_none()).count();
    ensure!(snapshot.waiting == waiting, "it says that {} calls wait, and {waiting} do", snapshot.waiting);
    ensure!(waiting <= replica.limits.max_waiting, "{waiting} calls wait");
    for view in &snapshot.pods {
        let calls = replica.calls_in(view.pod);
        ensure!(
            view.calls == calls,
            "it says that {} calls are in {:?}, and {calls} are",
            view.calls,
            view.pod
        );
    }
    let in_pods: usize = snapshot.pods.iter().map(|view| view.calls).sum();
    ensure!(in_pods + waiting == replica.calls.len(), "calls are in pods that are not there");
    for (id, call) in replica.calls.iter().filter(|(_, call)| call.pod.is_none()) {
        ensure!(call.end > now, "{id:?} waits beyond its end");
        progress(replica, &snapshot, &call.function, cluster)?;
    }
    launches(replica, before, actions, &snapshot, cluster)
}

/// Whether those who wait have reason to.
fn progress(
    replica: &Replica,
    snapshot: &Snapshot<Failure>,
    function: &Function,
    cluster: &Cluster,
) -> Checked {
    let now = cluster.now;
    let pods = || snapshot.pods.iter().filter(|view| view.function == *function);
    let coming = |view: &&PodView<Failure>| ["launching", "taken", "starting"].contains(&view.phase);
    let soon = |view: PodId| {
        replica.pods.get(&view).is_some_and(|known| now < known.begun + replica.limits.patience)
    };
    if pods().any(|view| view.phase == "ready") {
        let awaited = |view: &PodView<Failure>| view.current && view.trouble.is_none() && soon(view.pod);
        ensure!(pods().filter(coming).any(awaited), "calls wait for {function} and a pod is ready");
    } else if !pods().any(|view| coming(&view) || view.phase == "doubted") {
        let full = replica.limits.max_pods.is_some_and(|limit| snapshot.pods.len() >= limit);
        let failed = replica.last_failure.get(function);
        let pausing = failed.is_some_and(|&failed| now < failed + replica.limits.max_backoff);
        ensure!(full || pausing, "calls wait for {function} and nothing is done about it");
    }
    Ok(())
}

/// Whether what is launched is allowed.
fn launches(
    replica: &Replica,
    before: &Snapshot<Failure>,
    actions: &[Action<Failure>],
    snapshot: &Snapshot<Failure>,
    cluster: &Cluster,
) -> Checked {
    let stem = |view: &PodView<Failure>| {
        let known = replica.pods.get(&view.pod).map(|known| known.stem.clone());
        known.or_else(|| view.uid.as_ref().map(|uid| cluster.made(uid).1))
    };
    for action in actions {
        let Action::Launch { pod, function, spec, slot } = action else { continue };
        let begun = replica.pods.get(pod).map(|known| known.begun);
        if begun != Some(cluster.now) {
            continue; // Once more for a slot it has.
        }
        let pause = replica.failing_since.get(function).map(|since| *since + replica.limits.min_backoff);
        ensure!(pause.is_none_or(|end| end <= cluster.now), "{pod:?} is launched during a pause");
        let same_stem = |view: &&PodView<Failure>| stem(view).as_ref() == Some(&spec.stem);
        let same = snapshot.pods.iter().filter(same_stem);
        // A slot may become free with the same event.
        let used = before.pods.iter().filter(same_stem).chain(same.clone());
        let used: BTreeSet<usize> = used.map(|view| view.slot).collect();
        let others = same.clone().filter(|view| view.slot == *slot && view.pod != *pod).count();
        ensure!(others == 0, "slot {slot} of {} is used twice", spec.stem);
        ensure!((1..*slot).all(|lower| used.contains(&lower)), "slot {slot} is not the lowest free");
        if replica.waiting(function) > 0 {
            ensure!(replica.specs.get(function) == Some(spec), "{pod:?} is not what was asked for last");
        }
        // Of pods in the same slot only one counts, and that may be another function's.
        let of_others = |slot: usize| {
            let mut others = same.clone().filter(|view| view.function != *function);
            slot > 0 && others.any(|view| view.slot == slot)
        };
        let current = |view: &&PodView<Failure>| {
            view.function == *function && view.current && view.phase != "ending" && !of_others(view.slot)
        };
        let current: Vec<usize> = snapshot.pods.iter().filter(current).map(|view| view.slot).collect();
        let slots: BTreeSet<_> = current.iter().filter(|slot| **slot > 0).collect();
        let count = slots.len() + current.iter().filter(|slot| **slot == 0).count();
        ensure!(count <= spec.max_pods, "{count} pods of {function} and {} allowed", spec.max_pods);
        if let Some(limit) = replica.limits.max_pods {
            ensure!(snapshot.pods.len() <= limit, "{} pods and {limit} allowed", snapshot.pods.len());
        }
    }
    Ok(())
}
