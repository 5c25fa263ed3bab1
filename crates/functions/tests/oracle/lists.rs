//! Random lists for each function that kustomize has something like.

use std::fmt::Write as _;

use super::dice::Dice;
use super::given::list;
use super::resources::{config_map, head, resources, word};

type Generate = fn(&mut Dice) -> String;

pub(crate) const FUNCTIONS: &[(&str, Generate)] = &[
    ("set-namespace", set_namespace),
    ("set-labels", set_labels),
    ("set-annotations", set_annotations),
    ("set-image", set_image),
    ("apply-replacements", apply_replacements),
    ("ensure-name-substring", ensure_name_substring),
    ("remove-local-config-resources", remove_local_config_resources),
];

/// Texts that are easily taken for something else.
const ODD: &[&str] = &[
    "plain",
    "yes",
    "on",
    "014",
    "1_000",
    "0x1F",
    "1e3",
    "12",
    "3.14",
    "null",
    "~",
    "true",
    "2001-01-01",
    "",
    " lead",
    "a: b",
    "a #b",
    "#c",
    "- d",
    "{e",
    "[f",
    "*g",
    "&h",
    "!i",
    "|",
    "@j",
    "it's",
    "say \"k\"",
    "ü",
    "two\nlines",
    "tab\there",
    "=",
    "<<",
    "1:30",
    ".inf",
    "back\\slash",
    "%l",
    "end:",
    "é\u{85}",
];

fn set_namespace(dice: &mut Dice) -> String {
    let mut items = resources(dice, true);
    for at in 0..dice.below(4) {
        items.push(match dice.below(5) {
            0 => format!("{}metadata:\n  name: space-{at} # its name\n", head("v1 Namespace")),
            1 => format!("{}metadata: {{name: pv-{at}}}\n", head("v1 PersistentVolume")),
            2 => format!(
                "{}metadata:\n  name: binding-{at}\nsubjects:\n- kind: ServiceAccount\n  name: a\n  namespace: 'old'   # c\n- {{kind: User, name: b}}\n",
                head("rbac.authorization.k8s.io/v1 ClusterRoleBinding")
            ),
            3 => format!(
                "{}metadata:\n  name: crd-{at}\nspec:\n  conversion:\n    strategy: Webhook\n    webhook:\n      clientConfig:\n        service:\n          name: s\n          namespace: old\n",
                head("apiextensions.k8s.io/v1 CustomResourceDefinition")
            ),
            _ => format!(
                "{}metadata:\n  name: api-{at}\nspec:\n  service: {{namespace: old, name: s}}\n",
                head("apiregistration.k8s.io/v1 APIService")
            ),
        });
    }
    let namespace = dice.pick(&["new", "team-a", "old-space", "x1"]);
    list(&config_map(&[("namespace", namespace)]), &items)
}

fn set_labels(dice: &mut Dice) -> String {
    let selectors = dice.once_in(2);
    let items = resources(dice, selectors);
    let keys: &[&str] = if selectors { &["app", "tier"] } else { &["app", "color", "example.com/part-of"] };
    let labels: Vec<(&str, &str)> =
        keys.iter().take(1 + dice.below(keys.len())).map(|key| (*key, dice.pick(ODD))).collect();
    let mut config = config_map(&labels);
    if dice.once_in(2) {
        config = config.replace("v1\nkind: ConfigMap", "fn.kpt.dev/v1alpha1\nkind: SetLabels");
        config = config.replace("data:", "labels:");
    }
    list(&config, &items)
}

fn set_annotations(dice: &mut Dice) -> String {
    let items = resources(dice, true);
    let keys = ["note", "yes", "example.com/a"];
    let annotations: Vec<(&str, &str)> =
        keys.iter().take(1 + dice.below(3)).map(|key| (*key, dice.pick(ODD))).collect();
    let mut config = config_map(&annotations);
    if dice.once_in(2) {
        config = config.replace("v1\nkind: ConfigMap", "fn.kpt.dev/v1alpha1\nkind: SetAnnotations");
        config = config.replace("data:", "annotations:");
        config.push_str(dice.pick(&[
            "",
            "additionalAnnotationFields:\n- kind: Custom\n  path: spec/made/annotations\n  create: true\n",
            "additionalAnnotationFields:\n- group: apps\n  path: spec/selector/annotations\n  create: false\n",
        ]));
    }
    list(&config, &items)
}

fn set_image(dice: &mut Dice) -> String {
    let mut items = resources(dice, false);
    items.push(format!(
        "{}metadata: {{name: custom}}\nspec:\n  images:\n  - image: nginx:9 # c\n  - {{image: other}}\n",
        head("example.com/v1 Images")
    ));
    let name = dice.pick(&["nginx", "example.com:5000/nginx", "docker.io/.*/nginx", "my-nginx"]);
    let mut image = format!("  name: {name}\n");
    image.push_str(dice.pick(&[
        "  newTag: '5'\n",
        "  newName: other/name\n",
        "  digest: sha256:new\n",
        "  newTag: v1\n  digest: sha256:new\n",
        "  newName: other/name\n  newTag: v2\n",
        "  newName: third\n  tagSuffix: -dev\n",
    ]));
    list(
        &format!(
            "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetImage\nmetadata: {{name: x}}\nimage:\n{image}additionalImageFields:\n- kind: Images\n  path: spec/images[]/image\n"
        ),
        &items,
    )
}

fn apply_replacements(dice: &mut Dice) -> String {
    let source = format!(
        "{}metadata:\n  name: source\ndata:\n  text: hello\n  image: example.com/web:2.0\nnumber: 42\ntruth: true\nlist: [a, b]\nmap:\n  one: 1\n  two: {{x: z}}\n",
        head("v1 ConfigMap")
    );
    let target = |at: usize, dice: &mut Dice| {
        format!(
            "{}metadata:\n  name: target-{at}\n  labels: {{app: web, side: {}}}\n  annotations:\n    note: {}\nspec:\n  replicas: 3   # how many\n  list:\n  - one\n  - name: x\n  containers:\n  - name: web\n    image: \"web:1.0\"   # the image\n    args: [-jar, -v]\n  - name: my-web\n    image: other:1.0\n  empty: {{}}\n",
            head("example.com/v1 Target"),
            dice.pick(&["left", "right"]),
            word(dice, "old"),
        )
    };
    let items: Vec<String> =
        std::iter::once(source).chain((0..=dice.below(3)).map(|at| target(at, dice))).collect();
    let create = "{create: true}";
    // From, to, options of the target, options of the source.
    let copies: &[(&str, &str, &str, &str)] = &[
        ("data.text", "metadata.annotations.note", "{}", "{}"),
        ("data.text", "metadata.annotations.made", create, "{}"),
        ("data.text", "metadata.annotations.[example.com/made]", create, "{}"),
        ("data.text", "metadata.annotations.example\\.com/made", create, "{}"),
        ("number", "spec.replicas", "{}", "{}"),
        ("number", "spec.made.deep", create, "{}"),
        ("truth", "spec.made", create, "{}"),
        ("list", "spec.list", "{}", "{}"),
        ("map", "spec.empty", "{}", "{}"),
        ("map", "spec.made", create, "{}"),
        ("map.two", "spec.empty.made.deep", create, "{}"),
        ("list.0", "spec.containers.*.image", "{}", "{}"),
        ("list.1", "spec.containers.1.image", "{}", "{}"),
        ("data.text", "spec.containers.[name=web].image", "{}", "{}"),
        ("data.text", "spec.containers.[name=^web$].image", "{delimiter: ':', index: 0}", "{}"),
        ("data.text", "spec.containers.[name=my].image", "{delimiter: ':', index: 1}", "{}"),
        ("data.text", "spec.containers.[name=.*].image", "{delimiter: ':', index: -1}", "{}"),
        ("data.text", "spec.containers.0.image", "{delimiter: ':', index: 9}", "{}"),
        ("data.text", "spec.containers.[name=^web$].args.[=-jar]", "{}", "{}"),
        ("data.text", "spec.containers.[name=third].image", create, "{}"),
        ("data.text", "spec.containers.2.name", create, "{}"),
        ("data.image", "metadata.annotations.note", "{}", "{delimiter: ':', index: 1}"),
        ("data.image", "metadata.annotations.note", "{}", "{delimiter: '/'}"),
        ("metadata.name", "metadata.annotations.note", "{}", "{}"),
    ];
    let selects = [
        "select: {kind: Target}",
        "select: {group: example.com, name: target-.*}",
        "select: {kind: Tar.*}\n    reject: [{name: target-1}]",
        "select: {kind: Target}\n    reject: [{labelSelector: side=left}, {name: other}]",
        "select: {kind: Target, labelSelector: 'app=web,side!=none'}",
        "select: {version: v1, kind: Target, labelSelector: side in (left)}",
    ];
    let mut config =
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata: {name: x}\nreplacements:\n"
            .to_owned();
    // Two that have to do with each other may fail.
    let (from, to, options, source_options) = copies[dice.below(copies.len())];
    let _ = write!(
        config,
        "- source:\n    kind: ConfigMap\n    name: source\n    fieldPath: {from}\n    options: {source_options}\n  targets:\n  - {}\n    fieldPaths:\n    - '{to}'\n    options: {options}\n",
        dice.pick(&selects)
    );
    list(&config, &items)
}

/// Names, and what refers to them.
fn ensure_name_substring(dice: &mut Dice) -> String {
    let mut items = Vec::new();
    for name in ["settings", "keys", "web"] {
        let kind = ["v1 ConfigMap", "v1 Secret", "v1 ServiceAccount"][items.len()];
        if !dice.once_in(4) {
            items.push(format!("{}metadata:\n  name: {}\n", head(kind), word(dice, name)));
        }
    }
    if dice.once_in(2) {
        items.push(format!("{}metadata: {{name: space}}\n", head("v1 Namespace")));
        items.push(format!(
            "{}metadata: {{name: a.example.com}}\nspec: {{}}\n",
            head("apiextensions.k8s.io/v1 CustomResourceDefinition")
        ));
    }
    let refers = "    serviceAccountName: web
    containers:
    - name: c
      image: x
      envFrom:
      - configMapRef: {name: settings}
      - secretRef:
          name: 'keys' # which
      env:
      - name: A
        valueFrom:
          configMapKeyRef: {name: settings, key: a}
    volumes:
    - name: one
      configMap: {name: settings}
    - name: two
      secret: {secretName: keys}
    - name: three
      configMap: {name: unknown}
";
    if dice.once_in(2) {
        items.push(format!(
            "{}metadata: {{name: pod}}\nspec:\n{}",
            head("v1 Pod"),
            refers.replace("\n    ", "\n  ").replacen("    ", "  ", 1)
        ));
    }
    for kind in ["apps/v1 Deployment", "apps/v1 StatefulSet"] {
        if dice.once_in(2) {
            items.push(format!(
                "{}metadata:\n  name: main # it\nspec:\n  template:\n   spec:\n{refers}",
                head(kind)
            ));
        }
    }
    items.push(format!("{}metadata: {{name: role}}\nrules: []\n", head("rbac.authorization.k8s.io/v1 Role")));
    items.push(format!(
        "{}metadata: {{name: binding}}\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: role\nsubjects:\n- kind: ServiceAccount\n  name: web\n",
        head("rbac.authorization.k8s.io/v1 RoleBinding")
    ));
    if dice.once_in(2) {
        items.push(format!("{}metadata: {{name: svc}}\nspec: {{}}\n", head("v1 Service")));
        items.push(format!(
            "{}metadata: {{name: ingress}}\nspec:\n  rules:\n  - http:\n      paths:\n      - path: /\n        pathType: Prefix\n        backend:\n          service:\n            name: svc # this\n            port: {{number: 80}}\n",
            head("networking.k8s.io/v1 Ingress")
        ));
    }
    let mode = dice.pick(&["prepend", "append"]);
    let substring = if mode == "prepend" { "dev-" } else { "-dev" };
    list(&config_map(&[(mode, substring)]), &items)
}

fn remove_local_config_resources(dice: &mut Dice) -> String {
    let items = resources(dice, true);
    let local = "annotations:\n    config.kubernetes.io/local-config: \"true\"\n    note";
    let items: Vec<String> = items
        .into_iter()
        .map(|item| {
            if dice.once_in(2) {
                item.replacen("annotations: # of mappings\n    note", local, 1)
            } else {
                item
            }
        })
        .collect();
    list(&config_map(&[]), &items)
}
