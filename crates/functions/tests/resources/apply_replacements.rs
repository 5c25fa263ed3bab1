use super::*;

const NAME: &str = "apply-replacements";

const SOURCE: &str = "
apiVersion: v1
kind: ConfigMap
metadata:
  name: source
data:
  text: hello
  digits: \"18\"
  image: example.com/web:2.0
number: 42
truth: true
list: [a, b]
map: # of maps
  one: 1 # first
  # above
  two: {x: z}
nothing: null
empty: {}
";

const TARGET: &str = "
apiVersion: apps/v1
kind: Deployment
metadata:
  name: target
  labels: {app: web, tier: front}
  annotations:
    note: 'old'   # a note
spec:
  replicas: 3   # how many
  template:
    spec:
      containers:
        - name: web
          image: \"web:1.0\"   # the image
          args: [-jar, -v]
        - name: my-web
          image: other:1.0
";

fn config(replacements: &str) -> String {
    format!(
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata:\n  name: x\nreplacements:\n{replacements}"
    )
}

/// One replacement from a field of the source to a field of the target.
fn one(from: &str, to: &str, options: &str) -> String {
    config(&format!(
        "- source:
    kind: ConfigMap
    fieldPath: {from}
  targets:
  - select:
      kind: Deployment
    fieldPaths:
    - '{to}'
    options: {{{options}}}
"
    ))
}

fn set(from: &str, to: &str, options: &str, before: &str, after: &str) {
    let changed = TARGET.replacen(before, after, 1);
    assert_ne!(changed, TARGET, "{before}");
    becomes(NAME, &one(from, to, options), &[SOURCE, TARGET], &[SOURCE, &changed]);
}

fn problem(config: &str) -> String {
    let found = failure(NAME, config, &[SOURCE, TARGET]);
    let end = "\nfailed to evaluate function: error: function failure\n";
    found.strip_suffix(end).unwrap_or(&found).to_owned()
}

#[test]
fn a_value_is_copied_and_all_else_stays() {
    set("data.text", "metadata.annotations.note", "", "'old'   #", "'hello'   #");
    set(
        "data.image",
        "spec.template.spec.containers.0.image",
        "",
        "\"web:1.0\"   #",
        "\"example.com/web:2.0\"   #",
    );
    set("number", "spec.replicas", "", "3   #", "42   #");
}

#[test]
fn a_string_stays_a_string_whatever_it_looks_like() {
    set("data.digits", "spec.replicas", "", "3   #", "\"18\"   #");
    set("number", "metadata.annotations.note", "", "'old'   #", "'42'   #");
    set("truth", "metadata.annotations.note", "", "'old'   #", "'true'   #");
}

#[test]
fn fields_are_made_where_they_are_missing_if_asked_for() {
    let path = "spec.template.spec.containers.[name=^web$].env.[name=RATE].value";
    set(
        "data.digits",
        path,
        "create: true",
        "          args: [-jar, -v]\n",
        "          args: [-jar, -v]\n          env:\n            - name: RATE\n              value: \"18\"\n",
    );
    let missing = format!("unable to find field \"{path}\" in replacement target");
    assert_eq!(problem(&one("data.digits", path, "")), missing);
    set(
        "map",
        "metadata.annotations.made.deep",
        "create: true",
        "    note: 'old'   # a note\n",
        "    note: 'old'   # a note\n    made:\n      deep:\n        one: 1 # first\n        # above\n        two:\n          x: z\n",
    );
}

#[test]
fn a_number_that_is_made_is_a_number() {
    let text = output(NAME, &one("number", "spec.made", "create: true"), &[SOURCE, TARGET]);
    assert!(text.contains("\n    made: 42\n"), "{text}");
}

#[test]
fn paths_choose_entries_of_lists() {
    let both = |text: &str| TARGET.replace("\"web:1.0\"", &format!("\"{text}\"")).replace("other:1.0", text);
    let containers = "spec.template.spec.containers";
    for path in ["*.image", "[name=web].image", "[name=.*].image"] {
        let config = one("data.text", &format!("{containers}.{path}"), "");
        becomes(NAME, &config, &[SOURCE, TARGET], &[SOURCE, &both("hello")]);
    }
    set("data.text", &format!("{containers}.1.image"), "", "other:1.0", "hello");
    set("data.text", &format!("{containers}.[name=my-web].image"), "", "other:1.0", "hello");
    set("list", &format!("{containers}.[name=web].args"), "", "[-jar, -v]", "[a, b]");
    // An entry that is replaced is not found again: the second run says so, as kustomize does.
    let path = format!("{containers}.[name=web].args.[=-jar]");
    let first = run(NAME, &one("data.text", &path, ""), &[SOURCE, TARGET]);
    let expected = TARGET.replace("[-jar, -v]", "[hello, -v]");
    assert_eq!(
        String::from_utf8(first.output.clone()).unwrap(),
        list(&one("data.text", &path, ""), &[SOURCE, &expected])
    );
    let second = functions::run(NAME, &first.output).unwrap();
    assert_eq!(second.results[0].message, format!("unable to find field \"{path}\" in replacement target"));
}

#[test]
fn dots_belong_to_a_key_in_brackets_or_behind_a_backslash() {
    for path in ["metadata.annotations.[example.com/owner]", "metadata.annotations.example\\.com/owner"] {
        set(
            "data.text",
            path,
            "create: true",
            "    note: 'old'   # a note\n",
            "    note: 'old'   # a note\n    example.com/owner: hello\n",
        );
    }
}

#[test]
fn parts_of_texts_are_taken_and_replaced() {
    let image = "spec.template.spec.containers.[name=^web$].image";
    set("data.text", image, "delimiter: ':', index: 0", "\"web:1.0\"", "\"hello:1.0\"");
    set("data.text", image, "delimiter: ':', index: 1", "\"web:1.0\"", "\"web:hello\"");
    for (options, after) in [("index: -1", "hello:web:1.0"), ("index: 9", "web:1.0:hello")] {
        let config = one("data.text", image, &format!("delimiter: ':', {options}"));
        let outcome = run(NAME, &config, &[SOURCE, TARGET]);
        assert!(String::from_utf8(outcome.output).unwrap().contains(after));
    }
    let config = config(
        "- source:
    kind: ConfigMap
    fieldPath: data.image
    options: {delimiter: ':', index: 1}
  targets:
  - select: {kind: Deployment}
    fieldPaths: [metadata.annotations.note]
",
    );
    let after = TARGET.replace("'old'", "'2.0'");
    becomes(NAME, &config, &[SOURCE, TARGET], &[SOURCE, &after]);
}

#[test]
fn a_name_is_copied_if_no_field_is_given() {
    let config = config("- source: {kind: ConfigMap}\n  targets:\n  - select: {kind: Deployment}\n");
    becomes(NAME, &config, &[SOURCE, TARGET], &[SOURCE, &TARGET.replace("name: target", "name: source")]);
}

#[test]
fn a_text_can_be_given_instead_of_a_source() {
    let text = |value: &str, path: &str| {
        config(&format!(
            "- sourceValue: {value}\n  targets:\n  - select: {{kind: Deployment}}\n    fieldPaths: [{path}]\n"
        ))
    };
    becomes(NAME, &text("'5'", "spec.replicas"), &[TARGET], &[&TARGET.replace("replicas: 3", "replicas: 5")]);
    becomes(NAME, &text("new", "metadata.annotations.note"), &[TARGET], &[&TARGET.replace("'old'", "'new'")]);
}

#[test]
fn selectors_choose_resources() {
    let note = |select: &str, reject: &str| {
        config(&format!(
            "- sourceValue: new
  targets:
  - select: {select}
    reject: {reject}
    fieldPaths: [metadata.annotations.note]
"
        ))
    };
    let changed = TARGET.replace("'old'", "'new'");
    for select in [
        "{name: target}",
        "{name: 't.*'}",
        "{kind: 'Deployment|Service'}",
        "{group: apps, version: v1}",
        "{namespace: default}",
        "{labelSelector: 'app=web,tier in (front, back)'}",
        "{annotationSelector: note}",
        "{}",
    ] {
        becomes(NAME, &note(select, "[]"), &[TARGET], &[&changed]);
    }
    for select in
        ["{name: tar}", "{kind: deployment}", "{group: app}", "{namespace: other}", "{labelSelector: '!app'}"]
    {
        becomes(NAME, &note(select, "[]"), &[TARGET], &[TARGET]);
    }
    for reject in [
        "[{name: target}]",
        "[{kind: Service}, {kind: 'Dep.*'}]",
        "[{labelSelector: app}]",
        "[{annotationSelector: 'note!=x'}]",
    ] {
        becomes(NAME, &note("{}", reject), &[TARGET], &[TARGET]);
    }
    becomes(NAME, &note("{}", "[{}, {kind: Service}]"), &[TARGET], &[&changed]);
}

#[test]
fn replacements_are_made_one_after_the_other() {
    let config = config(
        "- source: {kind: ConfigMap, fieldPath: data.text}
  targets:
  - select: {kind: Deployment}
- source: {kind: Deployment, name: hello}
  targets:
  - select: {kind: Deployment, name: hello}
    fieldPaths: [metadata.annotations.note, metadata.labels.app]
",
    );
    let after = TARGET
        .replace("name: target", "name: hello")
        .replace("'old'", "'hello'")
        .replace("app: web", "app: hello");
    becomes(NAME, &config, &[SOURCE, TARGET], &[SOURCE, &after]);
}

#[test]
fn collections_are_copied_with_their_comments_and_what_is_equal_stays() {
    let before =
        "kind: Deployment\nmetadata:\n  name: t\nspec:\n  one: 1 # mine\n  two:\n    x:   z\n  three: 3\n";
    let after =
        "kind: Deployment\nmetadata:\n  name: t\nspec:\n  one: 1 # first\n  # above\n  two:\n    x:   z\n";
    becomes(NAME, &one("map", "spec", ""), &[SOURCE, before], &[SOURCE, after]);
    let scalar = "kind: Deployment\nmetadata:\n  name: t\nspec: text\n";
    let made =
        "kind: Deployment\nmetadata:\n  name: t\nspec:\n  one: 1 # first\n  # above\n  two:\n    x: z\n";
    becomes(NAME, &one("map", "spec", ""), &[SOURCE, scalar], &[SOURCE, made]);
}

#[test]
fn a_value_can_be_copied_into_itself() {
    let config = config(
        "- source: {kind: ConfigMap, fieldPath: map}
  targets:
  - select: {kind: ConfigMap}
    fieldPaths: [map.two]
",
    );
    let outcome = run(NAME, &config, &[SOURCE]);
    assert!(outcome.succeeded, "{}", outcome.stderr);
    let text = String::from_utf8(outcome.output).unwrap();
    let list = krm::Document::parse(&text).unwrap();
    let item = list.entries(list.get(list.root(), "items").unwrap()).next().unwrap();
    assert_eq!(list.text(list.at(item, &["map", "two", "two", "x"]).unwrap()).unwrap(), "z");
}

#[test]
fn texts_that_are_documents_are_changed_inside() {
    let target = "
kind: Deployment
metadata:
  name: t
data:
  json: '{\"a\": {\"b\": \"c\"}, \"port\": 80}'
  pretty: |
    {
      \"a\": {
        \"b\": \"c\"
      }
    }
  yaml: |
    # kept
    top:
      inner: v # also kept
    list:
    - name: x
";
    for (from, path, before, after) in [
        ("data.text", "data.json.a.b", "\"c\"}, ", "\"hello\"}, "),
        ("number", "data.json.port", "80", "42"),
        ("data.digits", "data.json.port", "80", "18"),
        ("data.text", "data.pretty.a.b", "\"c\"\n", "\"hello\"\n"),
        ("data.text", "data.yaml.top.inner", "v # also", "hello # also"),
        ("data.text", "data.yaml.list.[name=x].name", "name: x", "name: hello"),
    ] {
        let changed = target.replacen(before, after, 1);
        let outcome = run(NAME, &one(from, path, ""), &[SOURCE, target]);
        assert!(outcome.succeeded, "{} {:?}", path, outcome.results);
        assert_eq!(
            String::from_utf8(outcome.output).unwrap(),
            list(&one(from, path, ""), &[SOURCE, &changed])
        );
    }
    let missing = failure(NAME, &one("data.text", "data.yaml.nope.x", ""), &[SOURCE, target]);
    assert!(
        missing.starts_with("unable to find field \"data.yaml.nope.x\" in replacement target\n"),
        "{missing}"
    );
}

#[test]
fn what_cannot_be_done_is_told() {
    let selected = "ConfigMap.[noVer].[noGrp]/[noName].[noNs]";
    for (from, to, options, expected) in [
        ("data.nope", "spec", "", format!("fieldPath `data.nope` is missing for replacement source {selected}")),
        ("nothing", "spec", "", format!("fieldPath `nothing` is missing for replacement source {selected}")),
        ("empty", "spec", "", format!("fieldPath `empty` is missing for replacement source {selected}")),
        ("list.*", "spec", "", "error looking up replacement source: wildcard is not supported in PathGetter".into()),
        (
            "data.text.x",
            "spec",
            "",
            "error looking up replacement source: wrong node kind: expected MappingNode but got ScalarNode in line 24".into(),
        ),
        ("data.text", "spec.nope", "", "unable to find field \"spec.nope\" in replacement target".into()),
        (
            "data.text",
            "spec.replicas.x",
            "create: true",
            "unable to find or create field \"spec.replicas.x\" in replacement target: \
             wrong node kind: expected MappingNode but got ScalarNode in line 44"
                .into(),
        ),
        (
            "data.text",
            "spec.template.spec.containers.9.image",
            "",
            "unable to find field \"spec.template.spec.containers.9.image\" in replacement target: \
             index 9 specified but only 2 elements found"
                .into(),
        ),
        ("data.text", "spec.template", "delimiter: x", "delimiter option can only be used with scalar nodes".into()),
        ("list", "spec.replicas", "delimiter: x", "delimiter option can only be used with scalar nodes".into()),
        (
            "data.text",
            "spec.[name].x",
            "",
            "unable to find field \"spec.[name].x\" in replacement target: \
             list path element must contain fieldName=fieldValue for element to match"
                .into(),
        ),
    ] {
        assert_eq!(problem(&one(from, to, options)), expected, "{from} {to}");
    }
}

#[test]
fn bad_configurations_are_refused() {
    let target = "  targets:\n  - select: {kind: Deployment}\n";
    let conversion = "unable to convert functionConfig to replacements:\n";
    for (config, expected) in [
        (String::new(), "FunctionConfig is missing. Expect `ApplyReplacements`".to_owned()),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n".to_owned(),
            "received functionConfig of kind ConfigMap and apiVersion v1, only functionConfig of kind \
             ApplyReplacements and apiVersion fn.kpt.dev/v1alpha1 is supported"
                .to_owned(),
        ),
        (
            config("- source: {kind: ConfigMap}\n"),
            "replacements must specify a source and at least one target".to_owned(),
        ),
        (
            config(&format!("- {}", &target[2..])),
            "replacements must specify a source and at least one target".to_owned(),
        ),
        (
            config(&format!("- source: {{kind: A}}\n  sourceValue: x\n{target}")),
            "value and resource selectors are mutually exclusive".to_owned(),
        ),
        (
            config(&format!("- source: {{kind: A}}\n{target}")),
            "nothing selected by A.[noVer].[noGrp]/[noName].[noNs]".to_owned(),
        ),
        (
            config(&format!("- source: {{fieldPath: a.b, options: {{delimiter: '-', index: 2}}}}\n{target}")),
            "multiple matches for selector [noKind].[noVer].[noGrp]/[noName].[noNs]:a.b:-(2), create=false"
                .to_owned(),
        ),
        (
            config("- source: {kind: ConfigMap}\n  targets:\n  - fieldPaths: [a]\n"),
            "target must specify resources to select".to_owned(),
        ),
        (
            config(&format!(
                "- source: {{kind: ConfigMap, fieldPath: data.text, options: {{delimiter: l, index: 7}}}}\n{target}"
            )),
            "options.index 7 is out of bounds for value hello".to_owned(),
        ),
        (
            config("- sourceValue: x\n  targets:\n  - select: {name: '('}\n"),
            "error creating target selector: error parsing regexp: unclosed group: `^(?:()$`".to_owned(),
        ),
        (
            config("- sourceValue: x\n  targets:\n  - select: {labelSelector: 'a b'}\n"),
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, >, <".to_owned(),
        ),
        (config("  text\n"), format!("{conversion}replacements must be a list")),
        (config("- text\n"), format!("{conversion}each of the replacements must be a mapping")),
        (config("- source: text\n  targets: []\n"), format!("{conversion}source must be a mapping")),
        (config("- sourceValue: [x]\n  targets: []\n"), format!("{conversion}sourceValue must be a text")),
        (config("- sourceValue: x\n  targets: text\n"), format!("{conversion}targets must be a list")),
        (
            config("- sourceValue: x\n  targets: [text]\n"),
            format!("{conversion}each of the targets must be a mapping"),
        ),
        (
            config("- sourceValue: x\n  targets:\n  - select: {}\n    options: {index: one}\n"),
            format!("{conversion}options.index must be a number"),
        ),
        (
            config("- sourceValue: x\n  targets:\n  - select: {}\n    options: {create: one}\n"),
            format!("{conversion}options.create must be true or false"),
        ),
        (
            config("- sourceValue: x\n  targets:\n  - select: {}\n    fieldPaths: [[a]]\n"),
            format!("{conversion}each of the fieldPaths must be a text"),
        ),
    ] {
        assert_eq!(problem(&config), expected, "{config}");
    }
    becomes(NAME, "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\n", &[TARGET], &[TARGET]);
}

#[test]
fn copies_of_copies_do_not_grow_without_bound() {
    let mut replacements = String::new();
    for _ in 0..60 {
        replacements.push_str(
            "- source: {kind: ConfigMap, fieldPath: map}
  targets:
  - select: {kind: ConfigMap}
    fieldPaths: [map.a, map.b]
    options: {create: true}
",
        );
    }
    let found = problem(&config(&replacements));
    assert!(found.contains("because of `replacements`"), "{found}");
    // A text that is put before itself.
    let doubling = "- source: {kind: ConfigMap, fieldPath: data.text}
  targets:
  - select: {kind: ConfigMap}
    fieldPaths: [data.text]
    options: {delimiter: ',', index: -1}
"
    .repeat(60);
    let found = problem(&config(&doubling));
    assert!(found.contains("bytes of output, because of `replacements`"), "{found}");
}

#[test]
fn too_many_comparisons_are_refused() {
    let config = config(&"- sourceValue: x\n  targets:\n  - select: {kind: A}\n".repeat(10_000));
    let found = failure(NAME, &config, &vec!["kind: B"; 10_000]);
    assert!(found.contains("steps of work"), "{found}");
}

#[test]
fn endless_paths_are_refused() {
    let found = problem(&one("data.text", &"a.".repeat(100_000), "create: true"));
    assert!(found.ends_with("a field path has 100001 parts, more than 200"), "{}", found.len());
    // Each makes the field deeper.
    let mut replacements = String::new();
    for at in 0..10 {
        let path = vec!["a"; 190 * at + 1].join(".");
        let path = if at == 0 { "spec".to_owned() } else { path };
        replacements.push_str(&format!(
            "- sourceValue: x\n  targets:\n  - select: {{kind: Deployment}}\n    fieldPaths: [{path}]\n    options: {{create: true}}\n"
        ));
    }
    problem(&config(&replacements));
}
