use functions::File;

use super::*;

const NAME: &str = "create-setters";

#[track_caller]
fn creates(data: &str, before: &str, after: &str) {
    becomes(NAME, &config_map(data), before, after);
}

#[test]
fn values_get_comments() {
    creates(
        "replicas: '4'\ntag: 1.16.1\n",
        "spec:\n  replicas:   4\n  image: \"nginx:1.16.1\"\n  other: x # y\n",
        "spec:\n  replicas:   4 # kpt-set: ${replicas}\n  image: \"nginx:1.16.1\" # kpt-set: nginx:${tag}\n  other: x # y\n",
    );
    creates(
        "image: nginx\ntag: 1.7.1\n",
        "a:\n- nginx:1.7.1\n- - nginx\n- b: 'x-nginx-nginx'\n",
        "a:\n- nginx:1.7.1 # kpt-set: ${image}:${tag}\n- - nginx # kpt-set: ${image}\n- b: 'x-nginx-nginx' # kpt-set: x-${image}-${image}\n",
    );
}

#[test]
fn the_longest_value_is_taken() {
    creates(
        "role: dev\napp: development\n",
        "a: nginx-development\nb: dev\n",
        "a: nginx-development # kpt-set: nginx-${app}\nb: dev # kpt-set: ${role}\n",
    );
    creates("a: ab\nb: abc\n", "x: abcab\n", "x: abcab # kpt-set: ${b}${a}\n");
    // What stands for one value is not searched for another.
    creates("image: nginx\nname: image\n", "a: nginx-web\n", "a: nginx-web # kpt-set: ${image}-web\n");
    // Of two setters with one value, the first is taken.
    creates("one: x\ntwo: x\n", "a: x\n", "a: x # kpt-set: ${one}\n");
}

#[test]
fn characters_mean_themselves() {
    creates("a: .*\n", "x: nothing\ny: .*\n", "x: nothing\ny: .* # kpt-set: ${a}\n");
    creates("a: ä+\n", "y: xä+\n", "y: xä+ # kpt-set: x${a}\n");
}

#[test]
fn other_comments_make_way() {
    creates("n: x\n", "a: x # old\nb: # old\n- y\n", "a: x # kpt-set: ${n}\nb: # old\n- y\n");
    creates("n: '[y]'\n", "# head\nb: # old\n- y # entry\n", "# head\nb: # kpt-set: ${n}\n- y # entry\n");
}

#[test]
fn texts_of_several_lines_get_none() {
    let before = "a: |\n  nginx\n  x\nb: \"nginx\\nx\"\nc: nginx\n";
    creates("n: nginx\n", before, &before.replace("c: nginx", "c: nginx # kpt-set: ${n}"));
    creates("n: nginx\n", "c: nginx\n  more\n", "c: nginx\n  more # kpt-set: ${n} more\n");
}

#[test]
fn lists_get_comments_whatever_the_order_of_their_entries() {
    let after = "env: # kpt-set: ${env}\n  - dev\n  - stage\n";
    for value in ["env: |\n  - stage\n  - dev\n", "env: '[dev, stage]'\n"] {
        creates(value, "env:\n  - dev\n  - stage\n", after);
    }
    creates("n: '[1, a]'\n", "b:\n- a\n- 1\n", "b: # kpt-set: ${n}\n- a\n- 1\n");
    creates("n: '[]'\n", "a: [] # x\n", "a: [] # kpt-set: ${n}\n");
    let (message, _) = failure(NAME, &config_map("env: '[dev]'\n"), &["env:\n- dev\n- stage\n"]);
    assert_eq!(message, "failed to create setters: no matches for the input list of setters");
}

#[test]
fn lists_in_brackets_stay_so_unless_their_entries_get_comments() {
    creates("env: '[b, a]'\n", "a: [a, b]\n", "a: [a, b] # kpt-set: ${env}\n");
    creates(
        "env: '[b, a]'\nn: b\n",
        "x:\n  a: [a, b] # old\n  c: [d]\n",
        "x:\n  a: # kpt-set: ${env}\n  - a\n  - b # kpt-set: ${n}\n  c: [d]\n",
    );
    creates(
        "n: b\n",
        "a: {x: [\"1\", {w: b}], z: []}\n",
        "a:\n  x:\n  - \"1\"\n  - w: b # kpt-set: ${n}\n  z: []\n",
    );
    creates(
        "n: b\n",
        "a: [ # one\n  b, # two\n  c # three\n] # four\n",
        "a: # four\n- b # kpt-set: ${n}\n- c # three\n",
    );
}

#[test]
fn annotations_for_tools_get_none() {
    creates(
        "n: '4'\n",
        "metadata:\n  annotations:\n    internal.config.kubernetes.io/package-path: /4/x\n    config.kubernetes.io/index: '4'\n    config.k8s.io/id: '4'\n    other: '4'\n",
        "metadata:\n  annotations:\n    internal.config.kubernetes.io/package-path: /4/x\n    config.kubernetes.io/index: '4'\n    config.k8s.io/id: '4'\n    other: '4' # kpt-set: ${n}\n",
    );
}

#[test]
fn mappings_are_no_setters() {
    creates("m: 'a: b'\nn: b\n", "a: b\n", "a: b # kpt-set: ${n}\n");
}

#[test]
fn results_tell_each_comment() {
    let resource = "
metadata:
  annotations:
    internal.config.kubernetes.io/path: a.yaml
spec:
  n: x-1
  l:
  - b
  - a
";
    let found = results(NAME, &config_map("n: x\nl: '[a, b]'\n"), &[resource]);
    let shown: Vec<_> = found
        .iter()
        .map(|finding| (finding.message.as_str(), finding.field.as_ref().unwrap().path.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            ("Added line comment \"kpt-set: ${l}\" for field with value \"[a b]\"", "spec.l"),
            ("Added line comment \"kpt-set: ${n}-1\" for field with value \"x-1\"", "spec.n"),
        ]
    );
    for finding in found {
        assert_eq!(finding.severity, None);
        assert_eq!(finding.file, Some(File { path: "a.yaml".to_owned(), index: 0 }));
    }
}

#[track_caller]
fn fails(config: &str, resource: &str, cause: &str) {
    let (message, stderr) = failure(NAME, config, &[resource]);
    assert!(message.starts_with("failed to create setters: "), "{message}");
    assert!(message.contains(cause) && stderr.contains(cause), "{message} {stderr}");
}

#[test]
fn what_cannot_be_created_is_refused() {
    fails("", "a: b\n", "config map cannot be empty");
    fails(&config_map("{}\n"), "a: b\n", "config map cannot be empty");
    fails(&config_map("n: x\n"), "a: b\n", "no matches for the input list of setters");
    fails(&config_map("n: ''\n"), "a: b\n", "parsing error: the value of \"n\"");
    fails(&config_map("n: '[a'\n"), "a: b\n", "parsing error: the value of \"n\"");
    fails(&config_map("n: [a]\n"), "a: b\n", "\"n\" in `data` of the functionConfig must be a text");
    let json = "{kind: ResourceList, functionConfig: {data: {n: b}}, items: [{a: b}]}";
    let outcome = functions::run(NAME, json.as_bytes()).unwrap();
    assert!(!outcome.succeeded && outcome.stderr.contains("JSON"), "{}", outcome.stderr);
    assert!(String::from_utf8(outcome.output).unwrap().contains("items: [{a: b}]"));
}
