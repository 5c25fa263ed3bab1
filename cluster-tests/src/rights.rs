//! The rights of a runner: those that Porch gives its own, no more.

use std::{env, fs, path::PathBuf};

use serde_json::{Value, json};

use crate::{Space, kubectl};

/// The account of runners, named as Porch names it.
pub const ACCOUNT: &str = "porch-fn-runner";

/// What a runner may do with the namespace of function pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// As in Porch 1.5: pods, Services and Secrets.
    Files,
    /// As in what comes after it: templates and `FunctionConfig` objects as well.
    Objects,
}

impl Rights {
    /// The rules of the role, word by word those of Porch.
    pub fn rules(self) -> Value {
        let mut rules = vec![
            rule("", &["pods"], &["create", "delete", "patch", "get", "watch", "list"]),
            rule("", &["services", "endpoints"], &["create", "delete", "get", "watch", "list"]),
            rule("", &["secrets"], &["create", "delete", "update", "get"]),
        ];
        if self == Self::Objects {
            let group = "config.porch.kpt.dev";
            let template = ["get", "list", "watch", "create", "update", "patch"];
            rules.extend([
                rule(group, &["functionconfigs"], &["get", "list", "watch", "patch"]),
                rule(group, &["functionconfigs/status"], &["get", "update", "patch"]),
                rule("", &["podtemplates"], &template),
                rule(group, &["servicetemplates"], &template),
            ]);
        }
        rules.into()
    }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

impl Space {
    /// Makes the account of runners in the test's own namespace, with rights for it.
    pub async fn make_account(&self, rights: Rights) {
        let role = |name: &str, rules: Value| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name}, "rules": rules});
        let binding = |name: &str| {
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespace()}],
            })
        };
        // The second is for the namespace of the runner itself, which is the same here.
        let (pods, own) = ("porch-function-executor", ACCOUNT);
        let objects = [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}),
            role(pods, rights.rules()),
            binding(pods),
            role(own, json!([rule("", &["configmaps"], &["get", "list"])])),
            binding(own),
        ];
        for object in &objects {
            self.apply_object(object).await;
        }
    }

    /// A kubeconfig with the rights of that account.
    pub async fn kubeconfig(&self) -> PathBuf {
        let cluster = PathBuf::from(env::var_os("CLUSTER_DIR").expect("inside the cluster"));
        let place = format!("--namespace={}", self.namespace());
        let token = kubectl(&["create", "token", ACCOUNT, &place, "--duration=1h"], b"").await;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "cluster",
            "clusters": [{"name": "cluster", "cluster": {
                "server": "https://127.0.0.1:6443", "certificate-authority": cluster.join("pki/ca.crt"),
            }}],
            "users": [{"name": ACCOUNT, "user": {"token": token.expect("a token").trim()}}],
            "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": ACCOUNT}}],
        });
        // Gone with the cluster.
        let folder = cluster.join("kubeconfigs");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(self.namespace());
        fs::write(&file, kubeconfig.to_string()).unwrap();
        file
    }
}
