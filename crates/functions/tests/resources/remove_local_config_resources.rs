use super::*;

const NAME: &str = "remove-local-config-resources";

fn local(name: &str, annotations: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations:\n{annotations}")
}

#[test]
fn only_what_is_for_local_use_goes() {
    let yes = local("yes", "    config.kubernetes.io/local-config: \"true\"\n");
    let bare = local("bare", "    config.kubernetes.io/local-config: TRUE # not quoted\n");
    let no = local("no", "    config.kubernetes.io/local-config: \"false\"\n");
    let other = local("other", "    config.kubernetes.io/local-config: 'yes'\n");
    becomes(NAME, "", &[&yes, SERVICE, &bare, &no, &other], &[SERVICE, &no, &other]);
}

#[test]
fn the_results_name_what_is_gone() {
    let one = local(
        "one",
        "    config.kubernetes.io/local-config: 'true'\n    internal.config.kubernetes.io/path: a/one.yaml\n",
    );
    let two = local(
        "two",
        "    config.kubernetes.io/local-config: 'true'\n    config.kubernetes.io/path: two.yaml\n",
    );
    let three = local("three", "    config.kubernetes.io/local-config: 'true'\n");
    let outcome = run(NAME, "", &[&one, SERVICE, &two, &three]);
    assert!(outcome.succeeded);
    let text = String::from_utf8(outcome.output).unwrap();
    let expected = "\
results:
- message: 'Number of resources pruned: 3'
  severity: info
- message: 'Resource name: [one]'
  severity: info
  file:
    path: a/one.yaml
- message: 'Resource name: [two]'
  severity: info
  file:
    path: two.yaml
- message: 'Resource name: [three]'
  severity: info
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn nothing_to_remove_is_a_warning() {
    let outcome = run(NAME, "", &[SERVICE]);
    assert!(outcome.succeeded);
    assert_eq!(
        outcome.results.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["[warning]: Found no resources to prune with the local config annotation"]
    );
    becomes(NAME, "", &[SERVICE], &[SERVICE]);
}

#[test]
fn odd_resources_do_no_harm() {
    for odd in [
        "metadata: x",
        "metadata:\n  annotations: [a]",
        "metadata:\n  annotations:\n    config.kubernetes.io/local-config: [true]",
    ] {
        becomes(NAME, "", &[odd], &[odd]);
    }
    let outcome = functions::run(NAME, b"kind: ResourceList\n").unwrap();
    assert!(outcome.succeeded);
    let all = local("only", "    config.kubernetes.io/local-config: 'true'\n");
    let text = output(NAME, "", &[&all]);
    assert!(text.ends_with("items: []\n"), "{text}");
}
