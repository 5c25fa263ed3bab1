//! The objects of a cluster, against an API server that says what the test wants.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use function_runner::routing::{Routing, Terms, objects::ObjectFollower};
use http::Method;
use registry::Reference;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{
    api_server::{self, ApiServer, Exchange, status},
    terms,
};

const OBJECTS: &str = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/porch-fn-system/functionconfigs";
const OURS: &str = "config.porch.kpt.dev/functionconfig-function-runner";
const THEIRS: &str = "config.porch.kpt.dev/functionconfig-porch-server";

/// Longer than the intervals at which we look again by ourselves.
const LONG: Duration = Duration::from_mins(5);

struct Scene {
    server: ApiServer,
    routing: Routing,
    task: JoinHandle<()>,
}

impl Scene {
    fn new() -> Self {
        let (client, server) = api_server::start();
        let routing = Routing::new(terms());
        let follower = ObjectFollower::new(client, "porch-fn-system", routing.clone());
        Self { server, routing, task: tokio::spawn(follower.follow()) }
    }

    /// A cluster with these objects.
    async fn with(objects: &[&Value]) -> Self {
        let mut scene = Self::new();
        scene.list(objects).await;
        scene
    }

    async fn list(&mut self, objects: &[&Value]) {
        let list = self.server.expect(Method::GET, OBJECTS).await;
        list.answer(&json!({
            "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "FunctionConfigList",
            "metadata": { "resourceVersion": "100" }, "items": objects,
        }));
    }

    async fn tell(&mut self, kind: &str, object: &Value) {
        self.server.watch().await.tell(&[(kind, object.clone())]);
    }

    /// A patch of an object's finalizers and such.
    async fn patch(&mut self, name: &str) -> Exchange {
        let exchange = self.server.expect(Method::PATCH, &format!("{OBJECTS}/{name}")).await;
        assert!(exchange.query.contains("fieldManager=krm-function-runner"), "{}", exchange.query);
        exchange
    }

    /// A patch of an object's status.
    async fn patch_status(&mut self, name: &str) -> Exchange {
        let exchange = self.server.expect(Method::PATCH, &format!("{OBJECTS}/{name}/status")).await;
        assert!(exchange.query.contains("fieldManager=krm-function-runner"), "{}", exchange.query);
        exchange
    }

    /// Answers a patch as the API server does, and tells of it.
    async fn accept(&mut self, patch: Exchange, object: &mut Value) {
        merge(object, &patch.body);
        let version: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        object["metadata"]["resourceVersion"] = json!((version + 1).to_string());
        patch.answer(object);
        self.tell("MODIFIED", object).await;
    }

    fn serves(&self, image: &str) -> bool {
        self.routing.index().executable(&Reference::parse(image).unwrap(), None).is_some()
    }

    async fn becomes(&mut self, image: &str, expected: bool) {
        for _ in 0..100 {
            if self.serves(image) == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("that {image} is served never becomes {expected}");
    }

    /// That was all.
    async fn end(mut self) {
        self.server.expect_silence(LONG).await;
        assert!(!self.task.is_finished());
        self.task.abort();
    }
}

/// What a merge patch does.
fn merge(target: &mut Value, patch: &Value) {
    match patch {
        Value::Object(fields) => {
            if !target.is_object() {
                *target = json!({});
            }
            for (name, value) in fields {
                if value.is_null() {
                    target.as_object_mut().unwrap().remove(name);
                } else {
                    merge(&mut target[name], value);
                }
            }
        }
        other => *target = other.clone(),
    }
}

fn object(name: &str, finalizers: &[&str]) -> Value {
    json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "FunctionConfig",
        "metadata": {
            "name": name, "namespace": "porch-fn-system", "uid": format!("uid-{name}"),
            "resourceVersion": "10", "generation": 1, "creationTimestamp": "2024-01-01T00:00:00Z",
            "finalizers": finalizers,
        },
        "spec": { "image": name, "binaryExecutor": { "path": name, "tags": ["v1"] } },
    })
}

/// An object whose status is complete.
fn settled(name: &str) -> Value {
    let mut object = object(name, &[THEIRS, OURS]);
    object["status"] = json!({
        "apiServerObservedGeneration": 1,
        "functionRunnerObservedGeneration": 1,
        "conditions": [{
            "type": "Ready", "status": "True", "observedGeneration": 1, "reason": "Applied",
            "message": "everything is in force", "lastTransitionTime": "2024-01-01T00:00:01Z",
        }],
        "executors": [{ "type": "binary", "tags": ["v1"] }],
    });
    object
}

/// The same after an edit.
fn edited(object: &Value, tag: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["generation"] = json!(2);
    object["metadata"]["resourceVersion"] = json!("20");
    object["spec"]["binaryExecutor"]["tags"] = json!([tag]);
    object
}

#[tokio::test(start_paused = true)]
async fn a_new_object_is_served_held_and_told() {
    let mut f = object("f", &[THEIRS]);
    let mut scene = Scene::with(&[&f]).await;
    let patch = scene.patch("f").await;
    assert!(scene.serves("example.com/f:v1"), "before anything is written");
    assert_eq!(patch.body, json!({ "metadata": { "resourceVersion": "10", "finalizers": [THEIRS, OURS] } }));
    scene.accept(patch, &mut f).await;
    let patch = scene.patch_status("f").await;
    assert!(patch.query.contains("fieldValidation=Strict"), "{}", patch.query);
    assert_eq!(patch.body["metadata"], json!({ "resourceVersion": "11" }));
    let mut status = patch.body["status"].clone();
    assert!(status["conditions"][0]["lastTransitionTime"].take().as_str().unwrap().ends_with('Z'));
    let expected = json!({
        "functionRunnerObservedGeneration": 1,
        "conditions": [{
            "type": "Ready", "status": "True", "observedGeneration": 1, "reason": "Applied",
            "message": "everything is in force", "lastTransitionTime": null,
        }],
        "executors": [{ "type": "binary", "tags": ["v1"] }],
    });
    assert_eq!(status, expected);
    scene.accept(patch, &mut f).await;
    assert_eq!(f["metadata"]["finalizers"], json!([THEIRS, OURS]));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn another_object_of_the_same_name_is_another_object() {
    let mut scene = Scene::with(&[&settled("f")]).await;
    scene.becomes("example.com/f:v1", true).await;
    // Deleted and made anew while nobody watched.
    let expired = status(410, "Expired", "too old resource version");
    scene.server.watch().await.tell(&[("ERROR", expired)]);
    let mut f = object("f", &[]);
    f["metadata"]["uid"] = json!("another");
    f["metadata"]["resourceVersion"] = json!("90");
    scene.list(&[&f]).await;
    let patch = scene.patch("f").await;
    scene.accept(patch, &mut f).await;
    let patch = scene.patch_status("f").await;
    assert_eq!(patch.body["status"]["functionRunnerObservedGeneration"], 1);
    scene.accept(patch, &mut f).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_executable_that_comes_later_is_noticed() {
    static IS_THERE: AtomicBool = AtomicBool::new(false);
    let check = |_: &Path| {
        if IS_THERE.load(Ordering::Relaxed) { Ok(()) } else { Err("is missing".to_owned()) }
    };
    let (client, server) = api_server::start();
    let routing = Routing::new(Terms { check, ..terms() });
    let follower = ObjectFollower::new(client, "porch-fn-system", routing.clone());
    let mut scene = Scene { server, routing, task: tokio::spawn(follower.follow()) };
    let mut f = settled("f");
    scene.list(&[&f]).await;
    let patch = scene.patch_status("f").await;
    assert_eq!(patch.body["status"]["conditions"][0]["reason"], "ExecutableMissing");
    scene.accept(patch, &mut f).await;
    scene.server.expect_silence(Duration::from_mins(2)).await;
    IS_THERE.store(true, Ordering::Relaxed);
    let patch = scene.patch_status("f").await;
    assert_eq!(patch.body["status"]["conditions"][0]["reason"], "Applied");
    assert_eq!(patch.body["status"]["error"], Value::Null);
    scene.accept(patch, &mut f).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_complete_is_left_alone() {
    let scene = Scene::with(&[&settled("f"), &settled("g")]).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_in_force_before_it_is_told() {
    let f = settled("f");
    let mut scene = Scene::with(&[&f]).await;
    scene.becomes("example.com/f:v1", true).await;
    let mut edited = edited(&f, "v2");
    scene.tell("MODIFIED", &edited).await;
    let patch = scene.patch_status("f").await;
    assert!(scene.serves("example.com/f:v2") && !scene.serves("example.com/f:v1"));
    let status = &patch.body["status"];
    assert_eq!(status["functionRunnerObservedGeneration"], 2);
    assert_eq!(status["conditions"][0]["lastTransitionTime"], "2024-01-01T00:00:01Z", "it was ready before");
    assert_eq!(status.get("error"), None);
    scene.accept(patch, &mut edited).await;
    assert_eq!(edited["status"]["apiServerObservedGeneration"], 1, "this is not ours");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_is_served_no_more_and_let_go() {
    let f = settled("f");
    let mut scene = Scene::with(&[&f, &settled("g")]).await;
    scene.becomes("example.com/f:v1", true).await;
    let mut going = f.clone();
    going["metadata"]["deletionTimestamp"] = json!("2024-01-02T00:00:00Z");
    going["metadata"]["resourceVersion"] = json!("20");
    scene.tell("MODIFIED", &going).await;
    let patch = scene.patch("f").await;
    assert!(!scene.serves("example.com/f:v1") && scene.serves("example.com/g:v1"));
    assert_eq!(patch.body, json!({ "metadata": { "resourceVersion": "20", "finalizers": [THEIRS] } }));
    scene.accept(patch, &mut going).await;
    scene.tell("DELETED", &going).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_without_us_needs_nothing_of_us() {
    let mut going = object("f", &[THEIRS]);
    going["metadata"]["deletionTimestamp"] = json!("2024-01-02T00:00:00Z");
    let mut gone = settled("g");
    let mut scene = Scene::with(&[&going, &gone]).await;
    scene.becomes("example.com/g:v1", true).await;
    assert!(!scene.serves("example.com/f:v1"));
    gone["metadata"]["resourceVersion"] = json!("20");
    scene.tell("DELETED", &gone).await;
    scene.becomes("example.com/g:v1", false).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_writes_in_between_wins() {
    let mut f = object("f", &[]);
    let mut scene = Scene::with(&[&f]).await;
    let patch = scene.patch("f").await;
    patch.refuse(409, "Conflict", "the object has been modified");
    // Another component put its finalizer there.
    f["metadata"]["finalizers"] = json!([THEIRS]);
    f["metadata"]["resourceVersion"] = json!("15");
    scene.tell("MODIFIED", &f).await;
    let patch = scene.patch("f").await;
    assert_eq!(patch.body, json!({ "metadata": { "resourceVersion": "15", "finalizers": [THEIRS, OURS] } }));
    scene.accept(patch, &mut f).await;
    // Another replica says the same.
    let patch = scene.patch_status("f").await;
    f["status"] = settled("f")["status"].clone();
    f["metadata"]["resourceVersion"] = json!("17");
    scene.tell("MODIFIED", &f).await;
    patch.refuse(409, "Conflict", "the object has been modified");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn other_opinions_are_not_contradicted_again_and_again() {
    let mut f = settled("f");
    let mut scene = Scene::with(&[&f]).await;
    scene.becomes("example.com/f:v1", true).await;
    for version in 20..25 {
        f["metadata"]["resourceVersion"] = json!(version.to_string());
        f["status"]["conditions"][0]["status"] = json!(if version % 2 == 0 { "False" } else { "True" });
        f["status"]["executors"] = json!([]);
        f["status"]["error"] = json!("function-runner: another replica has no such file");
        scene.tell("MODIFIED", &f).await;
    }
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn with_porchs_definition_only_its_fields_are_written() {
    let (mut f, mut g) = (object("f", &[OURS]), object("g", &[OURS]));
    g["spec"]["binaryExecutor"]["path"] = json!("missing");
    let mut scene = Scene::with(&[&f]).await;
    let patch = scene.patch_status("f").await;
    assert!(patch.body["status"].get("conditions").is_some());
    let words =
        "strict decoding error: unknown field \"status.conditions\", unknown field \"status.executors\"";
    patch.refuse(400, "BadRequest", words);
    let patch = scene.patch_status("f").await;
    assert_eq!(patch.body["status"], json!({ "functionRunnerObservedGeneration": 1 }));
    assert!(!patch.query.contains("Strict"), "{}", patch.query);
    scene.accept(patch, &mut f).await;
    // Once it is known nobody has to find out.
    scene.tell("ADDED", &g).await;
    let patch = scene.patch_status("g").await;
    let error = "function-runner: spec.binaryExecutor.path: the executable /functions/missing is missing: calls go on to \
                 the next runtime until it can be executed";
    assert_eq!(patch.body["status"], json!({ "functionRunnerObservedGeneration": 1, "error": error }));
    scene.accept(patch, &mut g).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn fields_that_an_old_api_server_drops_are_not_sent_again() {
    let (mut f, mut g) = (object("f", &[OURS]), object("g", &[OURS]));
    let mut scene = Scene::with(&[&f]).await;
    let patch = scene.patch_status("f").await;
    f["status"] = json!({ "functionRunnerObservedGeneration": 1 });
    f["metadata"]["resourceVersion"] = json!("11");
    patch.answer(&f);
    scene.tell("MODIFIED", &f).await;
    scene.tell("ADDED", &g).await;
    let patch = scene.patch_status("g").await;
    assert_eq!(patch.body["status"], json!({ "functionRunnerObservedGeneration": 1 }));
    scene.accept(patch, &mut g).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn errors_of_others_stay_and_ours_go() {
    let (mut f, mut g) = (settled("f"), settled("g"));
    f["status"]["error"] = json!("porch-server: no such builtin");
    g["status"]["error"] = json!("function-runner: spec.image: is missing");
    let mut scene = Scene::with(&[&f, &g]).await;
    let patch = scene.patch_status("g").await;
    assert_eq!(patch.body["status"], json!({ "error": null }));
    scene.accept(patch, &mut g).await;
    assert!(g["status"].get("error").is_none());
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_told_on_the_object_and_others_are_unaffected() {
    let (mut broken, fine) = (object("broken", &[OURS]), settled("fine"));
    broken["spec"] = json!({ "image": ["not", "text"], "podExecutor": "neither", "wasmExecutor": {} });
    let mut scene = Scene::with(&[&broken, &fine]).await;
    let patch = scene.patch_status("broken").await;
    assert!(scene.serves("example.com/fine:v1"));
    let status = &patch.body["status"];
    assert_eq!(status["functionRunnerObservedGeneration"], 1);
    let error = status["error"].as_str().unwrap();
    assert!(error.starts_with("function-runner: spec.image: must be text, not a list; "), "{error}");
    let ready = &status["conditions"][0];
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("Invalid")));
    assert!(ready["message"].as_str().unwrap().contains("does not know it: spec.wasmExecutor"), "{ready}");
    scene.accept(patch, &mut broken).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_loser_of_a_conflict_is_told_and_wins_when_the_other_goes() {
    let (old, mut new) = (settled("f"), settled("new"));
    new["metadata"]["creationTimestamp"] = json!("2024-06-01T00:00:00Z");
    new["spec"]["image"] = json!("f");
    let mut scene = Scene::with(&[&old, &new]).await;
    let patch = scene.patch_status("new").await;
    let ready = &patch.body["status"]["conditions"][0];
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("Conflict")));
    let message =
        "spec.binaryExecutor.tags: the FunctionConfig \"f\" configures …/f:v1 already, and was first";
    assert_eq!(ready["message"], message);
    assert_eq!(patch.body["status"]["executors"], json!([{ "type": "binary" }]));
    scene.accept(patch, &mut new).await;
    scene.tell("DELETED", &old).await;
    let patch = scene.patch_status("new").await;
    assert_eq!(patch.body["status"]["conditions"][0]["status"], "True");
    assert_eq!(patch.body["status"]["error"], Value::Null);
    scene.accept(patch, &mut new).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn where_we_may_not_write_objects_are_used_all_the_same() {
    let mut f = object("f", &[]);
    let mut scene = Scene::with(&[&f, &settled("g")]).await;
    let refusal = "functionconfigs \"f\" is forbidden: User \"u\" cannot patch resource \"functionconfigs\"";
    scene.patch("f").await.refuse(403, "Forbidden", refusal);
    assert!(scene.serves("example.com/f:v1"));
    scene.server.expect_silence(Duration::from_secs(50)).await;
    // Rights may come later.
    let patch = scene.patch("f").await;
    scene.accept(patch, &mut f).await;
    let patch = scene.patch_status("f").await;
    scene.accept(patch, &mut f).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_policy_protects_does_not_hold_up_others() {
    let (mut f, mut g) = (object("f", &[]), object("g", &[]));
    let mut scene = Scene::with(&[&f]).await;
    let refusal = "admission webhook \"guard\" denied the request";
    scene.patch("f").await.refuse(403, "Forbidden", refusal);
    scene.tell("ADDED", &g).await;
    let patch = scene.patch("g").await;
    scene.accept(patch, &mut g).await;
    let patch = scene.patch_status("g").await;
    scene.accept(patch, &mut g).await;
    let patch = scene.patch("f").await;
    scene.accept(patch, &mut f).await;
    let patch = scene.patch_status("f").await;
    scene.accept(patch, &mut f).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_tried_again_less_and_less_often() {
    let mut f = object("f", &[]);
    let mut scene = Scene::with(&[&f]).await;
    let begun = tokio::time::Instant::now();
    for _ in 0..4 {
        scene.patch("f").await.refuse(500, "InternalError", "a webhook is down");
    }
    let patch = scene.patch("f").await;
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_secs(15) && waited < Duration::from_secs(20), "{waited:?}");
    scene.accept(patch, &mut f).await;
    let patch = scene.patch_status("f").await;
    scene.accept(patch, &mut f).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn kinds_that_are_not_installed_are_found_when_they_are() {
    let (client, server) = api_server::start();
    let routing = Routing::new(terms());
    let follower = ObjectFollower::new(client, "porch-fn-system", routing.clone());
    let first_look = follower.first_look();
    let mut scene = Scene { server, routing, task: tokio::spawn(follower.follow()) };
    for (code, reason) in [(404, "NotFound"), (404, "NotFound"), (403, "Forbidden")] {
        let list = scene.server.expect(Method::GET, OBJECTS).await;
        list.refuse(code, reason, "the server could not find the requested resource");
    }
    tokio::time::timeout(Duration::from_secs(1), first_look)
        .await
        .expect("nobody waits for what is not there");
    scene.list(&[&settled("f")]).await;
    scene.becomes("example.com/f:v1", true).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_watch_everything_is_read_anew() {
    let (f, g) = (settled("f"), settled("g"));
    let mut scene = Scene::with(&[&f, &g]).await;
    scene.becomes("example.com/f:v1", true).await;
    let expired = status(410, "Expired", "too old resource version");
    scene.server.watch().await.tell(&[("ERROR", expired)]);
    let list = scene.server.expect(Method::GET, OBJECTS).await;
    assert!(scene.serves("example.com/f:v1"), "until it is known better");
    list.refuse(503, "ServiceUnavailable", "not now");
    scene.list(&[&g]).await;
    scene.becomes("example.com/f:v1", false).await;
    assert!(scene.serves("example.com/g:v1"));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn many_changes_at_once_are_put_in_force_together() {
    let objects: Vec<_> = (0..50).map(|number| settled(&format!("f{number}"))).collect();
    let mut scene = Scene::with(&[]).await;
    let mut built = scene.routing.subscribe();
    built.borrow_and_update();
    let events: Vec<_> = objects.iter().map(|object| ("ADDED", object.clone())).collect();
    scene.server.watch().await.tell(&events);
    scene.becomes("example.com/f49:v1", true).await;
    assert!(scene.serves("example.com/f0:v1"));
    built.changed().await.unwrap();
    assert_eq!(built.borrow_and_update().verdicts.len(), 50);
    assert!(!built.has_changed().unwrap());
    scene.end().await;
}
