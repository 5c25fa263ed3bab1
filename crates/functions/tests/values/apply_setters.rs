use functions::{Field, File, Resource, Severity};
use krm::Value;

use super::*;

const NAME: &str = "apply-setters";

#[track_caller]
fn sets(data: &str, before: &str, after: &str) {
    becomes(NAME, &config_map(data), before, after);
}

#[test]
fn values_are_set_by_their_comments() {
    sets(
        "app: my-app\n",
        "metadata:\n  name:   web   # kpt-set: ${app}\n  labels:\n    app: web # an other comment\n",
        "metadata:\n  name:   my-app   # kpt-set: ${app}\n  labels:\n    app: web # an other comment\n",
    );
    sets(
        "image: ubuntu\ntag: '1.8'\n",
        "a: nginx:1.7 # kpt-set: ${image}:${tag}\n",
        "a: ubuntu:1.8 # kpt-set: ${image}:${tag}\n",
    );
    sets("n: x\n", "a:\n- - b # kpt-set: ${n}\n  - c\n", "a:\n- - x # kpt-set: ${n}\n  - c\n");
    sets("n: x\n", "a: # c\n  b: {c: [d]} # kpt-set: ${n}\n", "a: # c\n  b: {c: [d]} # kpt-set: ${n}\n");
}

#[test]
fn values_that_are_not_given_stay() {
    sets(
        "image: ubuntu\n",
        "a: nginx:1.7 # kpt-set: ${image}:${tag}\n",
        "a: ubuntu:1.7 # kpt-set: ${image}:${tag}\n",
    );
    sets(
        "zone: demo\ntop: io\n",
        "host: app.dev.example.com # kpt-set: app.${stage}.${zone}.${top}\n",
        "host: app.dev.demo.io # kpt-set: app.${stage}.${zone}.${top}\n",
    );
    let resource = "a: nginx:1.7 # kpt-set: ${image}:${tag}\n";
    sets("project: mine\n", resource, resource);
    sets("{}\n", resource, resource);
}

#[test]
fn styles_stay_and_types_follow() {
    sets("n: '3'\n", "a: 4 # kpt-set: ${n}\n", "a: 3 # kpt-set: ${n}\n");
    sets("n: three\n", "a: 4 # kpt-set: ${n}\n", "a: three # kpt-set: ${n}\n");
    sets("n: '3'\n", "a: four # kpt-set: ${n}\n", "a: 3 # kpt-set: ${n}\n");
    sets("n: 'true'\n", "a: false # kpt-set: ${n}\n", "a: true # kpt-set: ${n}\n");
    sets("n: '3'\n", "a: \"4\" # kpt-set: ${n}\n", "a: \"3\" # kpt-set: ${n}\n");
    sets("n: '3'\n", "a: '4' # kpt-set: ${n}\n", "a: '3' # kpt-set: ${n}\n");
    sets("n: b\n", "a: | # kpt-set: ${n}\n  text\n", "a: |- # kpt-set: ${n}\n  b\n");
    sets("n: |\n  b\n  c\n", "a: x # kpt-set: ${n}\n", "a: | # kpt-set: ${n}\n  b\n  c\n");
    sets("n: 'a: b'\n", "a: x # kpt-set: ${n}\n", "a: 'a: b' # kpt-set: ${n}\n");
    sets("n: '[a]'\n", "a: x # kpt-set: ${n}\n", "a: '[a]' # kpt-set: ${n}\n");
    sets("n: 1.10\n", "a: 1.9 # kpt-set: ${n}\n", "a: 1.10 # kpt-set: ${n}\n");
}

#[test]
fn values_may_be_empty() {
    sets(
        "n: ''\n",
        "a: web # kpt-set: ${n}\nb: \"x\" # kpt-set: ${n}\n",
        "a: \"\" # kpt-set: ${n}\nb: \"\" # kpt-set: ${n}\n",
    );
    sets("n: ~\n", "a: web # kpt-set: ${n}\n", "a: \"\" # kpt-set: ${n}\n");
    sets("image: ''\n", "a: nginx:1.7 # kpt-set: ${image}:${tag}\n", "a: :1.7 # kpt-set: ${image}:${tag}\n");
    sets("n: web\n", "a: \"\" # kpt-set: ${n}\n", "a: \"web\" # kpt-set: ${n}\n");
    sets("n: web\n", "a: ~ # kpt-set: ${n}\n", "a: web # kpt-set: ${n}\n");
    // Where there is no value at all, the comment is about the field.
    sets("n: web\n", "a: # kpt-set: ${n}\nb: c\n", "a: # kpt-set: ${n}\nb: c\n");
}

#[test]
fn lists_are_set_as_a_whole() {
    let before = "env: # kpt-set: ${env}\n  - dev\n  - stage\nmore: x\n";
    sets("env: |\n  - prod\n  - dev\n", before, "env: # kpt-set: ${env}\n  - prod\n  - dev\nmore: x\n");
    sets("env: '[prod]'\n", before, "env: # kpt-set: ${env}\n  - prod\nmore: x\n");
    sets(
        "env: '[dev, stage, 3, \"3\"]'\n",
        before,
        "env: # kpt-set: ${env}\n  - dev\n  - stage\n  - 3\n  - \"3\"\nmore: x\n",
    );
    sets("env: ''\n", before, "env: [] # kpt-set: ${env}\nmore: x\n");
    sets("env: '[dev, stage]'\n", before, before);
    let objects = "ports: # kpt-set: ${p}\n- port: 80\n  name: http\n";
    sets("p: '[{port: 80, name: web}]'\n", objects, "ports: # kpt-set: ${p}\n- port: 80\n  name: web\n");
}

#[test]
fn lists_in_brackets_stay_in_brackets() {
    sets("env: '[a, b]'\n", "env: [dev, stage] # kpt-set: ${env}\n", "env: [a, b] # kpt-set: ${env}\n");
    sets("env: ''\n", "env: [dev] # kpt-set: ${env}\n", "env: [] # kpt-set: ${env}\n");
    let text = output(NAME, &config_map("env: '[a, b]'\n"), &["env: [] # kpt-set: ${env}\n"]);
    let list = krm::Document::parse(&text).unwrap();
    let env = list.children(list.get(list.root(), "items").unwrap()).next().unwrap();
    let env = list.get(env, "env").unwrap();
    assert_eq!(list.value(env), Value::Sequence(vec!["a".into(), "b".into()]));
    assert_eq!(list.line_comment(env).as_deref(), Some("# kpt-set: ${env}"));
}

#[test]
fn entries_that_stay_keep_their_comments_and_others_have_those_of_the_value() {
    sets(
        "env: |\n  - dev\n  # the real one\n  - prod # careful\n",
        "env: # kpt-set: ${env}\n- dev # for all\n- stage # before prod\n- test # gone\n",
        "env: # kpt-set: ${env}\n- dev # for all\n# the real one\n- prod # careful\n",
    );
    // Comments in what is replaced do not set what took its place.
    sets(
        "env: '[{a: 1}]'\na: '2'\n",
        "env: # kpt-set: ${env}\n- a: 3 # kpt-set: ${a}\n",
        "env: # kpt-set: ${env}\n- a: 1\n",
    );
}

#[test]
fn other_comments_are_no_setters() {
    for comment in [
        "#kpt-set: ${n}",
        "# kpt-set:${n}",
        "#  kpt-set: ${n}",
        "# kpt-set: n",
        "# kpt-set: ${m}",
        "# x kpt-set: ${n}",
    ] {
        let resource = format!("a: b {comment}\nc: {comment}\n- d\ne: [f] {comment}\n");
        sets("n: x\n", &resource, &resource);
    }
    sets(
        "n: x\n",
        "# kpt-set: ${n}\na: b\nc:\n  # kpt-set: ${n}\n- d\n",
        "# kpt-set: ${n}\na: b\nc:\n  # kpt-set: ${n}\n- d\n",
    );
}

#[test]
fn results_tell_each_field() {
    let resource = "
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations:
    internal.config.kubernetes.io/path: a/b.yaml
spec:
  replicas: 4 # kpt-set: ${n}
  args: # kpt-set: ${args}
  - a
  containers:
  - image: nginx:1 # kpt-set: nginx:${tag}
";
    let found = results(NAME, &config_map("n: '3'\nargs: '[b]'\ntag: '1'\n"), &[resource]);
    let shown: Vec<_> = found
        .iter()
        .map(|finding| {
            let Field { path, current, proposed } = finding.field.clone().unwrap();
            (finding.message.as_str(), path, current.unwrap(), proposed.unwrap())
        })
        .collect();
    let field = |path: &str, current: &str, proposed: &str| {
        (path.to_owned(), Value::from(current), Value::from(proposed))
    };
    let expected = [
        ("set field value to \"[b]\"", field("spec.args", "- a\n", "[b]")),
        ("set field value to \"3\"", field("spec.replicas", "4", "3")),
        ("set field value to \"nginx:1\"", field("spec.containers[0].image", "nginx:1", "nginx:1")),
    ];
    // Lists come before all else of a mapping.
    assert_eq!(
        shown,
        expected.map(|(message, (path, current, proposed))| (message, path, current, proposed))
    );
    let [api_version, kind, name, namespace] = ["apps/v1", "Deployment", "web", "shop"].map(str::to_owned);
    for finding in found {
        assert_eq!(finding.severity, Some(Severity::Info));
        assert_eq!(finding.file, Some(File { path: "a/b.yaml".to_owned(), index: 0 }));
        let resource = Resource {
            api_version: api_version.clone(),
            kind: kind.clone(),
            name: name.clone(),
            namespace: namespace.clone(),
        };
        assert_eq!(finding.resource, Some(resource));
    }
}

#[test]
fn results_tell_no_secrets() {
    let config = config_map("db-password: hunter2\nkey: ASIAUM2VG3ANQNP3IXQG\n");
    let resource = "stringData:\n  word: old-word # kpt-set: ${db-password}\n  id: x # kpt-set: ${key}\n";
    let outcome = run(NAME, &config, &[resource]);
    let results = format!("{:?}", outcome.results);
    assert!(
        !results.contains("hunter2") && !results.contains("old-word") && !results.contains("ASIA"),
        "{results}"
    );
    assert_eq!(outcome.results[0].message, "set field value to \"<redacted>\"");
    assert!(without_results(outcome.output).contains("  word: hunter2 # kpt-set: ${db-password}\n"));
}

#[test]
fn nothing_to_set_is_told() {
    for config in [
        config_map("n: x\n"),
        config_map("{}\n"),
        "apiVersion: v1\nkind: ConfigMap\n".to_owned(),
        String::new(),
    ] {
        let found = results(NAME, &config, &["a: b # kpt-set: ${m}\n"]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].message.as_str(), found[0].severity), ("no matches for input setter(s)", None));
    }
    assert_eq!(messages(NAME, &config_map("n: x\n"), &[]), ["no matches for input setter(s)"]);
}

#[test]
fn any_object_with_data_will_do() {
    becomes(NAME, "kind: Setters\ndata:\n  n: x\n", "a: b # kpt-set: ${n}\n", "a: x # kpt-set: ${n}\n");
}

#[track_caller]
fn fails(data: &str, resource: &str, cause: &str) {
    let (message, stderr) = failure(NAME, &config_map(data), &[resource]);
    assert_eq!(message, format!("failed to apply setters: {cause}"));
    assert_eq!(stderr, format!("{cause}\n"));
}

#[test]
fn what_cannot_be_set_is_refused() {
    fails(
        "image: x\n",
        "a: irrelevant # kpt-set: ${image}:${tag}\n",
        "values for setters [${tag}] must be provided",
    );
    fails("b: x\n", "a: z # kpt-set: ${a}${b}${c}\n", "values for setters [${a} ${c}] must be provided");
    fails("n: ${m}\n", "a: z # kpt-set: ${n}\n", "values for setters [${m}] must be provided");
    let array = "input to array setter must be an array of values, but found";
    fails("n: x\n", "a: # kpt-set: ${n}\n- z\n", &format!("{array} \"x\""));
    fails("n: '{a: b}'\n", "a: [z] # kpt-set: ${n}\n", &format!("{array} \"{{a: b}}\""));
    fails("n: '[a'\n", "a: [z] # kpt-set: ${n}\n", &format!("{array} \"[a\""));
    fails(
        "n: '[a]'\n",
        "a: # kpt-set: ${n}:${m}\n- z\n",
        "invalid setter pattern for array node: \"${n}:${m}\"",
    );
}

#[test]
fn configurations_that_are_none_are_refused() {
    let wrong =
        "\"n\" in `data` of the functionConfig must be a text; write a list or mapping as one, after `|`";
    fails("n: [a, b]\n", "a: # kpt-set: ${n}\n- z\n", wrong);
    fails("n: {a: b}\n", "a: z\n", wrong);
    let config = "apiVersion: v1\nkind: ConfigMap\ndata: [a]\n";
    let (message, _) = failure(NAME, config, &["a: b\n"]);
    assert_eq!(message, "failed to apply setters: `data` of the functionConfig must be a mapping of texts");
}
