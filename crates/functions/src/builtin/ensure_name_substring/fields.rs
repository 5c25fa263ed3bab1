//! Where resources name other resources.

use crate::field_spec::FieldSpec;
use crate::list::Resource;

/// Which resources are named in which field.
#[derive(Debug)]
pub(super) struct NameReference {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    /// The field with the name. It is a string, a list of strings, or a mapping (or a list of them) with
    /// name and namespace.
    pub(super) field: FieldSpec,
}

impl NameReference {
    /// Whether it is resources of this kind that are named.
    pub(super) fn is_to(&self, resource: &Resource) -> bool {
        resource.kind == self.kind
            && (self.group.is_empty() || resource.group() == self.group)
            && (self.version.is_empty() || resource.version() == self.version)
    }
}

/// Kinds of the whole cluster that name others or are named, by group.
const OF_CLUSTER: &[(&str, &[&str])] = &[
    ("", &["Namespace", "Node", "PersistentVolume"]),
    ("admissionregistration.k8s.io", &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("networking.k8s.io", &["IngressClass"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("storage.k8s.io", &["StorageClass"]),
];

/// Whether a resource belongs to the whole cluster.
pub(super) fn is_of_cluster(resource: &Resource) -> bool {
    OF_CLUSTER.iter().any(|(group, kinds)| *group == resource.group() && kinds.contains(&&*resource.kind))
}

const POD_TEMPLATE: &str = "spec/template/spec/";

/// The kinds with pods in them, and where: those that name ConfigMaps and Secrets.
const PODS: [(&str, &str); 8] = [
    ("Pod", "spec/"),
    ("PodTemplate", "template/spec/"),
    ("Deployment", POD_TEMPLATE),
    ("ReplicaSet", POD_TEMPLATE),
    ("DaemonSet", POD_TEMPLATE),
    ("StatefulSet", POD_TEMPLATE),
    ("Job", POD_TEMPLATE),
    ("CronJob", "spec/jobTemplate/spec/template/spec/"),
];

/// The same of those that name other resources.
const OTHER_PODS: [(&str, &str); 7] = [
    ("Pod", "spec/"),
    ("StatefulSet", POD_TEMPLATE),
    ("Deployment", POD_TEMPLATE),
    ("ReplicationController", POD_TEMPLATE),
    ("CronJob", "spec/jobTemplate/spec/template/spec/"),
    ("Job", POD_TEMPLATE),
    ("DaemonSet", POD_TEMPLATE),
];

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// A group, a version and a kind. What is empty matches all.
type Kind = (&'static str, &'static str, &'static str);
const CONFIG_MAP: Kind = ("", "v1", "ConfigMap");
const SECRET: Kind = ("", "v1", "Secret");
const SERVICE: Kind = ("", "v1", "Service");
const SERVICE_ACCOUNT: Kind = ("", "v1", "ServiceAccount");
const CLAIM: Kind = ("", "v1", "PersistentVolumeClaim");
const VOLUME: Kind = ("", "v1", "PersistentVolume");
const STORAGE_CLASS: Kind = ("storage.k8s.io", "v1", "StorageClass");
const PRIORITY_CLASS: Kind = ("scheduling.k8s.io", "v1", "PriorityClass");

/// Kinds with the path to the pod in them.
type Pods = &'static [(&'static str, &'static str)];

/// What pods name, and in which fields.
const IN_PODS: &[(Kind, Pods, &[&str])] = &[
    (
        CONFIG_MAP,
        &PODS,
        &[
            "volumes/configMap/name",
            "containers/env/valueFrom/configMapKeyRef/name",
            "initContainers/env/valueFrom/configMapKeyRef/name",
            "containers/envFrom/configMapRef/name",
            "initContainers/envFrom/configMapRef/name",
            "volumes/projected/sources/configMap/name",
        ],
    ),
    (
        SECRET,
        &PODS,
        &[
            "volumes/secret/secretName",
            "containers/env/valueFrom/secretKeyRef/name",
            "initContainers/env/valueFrom/secretKeyRef/name",
            "containers/envFrom/secretRef/name",
            "initContainers/envFrom/secretRef/name",
            "imagePullSecrets/name",
            "volumes/projected/sources/secret/name",
        ],
    ),
    (SERVICE_ACCOUNT, &OTHER_PODS, &["serviceAccountName"]),
    (CLAIM, &OTHER_PODS, &["volumes/persistentVolumeClaim/claimName"]),
    (PRIORITY_CLASS, &OTHER_PODS, &["priorityClassName"]),
];

/// What other resources name: the kind that is named, the kind that names it, the fields.
const ELSEWHERE: &[(Kind, Kind, &[&str])] = &[
    (("", "", "Deployment"), ("", "", "HorizontalPodAutoscaler"), &["spec/scaleTargetRef/name"]),
    (("", "", "ReplicationController"), ("", "", "HorizontalPodAutoscaler"), &["spec/scaleTargetRef/name"]),
    (("", "", "ReplicaSet"), ("", "", "HorizontalPodAutoscaler"), &["spec/scaleTargetRef/name"]),
    (("", "", "StatefulSet"), ("", "", "HorizontalPodAutoscaler"), &["spec/scaleTargetRef/name"]),
    (CONFIG_MAP, ("", "", "Node"), &["spec/configSource/configMap"]),
    (CONFIG_MAP, ("", "", "Role"), &["rules/resourceNames"]),
    (CONFIG_MAP, ("", "", "ClusterRole"), &["rules/resourceNames"]),
    (
        CONFIG_MAP,
        ("", "", "Ingress"),
        &["metadata/annotations/nginx.ingress.kubernetes.io\\/fastcgi-params-configmap"],
    ),
    (
        SECRET,
        ("", "", "Ingress"),
        &[
            "spec/tls/secretName",
            "metadata/annotations/ingress.kubernetes.io\\/auth-secret",
            "metadata/annotations/nginx.ingress.kubernetes.io\\/auth-secret",
            "metadata/annotations/nginx.ingress.kubernetes.io\\/auth-tls-secret",
        ],
    ),
    (SECRET, ("", "", "ServiceAccount"), &["imagePullSecrets/name"]),
    (
        SECRET,
        ("", "", "StorageClass"),
        &[
            "parameters/secretName",
            "parameters/adminSecretName",
            "parameters/userSecretName",
            "parameters/secretRef",
        ],
    ),
    (SECRET, ("", "", "Role"), &["rules/resourceNames"]),
    (SECRET, ("", "", "ClusterRole"), &["rules/resourceNames"]),
    (
        SECRET,
        ("serving.knative.dev", "v1", "Service"),
        &["spec/template/spec/containers/env/valueFrom/secretKeyRef/name"],
    ),
    (SECRET, ("", "", "PersistentVolume"), &["spec/azureFile/secretName"]),
    (SERVICE, ("apps", "", "StatefulSet"), &["spec/serviceName"]),
    (
        SERVICE,
        ("", "", "Ingress"),
        &[
            "spec/rules/http/paths/backend/serviceName",
            "spec/backend/serviceName",
            "spec/rules/http/paths/backend/service/name",
            "spec/defaultBackend/service/name",
        ],
    ),
    (SERVICE, ("apiregistration.k8s.io", "", "APIService"), &["spec/service/name"]),
    (SERVICE, (ADMISSION, "", "ValidatingWebhookConfiguration"), &["webhooks/clientConfig/service"]),
    (SERVICE, (ADMISSION, "", "MutatingWebhookConfiguration"), &["webhooks/clientConfig/service"]),
    ((RBAC, "", "Role"), (RBAC, "", "RoleBinding"), &["roleRef/name"]),
    ((RBAC, "", "ClusterRole"), (RBAC, "", "RoleBinding"), &["roleRef/name"]),
    ((RBAC, "", "ClusterRole"), (RBAC, "", "ClusterRoleBinding"), &["roleRef/name"]),
    (SERVICE_ACCOUNT, (RBAC, "", "RoleBinding"), &["subjects"]),
    (SERVICE_ACCOUNT, (RBAC, "", "ClusterRoleBinding"), &["subjects"]),
    (VOLUME, ("", "", "PersistentVolumeClaim"), &["spec/volumeName"]),
    (VOLUME, ("", "", "ClusterRole"), &["rules/resourceNames"]),
    (STORAGE_CLASS, ("", "", "PersistentVolume"), &["spec/storageClassName"]),
    (STORAGE_CLASS, ("", "", "PersistentVolumeClaim"), &["spec/storageClassName"]),
    (STORAGE_CLASS, ("", "", "StatefulSet"), &["spec/volumeClaimTemplates/spec/storageClassName"]),
    (
        (ADMISSION, "", "ValidatingAdmissionPolicy"),
        (ADMISSION, "", "ValidatingAdmissionPolicyBinding"),
        &["spec/policyName"],
    ),
];

/// All places where resources of Kubernetes' own kinds name others.
pub(super) fn all() -> Vec<NameReference> {
    let in_pods = IN_PODS.iter().flat_map(|(named, pods, fields)| {
        pods.iter().flat_map(move |(kind, pod)| {
            fields.iter().map(move |field| reference(*named, ("", "", kind), &format!("{pod}{field}")))
        })
    });
    let elsewhere = ELSEWHERE.iter().flat_map(|(named, naming, fields)| {
        fields.iter().map(move |field| reference(*named, *naming, field))
    });
    in_pods.chain(elsewhere).collect()
}

fn reference((group, version, kind): Kind, naming: (&str, &str, &str), path: &str) -> NameReference {
    let field = FieldSpec::new(naming.0, naming.1, naming.2, path, false);
    NameReference { group, version, kind, field }
}
