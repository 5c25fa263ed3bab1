//! What the cluster shows of pods.

use std::time::{Duration, UNIX_EPOCH};

use k8s_openapi::api::core::v1::Pod;
use pods::{
    observe::{self, Sighting, Trouble, TroubleKind},
    render::{self, PodRequest},
    template::{PodSecurity, Template},
};
use pool::Phase;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::rendering::{WRAPPER, request};

/// A pod as the API server gives it back, with a status.
fn pod(status: Value) -> Value {
    let request = PodRequest { exact_name: true, ..request() };
    let mut pod =
        serde_json::to_value(render::pod(&Template::inline(WRAPPER, PodSecurity::Porch), &request)).unwrap();
    pod["metadata"]["uid"] = json!("uid-1");
    pod["metadata"]["creationTimestamp"] = json!("2026-01-02T03:04:05Z");
    pod["status"] = status;
    pod
}

fn see(pod: &Value) -> Option<Sighting> {
    observe::pod(&serde_json::from_value::<Pod>(pod.clone()).unwrap())
}

fn seen(status: Value) -> Sighting {
    see(&pod(status)).unwrap()
}

fn trouble(status: Value) -> Trouble {
    seen(status).trouble.unwrap()
}

fn function(state: Value) -> Value {
    container("function", state)
}

fn container(name: &str, mut state: Value) -> Value {
    let fields = state.as_object_mut().unwrap();
    for (field, value) in [
        ("name", json!(name)),
        ("image", json!("")),
        ("imageID", json!("")),
        ("ready", json!(false)),
        ("restartCount", json!(0)),
    ] {
        fields.entry(field).or_insert(value);
    }
    state
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({
        "phase": "Pending",
        "containerStatuses": [function(json!({"state": {"waiting": {"reason": reason, "message": message}}}))],
    })
}

/// The function's container ended, after this many seconds.
fn ended(phase: &str, code: i32, reason: &str, message: &str, seconds: u32) -> Value {
    let end = json!({
        "exitCode": code, "reason": reason, "message": message,
        "startedAt": "2026-01-02T03:00:00Z", "finishedAt": format!("2026-01-02T03:{:02}:{:02}Z", seconds / 60, seconds % 60),
    });
    json!({"phase": phase, "containerStatuses": [function(json!({"state": {"terminated": end}}))]})
}

#[test]
fn a_pod_that_runs() {
    let sighting = seen(json!({
        "phase": "Running",
        "podIP": "10.1.2.3",
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-02T03:04:06Z"},
            {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-01-02T03:04:07Z"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:09Z"},
        ],
        "initContainerStatuses": [container("copy-wrapper-server", json!({
            "ready": true, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
        }))],
        "containerStatuses": [function(json!({
            "ready": true, "state": {"running": {"startedAt": "2026-01-02T03:04:08Z"}},
        }))],
    }));
    let made = UNIX_EPOCH + Duration::from_secs(1_767_323_045);
    let after = |seconds| Some(made + Duration::from_secs(seconds));
    assert_eq!((&*sighting.uid, sighting.name.as_str()), ("uid-1", "f-v1-1-01234567"));
    assert_eq!(
        (sighting.id.as_str(), &*sighting.stem, sighting.slot),
        ("f-v1-1-01234567", "f-v1-*-01234567", 1)
    );
    assert_eq!((&*sighting.image, &*sighting.function), ("example.com/f:v1", "example.com/f:v1"));
    assert_eq!(sighting.template_version.as_deref(), Some("inline-v1"));
    assert_eq!(sighting.settings_version, None);
    assert_eq!((sighting.created, sighting.reclaim_after), (made, Some(1_700_000_000)));
    assert_eq!((sighting.phase, sighting.is_running, sighting.restarts), (Phase::Alive, true, 0));
    assert_eq!(sighting.address.unwrap().to_string(), "10.1.2.3");
    assert_eq!((sighting.trouble, sighting.has_mesh_sidecar), (None, false));
    let progress = sighting.progress;
    assert_eq!((progress.scheduled, progress.initialized), (after(1), after(2)));
    assert_eq!((progress.started, progress.ready), (after(3), after(4)));
}

#[test]
fn a_pod_that_was_just_made() {
    let mut made = pod(Value::Null);
    made.as_object_mut().unwrap().remove("status");
    let sighting = see(&made).unwrap();
    assert_eq!((sighting.phase, sighting.is_running, sighting.trouble), (Phase::Alive, false, None));
    assert_eq!(sighting.address, None);
    for (reason, message) in [("ContainerCreating", ""), ("PodInitializing", ""), ("Unheard", "of")] {
        assert_eq!(seen(waiting(reason, message)).trouble, None, "{reason}");
    }
}

#[test]
fn pods_of_others_are_not_seen() {
    let without = |field: &str| {
        let mut pod = pod(json!({}));
        pod["metadata"].as_object_mut().unwrap().remove(field);
        pod
    };
    for field in ["labels", "uid", "name"] {
        assert_eq!(see(&without(field)), None, "{field}");
    }
    for label in ["", "front-end", "F-1-01234567", "some thing"] {
        let mut pod = pod(json!({}));
        pod["metadata"]["labels"]["fn.kpt.dev/image"] = json!(label);
        assert_eq!(see(&pod), None, "{label:?}");
    }
    let mut other = pod(json!({}));
    other["spec"]["containers"][0]["name"] = json!("other");
    assert_eq!(see(&other), None);
    assert_eq!(see(&json!({})), None);
}

#[test]
fn pods_of_older_releases_are_seen() {
    let mut old = pod(json!({}));
    old["metadata"]["labels"]["fn.kpt.dev/image"] = json!("set-namespace-01234567");
    old["metadata"]["annotations"] = json!({"fn.kpt.dev/reclaim-after": "soon"});
    let sighting = see(&old).unwrap();
    assert_eq!((sighting.slot, &*sighting.stem), (0, "set-namespace-01234567"));
    assert_eq!((sighting.template_version, sighting.reclaim_after), (None, None));
}

#[test]
fn a_pod_being_deleted_is_ending_whatever_else_it_is() {
    for status in [json!({"phase": "Running"}), json!({"phase": "Failed"}), json!({})] {
        let mut pod = pod(status);
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
        assert_eq!(see(&pod).unwrap().phase, Phase::Ending);
    }
}

#[test]
fn a_function_that_ended_is_dead_even_if_it_runs_again() {
    let again = json!({
        "phase": "Running",
        "containerStatuses": [function(json!({
            "restartCount": 1,
            "state": {"running": {"startedAt": "2026-01-02T03:04:08Z"}},
            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
        }))],
    });
    let sighting = seen(again);
    assert_eq!((sighting.phase, sighting.restarts), (Phase::Failed, 1));
    assert_eq!(sighting.trouble.unwrap().kind, TroubleKind::OutOfMemory);
    for phase in ["Failed", "Succeeded", "Unknown"] {
        assert_eq!(seen(json!({"phase": phase})).phase, Phase::Failed, "{phase}");
        assert!(seen(json!({"phase": phase})).trouble.is_some(), "{phase}");
    }
    assert_eq!(seen(ended("Running", 0, "Completed", "", 5)).phase, Phase::Failed);
    // One that waits to be started again, of which the API server has forgotten the end.
    let looping = json!({
        "phase": "Running",
        "containerStatuses": [function(json!({
            "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
        }))],
    });
    let sighting = seen(looping);
    assert_eq!(sighting.phase, Phase::Failed);
    let trouble = sighting.trouble.unwrap();
    assert_eq!((trouble.kind, trouble.lasting), (TroubleKind::Crashed { exit_code: None }, true));
    assert!(trouble.text.contains("back-off 40s"), "{}", trouble.text);
}

#[test]
fn a_registrys_refusal_is_final_and_its_trouble_is_not() {
    let missing = r#"rpc error: code = NotFound desc = failed to pull and unpack image "example.com/f:v1": failed to resolve reference "example.com/f:v1": example.com/f:v1: not found"#;
    let denied = r#"failed to resolve reference "docker.io/x/y:v1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed"#;
    for (reason, message, lasting) in [
        ("ErrImagePull", missing, true),
        ("ErrImagePull", denied, true),
        (
            "ErrImagePull",
            "unexpected status from HEAD request to https://example.com/v2/f: 401 Unauthorized",
            true,
        ),
        (
            "ErrImagePull",
            "unexpected status from HEAD request to https://example.com/v2/f: 403 Forbidden",
            true,
        ),
        ("ErrImagePull", "Error response from daemon: manifest for x not found: manifest unknown", true),
        ("ErrImagePull", "no match for platform in manifest: not found", true),
        (
            "ImagePullBackOff",
            &format!("Back-off pulling image \"example.com/f:v1\": ErrImagePull: {missing}"),
            true,
        ),
        ("ImagePullBackOff", "Back-off pulling image \"example.com/f:v1\"", false),
        (
            "ErrImagePull",
            "failed to do request: Head \"https://example.com/v2/\": dial tcp 10.0.0.1:443: i/o timeout",
            false,
        ),
        ("ErrImagePull", "dial tcp: lookup example.com on 10.96.0.10:53: no such host", false),
        (
            "ErrImagePull",
            "unexpected status from HEAD request to https://example.com/v2/: 503 Service Unavailable",
            false,
        ),
        ("ErrImagePull", "toomanyrequests: You have reached your pull rate limit, access denied", false),
        ("ErrImagePull", "rpc error: code = Unknown desc = something odd", false),
        ("ErrImagePull", "x509: certificate signed by unknown authority", false),
        ("ErrImagePull", "", false),
        ("RegistryUnavailable", "connection refused", false),
        ("ImageInspectError", "context deadline exceeded", false),
        ("InvalidImageName", "couldn't parse image reference", true),
        ("ErrImageNeverPull", "not present with pull policy of Never", true),
        ("SignatureValidationFailed", "no signature", true),
    ] {
        let trouble = trouble(waiting(reason, message));
        assert_eq!(trouble.kind, TroubleKind::PullFailed, "{reason}");
        assert_eq!(trouble.lasting, lasting, "{reason}: {message}");
        assert!(trouble.text.contains(reason) && trouble.text.contains(message), "{}", trouble.text);
        assert!(trouble.text.contains("example.com/f:v1"), "{}", trouble.text);
    }
    // The name of an image says nothing about what went wrong.
    let trouble = trouble(waiting("ErrImagePull", "example.com/timeout/dial-tcp-function:v1: not found"));
    assert!(trouble.lasting);
}

#[test]
fn a_pod_without_a_node_waits_for_one() {
    let trouble = trouble(json!({
        "phase": "Pending",
        "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/1 nodes are available: 1 Insufficient cpu.",
        }],
    }));
    assert_eq!((trouble.kind, trouble.lasting), (TroubleKind::Unschedulable, false));
    assert!(trouble.text.contains("0/1 nodes are available: 1 Insufficient cpu."), "{}", trouble.text);
    let not_yet = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]});
    assert_eq!(seen(not_yet).trouble, None);
}

#[test]
fn a_crash_tells_its_exit_code_and_last_words() {
    let crash = trouble(ended("Failed", 2, "Error", "panic:\n  no such thing\n", 1));
    assert_eq!((crash.kind, crash.lasting), (TroubleKind::Crashed { exit_code: Some(2) }, true));
    assert_eq!(crash.text, "container \"function\" ended with exit code 2: Error: panic: no such thing");
    let killed = trouble(ended("Failed", 143, "Error", "", 600));
    assert_eq!((killed.kind, killed.lasting), (TroubleKind::Crashed { exit_code: Some(143) }, false));
    assert!(killed.text.contains("exit code 143 (signal 15)"), "{}", killed.text);
    // A wrapper does not end by itself.
    let left = trouble(ended("Succeeded", 0, "Completed", "", 0));
    assert_eq!(left.kind, TroubleKind::Crashed { exit_code: Some(0) });
}

#[test]
fn running_out_of_memory_names_the_limit() {
    let mut pod = pod(ended("Failed", 137, "OOMKilled", "", 300));
    let without = see(&pod).unwrap().trouble.unwrap();
    assert_eq!((without.kind, without.lasting), (TroubleKind::OutOfMemory, false));
    assert!(without.text.contains("the node was short of memory"), "{}", without.text);
    pod["spec"]["containers"][0]["resources"]["limits"] = json!({"memory": "64Mi"});
    let text = see(&pod).unwrap().trouble.unwrap().text;
    assert_eq!(text, "container \"function\" ran out of memory (its limit is 64Mi)");
    assert!(trouble(ended("Failed", 137, "OOMKilled", "", 2)).lasting, "at once: it will again");
}

#[test]
fn containers_that_cannot_be_started_say_why() {
    for (reason, message, lasting) in [
        ("CreateContainerConfigError", "secret \"x\" not found", true),
        (
            "CreateContainerConfigError",
            "failed to sync secret cache: timed out waiting for the condition",
            false,
        ),
        ("CreateContainerError", "failed to generate spec: no command specified", true),
        (
            "RunContainerError",
            "exec: \"/wrapper-server\": stat /wrapper-server: no such file or directory",
            true,
        ),
        ("CreateContainerError", "context deadline exceeded", false),
    ] {
        let trouble = trouble(waiting(reason, message));
        assert_eq!(
            (trouble.kind, trouble.lasting),
            (TroubleKind::CreateFailed, lasting),
            "{reason}: {message}"
        );
        assert!(trouble.text.contains(message), "{}", trouble.text);
    }
    let start = trouble(ended("Failed", 128, "StartError", "exec: \"/x\": permission denied", 0));
    assert_eq!((start.kind, start.lasting), (TroubleKind::CreateFailed, true));
}

#[test]
fn nodes_that_do_not_keep_a_pod_are_not_its_fault() {
    let evicted = trouble(json!({
        "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
        "containerStatuses": [function(json!({"state": {"terminated": {"exitCode": 137, "reason": "Error"}}}))],
    }));
    assert_eq!((evicted.kind, evicted.lasting), (TroubleKind::Evicted, false));
    assert!(evicted.text.contains("Evicted: The node was low on resource: memory."), "{}", evicted.text);
    let refused =
        trouble(json!({"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough"}));
    assert_eq!((refused.kind, refused.lasting), (TroubleKind::Evicted, false));
    for status in [
        json!({"phase": "Unknown"}),
        json!({"phase": "Running", "reason": "NodeLost", "message": "Node x was unresponsive"}),
        ended("Failed", 137, "ContainerStatusUnknown", "The container could not be located", 5),
    ] {
        let lost = trouble(status);
        assert_eq!((lost.kind, lost.lasting), (TroubleKind::NodeLost, false), "{}", lost.text);
    }
}

#[test]
fn an_init_container_that_fails_keeps_the_pod_from_running() {
    let crash =
        json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "cp: no space left on device"}});
    let status = |state: &Value, last: &Value, phase: &str| {
        json!({
            "phase": phase,
            "initContainerStatuses": [container("copy-wrapper-server", json!({"state": state, "lastState": last}))],
            "containerStatuses": [function(json!({"state": {"waiting": {"reason": "PodInitializing"}}}))],
        })
    };
    let failed = trouble(status(&crash, &json!({}), "Failed"));
    assert_eq!((failed.kind, failed.lasting), (TroubleKind::Crashed { exit_code: Some(1) }, true));
    assert!(failed.text.contains("\"copy-wrapper-server\" ended with exit code 1"), "{}", failed.text);
    assert!(failed.text.contains("no space left on device"), "{}", failed.text);
    let looping = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}});
    let sighting = seen(status(&looping, &crash, "Pending"));
    assert_eq!(sighting.phase, Phase::Alive, "the function's container did not run yet");
    assert!(sighting.trouble.unwrap().lasting);
    let running = json!({"running": {"startedAt": "2026-01-02T03:04:08Z"}});
    assert!(!trouble(status(&running, &crash, "Pending")).lasting, "it may do better this time");
    let pulling = json!({"waiting": {"reason": "ErrImagePull", "message": "not found"}});
    let trouble = trouble(status(&pulling, &json!({}), "Pending"));
    assert_eq!((trouble.kind, trouble.lasting), (TroubleKind::PullFailed, true));
    assert!(trouble.text.contains(WRAPPER), "{}", trouble.text);
}

#[test]
fn a_sidecars_trouble_is_told_but_not_final() {
    let sidecar = |state: Value| {
        let mut pod = pod(json!({
            "phase": "Pending",
            "containerStatuses": [
                container("istio-proxy", state),
                function(json!({"state": {"waiting": {"reason": "ContainerCreating"}}})),
            ],
        }));
        pod["spec"]["containers"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "istio-proxy", "image": "proxy"}));
        see(&pod).unwrap()
    };
    let pulling = sidecar(json!({"state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}));
    let trouble = pulling.trouble.unwrap();
    assert_eq!((trouble.kind, trouble.lasting), (TroubleKind::PullFailed, false));
    let ended = sidecar(json!({"state": {"terminated": {"exitCode": 1}}}));
    assert_eq!((ended.phase, ended.trouble.unwrap().lasting), (Phase::Alive, false));
    assert_eq!(sidecar(json!({"state": {"terminated": {"exitCode": 0}}})).trouble, None);
}

#[test]
fn the_functions_own_trouble_comes_before_a_sidecars() {
    let mut pod = pod(json!({
        "phase": "Pending",
        "containerStatuses": [
            container("a-sidecar", json!({"state": {"waiting": {"reason": "ErrImagePull", "message": "timeout"}}})),
            function(json!({"state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}})),
        ],
    }));
    pod["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "a-sidecar", "image": "proxy"}));
    assert!(see(&pod).unwrap().trouble.unwrap().lasting);
}

#[test]
fn a_mesh_is_known_by_its_sidecar() {
    for (list, name, expected) in [
        ("containers", "istio-proxy", true),
        ("containers", "linkerd-proxy", true),
        ("initContainers", "istio-proxy", true),
        ("initContainers", "istio-init", false),
        ("containers", "logger", false),
    ] {
        let mut pod = pod(json!({}));
        pod["spec"][list].as_array_mut().unwrap().push(json!({"name": name, "image": "x"}));
        assert_eq!(see(&pod).unwrap().has_mesh_sidecar, expected, "{list} {name}");
    }
}

#[test]
fn texts_of_the_cluster_are_bounded() {
    let long = "é\u{7}\n".repeat(100_000);
    for status in [
        waiting("ErrImagePull", &long),
        ended("Failed", 1, "Error", &long, 0),
        json!({"phase": "Failed", "reason": "Evicted", "message": long}),
        json!({"phase": "Failed", "message": long}),
    ] {
        let text = trouble(status).text;
        assert!(text.chars().count() < 2000, "{}", text.chars().count());
        assert!(!text.contains(char::is_control));
    }
}

#[test]
fn odd_values_do_no_harm() {
    let mut odd = pod(json!({"phase": "Running", "podIP": "not an address", "containerStatuses": [
        function(json!({"restartCount": -5})), function(json!({})),
    ]}));
    odd["metadata"]["creationTimestamp"] = json!("0001-01-01T00:00:00Z");
    odd["metadata"]["annotations"]["fn.kpt.dev/reclaim-after"] = json!("-1");
    let sighting = see(&odd).unwrap();
    assert_eq!((sighting.address, sighting.restarts), (None, 0));
    assert_eq!((sighting.created, sighting.reclaim_after), (UNIX_EPOCH, None));
}

proptest! {
    #[test]
    fn any_state_is_looked_at_without_harm(
        phase in "(Pending|Running|Failed|Succeeded|Unknown|Odd)?",
        reason in "(ErrImagePull|CrashLoopBackOff|OOMKilled|StartError|Error|.{0,20})",
        message in ".{0,200}", code in any::<i32>(), restarts in any::<i32>(), state in 0..3,
    ) {
        let state = match state {
            0 => json!({"waiting": {"reason": reason, "message": message}}),
            1 => json!({"running": {}}),
            _ => json!({"terminated": {"exitCode": code, "reason": reason, "message": message}}),
        };
        let status = json!({
            "phase": phase, "reason": reason, "message": message,
            "containerStatuses": [function(json!({"state": state, "lastState": state, "restartCount": restarts}))],
        });
        let sighting = seen(status);
        // What has failed says why.
        prop_assert!(sighting.phase != Phase::Failed || sighting.trouble.is_some());
        prop_assert!(sighting.trouble.is_none_or(|trouble| !trouble.text.is_empty()));
    }
}
