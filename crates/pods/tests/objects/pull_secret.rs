//! The Secret to pull private images with.

use std::{fs, path::PathBuf, time::Duration};

use http::Method;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use pods::pull_secret::{FileProblem, PullSecret, PullSecretError};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::api_server::{self, ApiServer};

const SECRETS: &str = "/api/v1/namespaces/porch-fn-system/secrets";
const SECRET: &str = "/api/v1/namespaces/porch-fn-system/secrets/auth-secret";
const LOGINS: &str = r#"{"auths":{"example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;
const OTHER_LOGINS: &str = r#"{"auths":{"example.com":{"auth":"b3RoZXI6c2VjcmV0"}}}"#;

struct Scene {
    folder: TempDir,
    secret: PullSecret,
    server: ApiServer,
}

impl Scene {
    /// With this in the file, or no file.
    fn new(content: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (client, server) = api_server::start();
        let path = folder.path().join(".dockerconfigjson");
        let secret = PullSecret::new(client, "porch-fn-system", "auth-secret", path);
        let scene = Self { folder, secret, server };
        if let Some(content) = content {
            scene.write(content);
        }
        scene
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(".dockerconfigjson")
    }

    fn write(&self, content: &str) {
        fs::write(self.path(), content).unwrap();
    }

    fn ensure(&self) -> tokio::task::JoinHandle<Result<String, PullSecretError>> {
        let secret = self.secret.clone();
        tokio::spawn(async move { secret.ensure().await })
    }

    /// Made once, and as the file is.
    async fn settle(&mut self) {
        let ensured = self.ensure();
        self.server.expect(Method::GET, SECRET).await.refuse(
            404,
            "NotFound",
            "secrets \"auth-secret\" not found",
        );
        let created = self.server.expect(Method::POST, SECRETS).await;
        let body = created.body.clone();
        created.answer(&body);
        assert_eq!(ensured.await.unwrap().unwrap(), "auth-secret");
    }
}

fn secret(content: &str, version: &str) -> Value {
    let data = serde_json::to_value(ByteString(content.as_bytes().to_vec())).unwrap();
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"namespace": "porch-fn-system", "name": "auth-secret", "resourceVersion": version, "uid": "u"},
        "data": {".dockerconfigjson": data},
    })
}

fn content(secret: &Value) -> String {
    let secret: Secret = serde_json::from_value(secret.clone()).unwrap();
    let data = secret.data.unwrap();
    assert_eq!(data.len(), 1);
    String::from_utf8(data[".dockerconfigjson"].0.clone()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn it_is_made_when_it_is_first_needed() {
    let mut scene = Scene::new(Some(LOGINS));
    let follower = tokio::spawn(scene.secret.clone().follow());
    scene.server.expect_silence(Duration::from_mins(5)).await;
    let ensured = scene.ensure();
    scene.server.expect(Method::GET, SECRET).await.refuse(404, "NotFound", "");
    let created = scene.server.expect(Method::POST, SECRETS).await;
    assert_eq!(created.query, "&fieldManager=krm-function-runner");
    assert_eq!(created.body["type"], "kubernetes.io/dockerconfigjson");
    assert_eq!(created.body["metadata"], json!({"namespace": "porch-fn-system", "name": "auth-secret"}));
    assert_eq!(content(&created.body), LOGINS);
    let body = created.body.clone();
    created.answer(&body);
    assert_eq!(ensured.await.unwrap().unwrap(), "auth-secret");
    follower.abort();
}

#[tokio::test(start_paused = true)]
async fn it_is_looked_at_again_after_a_minute_and_not_sooner() {
    let mut scene = Scene::new(Some(LOGINS));
    scene.settle().await;
    for _ in 0..50 {
        assert_eq!(scene.secret.ensure().await.unwrap(), "auth-secret");
        sleep(Duration::from_secs(1)).await;
    }
    sleep(Duration::from_secs(11)).await;
    let ensured = scene.ensure();
    scene.server.expect(Method::GET, SECRET).await.answer(&secret(LOGINS, "1"));
    ensured.await.unwrap().unwrap();
    scene.server.expect_silence(Duration::from_mins(10)).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_is_as_the_file_is_is_not_written() {
    let mut scene = Scene::new(Some(LOGINS));
    let ensured = scene.ensure();
    let mut managed = secret(LOGINS, "1");
    managed["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "somebody"});
    scene.server.expect(Method::GET, SECRET).await.answer(&managed);
    ensured.await.unwrap().unwrap();
    scene.server.expect_silence(Duration::from_secs(50)).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_the_original_runner_made_is_brought_in_step() {
    let mut scene = Scene::new(Some(LOGINS));
    let ensured = scene.ensure();
    let mut original = secret(OTHER_LOGINS, "5");
    original["metadata"]["annotations"] = json!({"kept": "yes"});
    scene.server.expect(Method::GET, SECRET).await.answer(&original);
    let updated = scene.server.expect(Method::PUT, SECRET).await;
    assert_eq!(updated.body["metadata"]["resourceVersion"], "5", "so that no other change is lost");
    assert_eq!(updated.body["metadata"]["annotations"]["kept"], "yes");
    assert_eq!(content(&updated.body), LOGINS);
    let body = updated.body.clone();
    updated.answer(&body);
    ensured.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_comes_second_looks_at_what_the_first_did() {
    let mut scene = Scene::new(Some(LOGINS));
    let ensured = scene.ensure();
    scene.server.expect(Method::GET, SECRET).await.refuse(404, "NotFound", "");
    scene.server.expect(Method::POST, SECRETS).await.refuse(409, "AlreadyExists", "it exists");
    scene.server.expect(Method::GET, SECRET).await.answer(&secret(OTHER_LOGINS, "1"));
    scene.server.expect(Method::PUT, SECRET).await.refuse(409, "Conflict", "it changed");
    scene.server.expect(Method::GET, SECRET).await.answer(&secret(OTHER_LOGINS, "2"));
    scene.server.expect(Method::PUT, SECRET).await.refuse(404, "NotFound", "it was deleted");
    scene.server.expect(Method::GET, SECRET).await.answer(&secret(LOGINS, "3"));
    ensured.await.unwrap().unwrap();
    scene.server.expect_silence(Duration::from_secs(50)).await;
}

/// Whose it is says a label, an owner or a key beside ours: the original looks at none of them.
#[tokio::test(start_paused = true)]
async fn one_that_others_look_after_is_brought_in_step_and_stays_theirs() {
    let owner = json!([{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x"}]);
    let mut scene = Scene::new(Some(LOGINS));
    let ensured = scene.ensure();
    let mut there = secret(OTHER_LOGINS, "1");
    there["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
    there["metadata"]["ownerReferences"] = owner.clone();
    there["data"]["more"] = json!("e30=");
    scene.server.expect(Method::GET, SECRET).await.answer(&there);
    let updated = scene.server.expect(Method::PUT, SECRET).await;
    let mut expected = there.clone();
    expected["data"][".dockerconfigjson"] = secret(LOGINS, "1")["data"][".dockerconfigjson"].clone();
    assert_eq!(updated.body, expected, "the one key is changed and nothing else");
    let body = updated.body.clone();
    updated.answer(&body);
    ensured.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_changed_is_used_as_it_is() {
    let mut scene = Scene::new(Some(LOGINS));
    let ensured = scene.ensure();
    let mut there = secret(OTHER_LOGINS, "1");
    there["immutable"] = json!(true);
    scene.server.expect(Method::GET, SECRET).await.answer(&there);
    assert_eq!(ensured.await.unwrap().unwrap(), "auth-secret", "the cluster can pull with it");
    scene.server.expect_silence(Duration::from_secs(50)).await;
}

#[tokio::test(start_paused = true)]
async fn one_of_another_type_is_never_written() {
    let mut scene = Scene::new(Some(LOGINS));
    let ensured = scene.ensure();
    let mut there = secret(OTHER_LOGINS, "1");
    there["type"] = json!("Opaque");
    scene.server.expect(Method::GET, SECRET).await.answer(&there);
    let error = ensured.await.unwrap().unwrap_err();
    assert!(!error.may_pass());
    assert!(error.to_string().contains("porch-fn-system/auth-secret is of type Opaque"), "{error}");
    assert!(error.to_string().contains("--registry-auth-secret-name"), "{error}");
    scene.server.expect_silence(Duration::from_secs(50)).await;
}

#[tokio::test(start_paused = true)]
async fn all_who_need_it_at_once_share_one_look() {
    let mut scene = Scene::new(Some(LOGINS));
    let ensured: Vec<_> = (0..20).map(|_| scene.ensure()).collect();
    scene.server.expect(Method::GET, SECRET).await.answer(&secret(LOGINS, "1"));
    for ensured in ensured {
        ensured.await.unwrap().unwrap();
    }
    scene.server.expect_silence(Duration::from_secs(50)).await;
}

#[tokio::test(start_paused = true)]
async fn one_who_gives_up_leaves_the_others_their_turn() {
    let mut scene = Scene::new(Some(LOGINS));
    let first = scene.ensure();
    let unanswered = scene.server.expect(Method::GET, SECRET).await;
    let second = scene.ensure();
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    scene.server.expect(Method::GET, SECRET).await.answer(&secret(LOGINS, "1"));
    second.await.unwrap().unwrap();
    drop(unanswered);
}

#[tokio::test(start_paused = true)]
async fn trouble_that_may_pass_is_waited_for_and_then_told_to_all() {
    let mut scene = Scene::new(Some(LOGINS));
    let ensured = scene.ensure();
    for code in [503, 429, 500] {
        scene.server.expect(Method::GET, SECRET).await.refuse(code, "", "one moment");
    }
    scene.server.expect(Method::GET, SECRET).await.answer(&secret(LOGINS, "1"));
    ensured.await.unwrap().unwrap();

    let mut scene = Scene::new(Some(LOGINS));
    let ensured: Vec<_> = (0..5).map(|_| scene.ensure()).collect();
    let begun = tokio::time::Instant::now();
    let answers = async {
        loop {
            scene.server.next().await.refuse(503, "", "the server is overloaded");
        }
    };
    let told = async {
        for ensured in ensured {
            let error = ensured.await.unwrap().unwrap_err();
            assert!(error.may_pass());
            assert!(error.to_string().contains("the server is overloaded"), "{error}");
        }
    };
    tokio::select! { () = answers => {}, () = told => {} }
    assert!(begun.elapsed() < Duration::from_secs(15), "not one after the other: {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_not_waited_for_for_ever() {
    let mut scene = Scene::new(Some(LOGINS));
    let ensured = scene.ensure();
    let hanging = scene.server.expect(Method::GET, SECRET).await;
    let error = ensured.await.unwrap().unwrap_err();
    assert!(error.may_pass(), "{error}");
    drop(hanging);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_at_once() {
    for (asked, code, reason) in
        [("GET", 403, "Forbidden"), ("POST", 403, "Forbidden"), ("POST", 404, "NotFound")]
    {
        let mut scene = Scene::new(Some(LOGINS));
        let ensured = scene.ensure();
        let read = scene.server.expect(Method::GET, SECRET).await;
        if asked == "GET" {
            read.refuse(code, reason, "not for you");
        } else {
            read.refuse(404, "NotFound", "");
            scene.server.expect(Method::POST, SECRETS).await.refuse(code, reason, "not for you");
        }
        let error = ensured.await.unwrap().unwrap_err();
        assert!(!error.may_pass());
        assert!(error.to_string().contains("Secret porch-fn-system/auth-secret: not for you"), "{error}");
        scene.server.expect_silence(Duration::from_secs(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_was_there_is_used_while_the_server_is_in_trouble() {
    let mut scene = Scene::new(Some(LOGINS));
    scene.settle().await;
    sleep(Duration::from_mins(2)).await;
    let ensured = scene.ensure();
    let answers = async {
        loop {
            scene.server.next().await.refuse(503, "", "down");
        }
    };
    tokio::select! {
        () = answers => {}
        ensured = ensured => assert_eq!(ensured.unwrap().unwrap(), "auth-secret"),
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_was_there_is_used_without_the_right_to_look_at_it_but_not_when_it_was_exchanged() {
    let mut scene = Scene::new(Some(LOGINS));
    scene.settle().await;
    sleep(Duration::from_mins(2)).await;
    let ensured = scene.ensure();
    scene.server.expect(Method::GET, SECRET).await.refuse(403, "Forbidden", "not any more");
    assert_eq!(ensured.await.unwrap().unwrap(), "auth-secret");
    scene.server.expect_silence(Duration::from_mins(2)).await;
    let ensured = scene.ensure();
    let mut exchanged = secret(LOGINS, "1");
    exchanged["type"] = json!("Opaque");
    scene.server.expect(Method::GET, SECRET).await.answer(&exchanged);
    assert!(matches!(ensured.await.unwrap(), Err(PullSecretError::Foreign { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_being_written_is_waited_for() {
    for half in ["", r#"{"auths": {"exam"#] {
        let mut scene = Scene::new(Some(half));
        let ensured = scene.ensure();
        // The clock is stopped: this is between the first look and the second.
        sleep(Duration::from_millis(50)).await;
        scene.write(LOGINS);
        scene.server.expect(Method::GET, SECRET).await.answer(&secret(LOGINS, "1"));
        ensured.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_file_is_brought_over_without_being_asked() {
    let mut scene = Scene::new(Some(LOGINS));
    scene.settle().await;
    let follower = tokio::spawn(scene.secret.clone().follow());
    scene.server.expect_silence(Duration::from_mins(5)).await;
    scene.write(OTHER_LOGINS);
    scene.server.expect(Method::GET, SECRET).await.refuse(403, "Forbidden", "for a moment");
    scene.server.expect(Method::GET, SECRET).await.answer(&secret(LOGINS, "1"));
    let updated = scene.server.expect(Method::PUT, SECRET).await;
    assert_eq!(content(&updated.body), OTHER_LOGINS);
    let body = updated.body.clone();
    updated.answer(&body);
    scene.server.expect_silence(Duration::from_mins(5)).await;
    follower.abort();
}

#[tokio::test(start_paused = true)]
async fn a_changed_file_is_brought_over_by_the_next_who_needs_it() {
    let mut scene = Scene::new(Some(LOGINS));
    scene.settle().await;
    scene.write(OTHER_LOGINS);
    let ensured = scene.ensure();
    scene.server.expect(Method::GET, SECRET).await.answer(&secret(LOGINS, "1"));
    let updated = scene.server.expect(Method::PUT, SECRET).await;
    let body = updated.body.clone();
    updated.answer(&body);
    ensured.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_used_is_told_and_nothing_is_asked() {
    let huge = format!(r#"{{"auths": {{}}, "x": "{}"}}"#, "x".repeat(1 << 20));
    let deep = "[".repeat(100_000);
    for (written, says) in [
        (None, "No such file"),
        (Some(""), "it is empty"),
        (Some(" \n"), "it is empty"),
        (Some("{\"auths\":\n {\"hunter2\": !}}"), "from line 2, column 14 on"),
        (Some("[]"), "not a JSON object"),
        (Some("\"hunter2\""), "not a JSON object"),
        (Some(&huge), "more than the 1048576 bytes"),
        (Some(&deep), "not valid JSON"),
    ] {
        let mut scene = Scene::new(written);
        let error = scene.secret.ensure().await.unwrap_err();
        assert!(!error.may_pass());
        let text = error.to_string();
        assert!(text.contains(says), "{text}");
        assert!(
            text.contains(scene.path().to_str().unwrap()) && text.contains("--registry-auth-secret-path")
        );
        assert!(!text.contains("hunter2"), "{text}");
        scene.server.expect_silence(Duration::from_secs(50)).await;
    }
    let mut scene = Scene::new(None);
    fs::create_dir(scene.path()).unwrap();
    let error = scene.secret.ensure().await.unwrap_err();
    assert!(matches!(error, PullSecretError::File { problem: FileProblem::Unreadable(_), .. }), "{error}");
    scene.server.expect_silence(Duration::from_secs(50)).await;
}

#[tokio::test(start_paused = true)]
async fn a_file_that_comes_late_is_used_then() {
    let mut scene = Scene::new(None);
    scene.secret.ensure().await.unwrap_err();
    scene.write(LOGINS);
    scene.settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_file_that_went_bad_leaves_the_secret_as_it_was() {
    let mut scene = Scene::new(Some(LOGINS));
    scene.settle().await;
    for content in ["{", "[]"] {
        scene.write(content);
        assert_eq!(scene.secret.ensure().await.unwrap(), "auth-secret");
    }
    fs::remove_file(scene.path()).unwrap();
    assert_eq!(scene.secret.ensure().await.unwrap(), "auth-secret");
    scene.server.expect_silence(Duration::from_secs(50)).await;
}

#[test]
fn nothing_secret_is_shown() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _inside = runtime.enter();
    assert!(!format!("{:?}", Scene::new(Some(LOGINS)).secret).contains("dXNlcjpwYXNzd29yZA"));
}
