//! The template in force, against an API server that says what the test wants.

use std::{sync::Arc, time::Duration};

use http::Method;
use pods::template::{
    PodSecurity, Problem, Template,
    source::{TemplateSettings, TemplateState, follow},
};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout},
};

use crate::{
    api_server::{self, ApiServer, Exchange},
    rendering::{WRAPPER, pod},
    templates::{config_map, objects},
};

const CONFIG_MAP: &str = "/api/v1/namespaces/porch-system/configmaps/templates";
const PODS: &str = "/api/v1/namespaces/porch-fn-system/podtemplates";
const SERVICES: &str = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/porch-fn-system/servicetemplates";
const POD: &str = "/api/v1/namespaces/porch-fn-system/podtemplates/base-pod-template";
const SERVICE: &str =
    "/apis/config.porch.kpt.dev/v1alpha1/namespaces/porch-fn-system/servicetemplates/base-service-template";

struct Scene {
    server: ApiServer,
    state: watch::Receiver<TemplateState>,
    task: JoinHandle<()>,
}

impl Scene {
    fn new(config_map: bool) -> Self {
        Self::secured(config_map, PodSecurity::Porch)
    }

    fn secured(config_map: bool, security: PodSecurity) -> Self {
        let (client, server) = api_server::start();
        let settings = TemplateSettings {
            config_map: config_map.then(|| ("porch-system".to_owned(), "templates".to_owned())),
            pod_namespace: "porch-fn-system".to_owned(),
            wrapper_image: WRAPPER.to_owned(),
            security,
        };
        let (state, task) = follow(client, settings);
        assert!(matches!(*state.borrow(), TemplateState::Unknown));
        Self { server, state, task: tokio::spawn(task) }
    }

    /// The template that comes in force next.
    async fn ready(&mut self) -> Arc<Template> {
        match self.changed().await {
            TemplateState::Ready(template) => template,
            other => panic!("a template should be in force, but it is {other:?}"),
        }
    }

    /// Why there is none, as told next.
    async fn failed(&mut self) -> (Problem, bool) {
        match self.changed().await {
            TemplateState::Failed(error) => (error.problem.clone(), error.may_pass()),
            other => panic!("there should be no template, but it is {other:?}"),
        }
    }

    async fn changed(&mut self) -> TemplateState {
        timeout(Duration::from_secs(1), self.state.changed()).await.expect("a change").unwrap();
        self.state.borrow_and_update().clone()
    }

    fn is_unchanged(&self) -> bool {
        !self.state.has_changed().unwrap()
    }

    async fn config_map(&mut self) -> Exchange {
        self.server.expect(Method::GET, CONFIG_MAP).await
    }

    /// Both objects are there and watched.
    async fn watched(&mut self) -> Watches {
        self.server.expect(Method::GET, SERVICE).await.answer(&service("9"));
        self.server.expect(Method::GET, POD).await.answer(&pod_template("7"));
        assert_eq!(&*self.ready().await.version, "7");
        self.listed().await
    }

    /// Both objects are listed; their watches are open.
    async fn listed(&mut self) -> Watches {
        for _ in 0..2 {
            let list = self.server.next().await;
            let (objects, name) = match list.path.as_str() {
                PODS => (list_of(&[pod_template("7")]), "base-pod-template"),
                SERVICES => (list_of(&[service("9")]), "base-service-template"),
                path => panic!("{path} should not be asked for"),
            };
            assert!(list.query.contains(&format!("fieldSelector=metadata.name%3D{name}")), "{}", list.query);
            list.answer(&objects);
        }
        self.watches().await
    }

    async fn watches(&mut self) -> Watches {
        let (one, other) = (self.server.next().await, self.server.next().await);
        let (pods, services) = if one.path == PODS { (one, other) } else { (other, one) };
        assert_eq!((pods.path.as_str(), services.path.as_str()), (PODS, SERVICES));
        Watches { pods, services }
    }
}

/// The open watches.
struct Watches {
    pods: Exchange,
    services: Exchange,
}

fn map(version: &str, pod: &str) -> Value {
    let mut map = serde_json::to_value(config_map(pod, None)).unwrap();
    map["metadata"]["resourceVersion"] = json!(version);
    map
}

const USABLE: &str = "spec: {containers: [{name: function, command: [/wrapper-server]}]}";
const UNUSABLE: &str = "spec: {containers: []}";

fn pod_template(version: &str) -> Value {
    let body = json!({"spec": {"containers": [{"name": "function", "command": ["/wrapper-server"]}]}});
    versioned(serde_json::to_value(objects(&body, &json!({})).0).unwrap(), version)
}

fn service(version: &str) -> Value {
    let body = json!({"spec": {"ports": [{"port": 9446}]}});
    versioned(serde_json::to_value(objects(&json!({}), &body).1).unwrap(), version)
}

fn versioned(mut object: Value, version: &str) -> Value {
    object["metadata"]["resourceVersion"] = json!(version);
    object
}

fn list_of(objects: &[Value]) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "100"}, "items": objects})
}

#[tokio::test(start_paused = true)]
async fn a_config_map_is_read_again_and_again() {
    let mut scene = Scene::new(true);
    scene.config_map().await.answer(&map("1", USABLE));
    assert_eq!(&*scene.ready().await.version, "1");
    for _ in 0..3 {
        scene.server.expect_silence(Duration::from_secs(4)).await;
        scene.config_map().await.answer(&map("1", USABLE));
        tokio::task::yield_now().await;
        assert!(scene.is_unchanged());
    }
    scene.config_map().await.answer(&map("2", USABLE));
    assert_eq!(&*scene.ready().await.version, "2");
}

#[tokio::test(start_paused = true)]
async fn a_config_map_that_went_bad_leaves_the_old_template_in_force() {
    let mut scene = Scene::new(true);
    scene.config_map().await.answer(&map("1", USABLE));
    scene.ready().await;
    scene.config_map().await.answer(&map("2", UNUSABLE));
    scene.config_map().await.refuse(404, "NotFound", "it is gone");
    scene.config_map().await.refuse(403, "Forbidden", "not for you");
    scene.config_map().await.refuse(500, "", "one moment");
    let last = scene.config_map().await;
    assert!(scene.is_unchanged());
    last.answer(&map("3", USABLE));
    assert_eq!(&*scene.ready().await.version, "3");
}

#[tokio::test(start_paused = true)]
async fn without_a_config_map_there_is_no_template_until_it_comes() {
    let mut scene = Scene::new(true);
    scene.config_map().await.refuse(500, "", "one moment");
    assert!(
        matches!(scene.failed().await, (Problem::Unreachable(words), true) if words.contains("one moment"))
    );
    scene.config_map().await.refuse(404, "NotFound", "no such map");
    assert_eq!(scene.failed().await, (Problem::Missing, false));
    scene.config_map().await.refuse(404, "NotFound", "no such map");
    scene.config_map().await.refuse(403, "Forbidden", "not for you");
    assert_eq!(scene.failed().await, (Problem::Forbidden("not for you".to_owned()), false));
    scene.config_map().await.answer(&map("1", UNUSABLE));
    assert!(matches!(scene.failed().await, (Problem::NoFunction(_), false)));
    scene.config_map().await.refuse(404, "NotFound", "no such map");
    assert_eq!(scene.failed().await, (Problem::Missing, false));
    scene.config_map().await.answer(&map("1", UNUSABLE));
    assert!(matches!(scene.failed().await, (Problem::NoFunction(_), false)), "as bad as before");
    scene.config_map().await.answer(&map("2", USABLE));
    assert_eq!(&*scene.ready().await.version, "2");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_asked_again() {
    let mut scene = Scene::new(true);
    let unanswered = scene.config_map().await;
    let next = scene.config_map().await;
    assert!(matches!(scene.failed().await, (Problem::Unreachable(_), true)));
    next.answer(&map("1", USABLE));
    scene.ready().await;
    drop(unanswered);
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_when_nobody_wants_to_know() {
    for config_map in [true, false] {
        let mut scene = Scene::new(config_map);
        scene.server.next().await.refuse(500, "", "one moment");
        drop(scene.state);
        timeout(Duration::from_secs(1), scene.task).await.expect("it ends").unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn objects_are_followed_by_watch() {
    let mut scene = Scene::new(false);
    let watches = scene.watched().await;
    // Watches stay open: nothing is asked meanwhile.
    scene.server.expect_silence(Duration::from_mins(10)).await;
    assert!(scene.is_unchanged());

    watches.pods.tell(&[("MODIFIED", pod_template("8"))]);
    assert_eq!(&*scene.ready().await.version, "8");
    let again = scene.server.expect(Method::GET, PODS).await;
    assert!(
        again.query.contains("watch=true") && again.query.contains("resourceVersion=8"),
        "{}",
        again.query
    );

    let mut changed = service("10");
    changed["template"]["spec"]["ports"][0]["name"] = json!("grpc");
    watches.services.tell(&[("MODIFIED", changed)]);
    let template = scene.ready().await;
    assert_eq!(&*template.version, "8", "pods need not be replaced for that");
    assert_eq!(crate::rendering::service(&template)["spec"]["ports"][0]["name"], "grpc");
}

#[tokio::test(start_paused = true)]
async fn missing_objects_are_made_for_operators_to_edit() {
    let mut scene = Scene::new(false);
    scene.server.expect(Method::GET, SERVICE).await.refuse(404, "NotFound", "not found");
    let created = scene.server.expect(Method::POST, SERVICES).await;
    assert_eq!(created.query, "&fieldManager=krm-function-runner");
    assert_eq!(created.body["kind"], "ServiceTemplate");
    assert_eq!(created.body["apiVersion"], "config.porch.kpt.dev/v1alpha1");
    assert_eq!(created.body["template"]["spec"]["ports"][0]["port"], 9446);
    let body = versioned(created.body.clone(), "1");
    created.answer(&body);

    scene.server.expect(Method::GET, POD).await.refuse(404, "NotFound", "not found");
    let created = scene.server.expect(Method::POST, PODS).await;
    assert_eq!(created.body["metadata"]["name"], "base-pod-template");
    let body = versioned(created.body.clone(), "2");
    created.answer(&body);
    let template = scene.ready().await;
    assert_eq!(&*template.version, "2");
    let mut expected = pod(&Template::inline(WRAPPER, PodSecurity::Porch));
    expected["spec"]["containers"][0]["imagePullPolicy"] = json!("IfNotPresent");
    assert_eq!(pod(&template)["spec"], expected["spec"]);
}

#[tokio::test(start_paused = true)]
async fn objects_that_another_replica_makes_meanwhile_are_used() {
    let mut scene = Scene::new(false);
    scene.server.expect(Method::GET, SERVICE).await.refuse(404, "NotFound", "not found");
    scene.server.expect(Method::POST, SERVICES).await.refuse(409, "AlreadyExists", "it exists");
    scene.server.expect(Method::GET, SERVICE).await.answer(&service("9"));
    scene.server.expect(Method::GET, POD).await.answer(&pod_template("7"));
    assert_eq!(&*scene.ready().await.version, "7");
}

#[tokio::test(start_paused = true)]
async fn where_the_kinds_are_not_installed_the_inline_template_is_used_until_they_are() {
    let mut scene = Scene::new(false);
    let not_installed = "the server could not find the requested resource";
    scene.server.expect(Method::GET, SERVICE).await.refuse(404, "NotFound", not_installed);
    scene.server.expect(Method::POST, SERVICES).await.refuse(404, "NotFound", not_installed);
    assert_eq!(&*scene.ready().await.version, "inline-v1");
    scene.server.expect_silence(Duration::from_secs(59)).await;
    scene.server.expect(Method::GET, SERVICE).await.refuse(404, "NotFound", not_installed);
    scene.server.expect(Method::POST, SERVICES).await.refuse(404, "NotFound", not_installed);
    scene.server.expect_silence(Duration::from_secs(59)).await;
    assert!(scene.is_unchanged());
    scene.watched().await;
}

#[tokio::test(start_paused = true)]
async fn where_the_kinds_are_forbidden_the_inline_template_is_used_until_they_are_allowed() {
    let mut scene = Scene::new(false);
    scene.server.expect(Method::GET, SERVICE).await.refuse(403, "Forbidden", "not for you");
    assert_eq!(&*scene.ready().await.version, "inline-v1");
    scene.server.expect_silence(Duration::from_secs(59)).await;
    scene.server.expect(Method::GET, SERVICE).await.answer(&service("9"));
    scene.server.expect(Method::GET, POD).await.refuse(404, "NotFound", "not found");
    scene.server.expect(Method::POST, PODS).await.refuse(403, "Forbidden", "exceeded quota: none of these");
    scene.server.expect_silence(Duration::from_secs(59)).await;
    assert!(scene.is_unchanged());
    scene.watched().await;
}

#[tokio::test(start_paused = true)]
async fn pods_are_as_strict_as_was_asked_for_where_no_template_says_so() {
    let mut scene = Scene::secured(false, PodSecurity::Restricted);
    scene.server.expect(Method::GET, SERVICE).await.refuse(403, "Forbidden", "not for you");
    assert_eq!(&*scene.ready().await.version, "inline-restricted-v1");
    // An operator's own template is used as it is.
    scene.server.expect(Method::GET, SERVICE).await.answer(&service("9"));
    scene.server.expect(Method::GET, POD).await.answer(&pod_template("7"));
    let template = scene.ready().await;
    assert_eq!(&*template.version, "7");
    assert_eq!(pod(&template)["spec"]["automountServiceAccountToken"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn objects_are_made_as_strict_as_was_asked_for() {
    let mut scene = Scene::secured(false, PodSecurity::Restricted);
    scene.server.expect(Method::GET, SERVICE).await.answer(&service("9"));
    scene.server.expect(Method::GET, POD).await.refuse(404, "NotFound", "not found");
    let created = scene.server.expect(Method::POST, PODS).await;
    assert_eq!(created.body["template"]["spec"]["automountServiceAccountToken"], false);
}

#[tokio::test(start_paused = true)]
async fn trouble_is_no_reason_for_the_inline_template() {
    let mut scene = Scene::new(false);
    scene.server.expect(Method::GET, SERVICE).await.refuse(503, "", "starting");
    assert!(
        matches!(scene.failed().await, (Problem::Unreachable(words), true) if words.contains("starting"))
    );
    scene.server.expect(Method::GET, SERVICE).await.refuse(401, "Unauthorized", "no");
    assert!(matches!(scene.failed().await, (Problem::Unreachable(_), true)));
    scene.watched().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_went_bad_leaves_the_old_template_in_force() {
    let mut scene = Scene::new(false);
    let watches = scene.watched().await;
    let mut bad = pod_template("8");
    bad["template"]["spec"]["containers"][0]["name"] = json!("other");
    watches.pods.tell(&[("MODIFIED", bad)]);
    let again = scene.server.expect(Method::GET, PODS).await;
    assert!(scene.is_unchanged());
    again.tell(&[("MODIFIED", pod_template("9"))]);
    assert_eq!(&*scene.ready().await.version, "9");
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_bad_from_the_start_are_told() {
    let mut scene = Scene::new(false);
    scene.server.expect(Method::GET, SERVICE).await.answer(&service("9"));
    let mut bad = pod_template("7");
    bad["template"] = json!({});
    scene.server.expect(Method::GET, POD).await.answer(&bad);
    assert_eq!(scene.failed().await, (Problem::NoPod, false));
    let watches = scene.listed().await;
    assert_eq!(&*scene.ready().await.version, "7", "it was mended meanwhile");
    drop(watches);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_made_again_after_a_while() {
    let mut scene = Scene::new(false);
    let watches = scene.watched().await;
    watches.pods.tell(&[("DELETED", pod_template("8"))]);
    let again = scene.server.expect(Method::GET, PODS).await;
    assert!(again.query.contains("watch=true"));
    let deleted = Instant::now();
    scene.server.expect_silence(Duration::from_secs(59)).await;
    assert!(scene.is_unchanged());
    scene.server.expect(Method::GET, SERVICE).await.answer(&service("9"));
    assert!(deleted.elapsed() < Duration::from_secs(70), "{:?}", deleted.elapsed());
    scene.server.expect(Method::GET, POD).await.refuse(404, "NotFound", "not found");
    let created = scene.server.expect(Method::POST, PODS).await;
    let body = versioned(created.body.clone(), "20");
    created.answer(&body);
    assert_eq!(&*scene.ready().await.version, "20");
}

#[tokio::test(start_paused = true)]
async fn a_template_stays_in_force_when_its_kind_goes() {
    let mut scene = Scene::new(false);
    let watches = scene.watched().await;
    watches.services.tell(&[("DELETED", service("9"))]);
    let again = scene.server.expect(Method::GET, SERVICES).await;
    scene.server.expect(Method::GET, SERVICE).await.refuse(404, "NotFound", "no such kind");
    scene.server.expect(Method::POST, SERVICES).await.refuse(404, "NotFound", "no such kind");
    scene.server.expect_silence(Duration::from_secs(59)).await;
    assert!(scene.is_unchanged());
    drop((watches.pods, again));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_replaced_is_used_at_once() {
    let mut scene = Scene::new(false);
    let watches = scene.watched().await;
    watches.pods.tell(&[("DELETED", pod_template("8")), ("ADDED", pod_template("9"))]);
    assert_eq!(&*scene.ready().await.version, "9");
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_begins_again() {
    let mut scene = Scene::new(false);
    let watches = scene.watched().await;
    let expired = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": 410, "reason": "Expired", "message": "too old resource version",
    });
    watches.pods.tell(&[("ERROR", expired)]);
    let list = scene.server.expect(Method::GET, PODS).await;
    assert!(!list.query.contains("watch=true"), "{}", list.query);
    list.answer(&list_of(&[pod_template("50")]));
    assert_eq!(&*scene.ready().await.version, "50");
    let watch = scene.server.expect(Method::GET, PODS).await;
    assert!(watch.query.contains("watch=true"));
}

#[tokio::test(start_paused = true)]
async fn a_restarted_server_is_watched_again() {
    let mut scene = Scene::new(false);
    let watches = scene.watched().await;
    watches.pods.refuse(503, "", "going down");
    watches.services.refuse(503, "", "going down");
    // Each tries again by itself, less and less often, until the server is back.
    let mut refused = 0;
    while refused < 12 {
        scene.server.next().await.refuse(503, "", "down");
        refused += 1;
    }
    assert!(scene.is_unchanged());
    let changed = pod_template("30");
    let new = loop {
        let exchange = scene.server.next().await;
        match (exchange.path.as_str(), exchange.query.contains("watch=true")) {
            (PODS, true) => exchange.tell(&[("MODIFIED", changed.clone())]),
            (PODS, false) => exchange.answer(&list_of(std::slice::from_ref(&changed))),
            (SERVICES, true) => exchange.tell(&[]),
            (SERVICES, false) => exchange.answer(&list_of(&[service("9")])),
            (POD, _) => exchange.answer(&changed),
            (SERVICE, _) => exchange.answer(&service("9")),
            (path, _) => panic!("{path} should not be asked for"),
        }
        if !scene.is_unchanged() {
            break scene.ready().await;
        }
    };
    assert_eq!(&*new.version, "30");
}
