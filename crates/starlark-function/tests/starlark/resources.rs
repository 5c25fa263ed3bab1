use super::*;

const MAP: &str = "
# Settings.
apiVersion: v1
kind: ConfigMap
metadata: # who
  name: 'settings'   # quoted
data:
  list: [a, b]   # flow
  mode: 0644     # octal
  hex: 0x1F
  ratio: 1.50
  since: 2024-01-01
  yes: \"yes\"
  text: |
    one
    two

  nothing: ~
";

#[test]
fn what_a_program_does_not_change_stays_byte_for_byte() {
    becomes("pass", &[MAP], &[MAP]);
    becomes(
        "for r in ctx.resource_list['items']:\n  r['metadata']['name'] = r['metadata']['name']",
        &[MAP],
        &[MAP],
    );
    // Also if all of it is made anew.
    becomes("ctx.resource_list['items'] = [r for r in ctx.resource_list['items']]", &[MAP, MAP], &[MAP, MAP]);
}

#[test]
fn a_program_sets_adds_and_deletes_fields() {
    let after = MAP
        .replace("'settings'   #", "'changed'   #")
        .replace("name: 'changed'   # quoted\n", "name: 'changed'   # quoted\n  namespace: prod\n")
        .replace("[a, b]", "[a, b, c]")
        .replace("  ratio: 1.50\n", "")
        .replace("  nothing: ~\n", "  nothing: ~\n  added:\n    deep: true\n");
    let program = "
r = ctx.resource_list['items'][0]
r['metadata']['name'] = 'changed'
r['metadata']['namespace'] = 'prod'
r['data']['list'].append('c')
r['data'].pop('ratio')
r['data']['added'] = {'deep': True}
";
    becomes(program, &[MAP], &[&after]);
    // The second run has nothing to do.
    let program = program.replace("append('c')", "extend([])").replace("pop('ratio')", "pop('ratio', None)");
    becomes(&program, &[&after], &[&after]);
}

#[test]
fn resources_come_go_and_move_with_their_comments() {
    let named = |name: &str| format!("kind: A # {name}\nmetadata:\n  name: {name}\n");
    let (a, b, c) = (named("a"), named("b"), named("c"));
    let new = "kind: B\nmetadata:\n  name: new\n";
    let all = [&*a, &*b, &*c];
    let items = "items = ctx.resource_list['items']\n";
    for (program, after) in [
        ("items.append({'kind': 'B', 'metadata': {'name': 'new'}})", vec![&*a, &*b, &*c, new]),
        ("items.insert(1, {'kind': 'B', 'metadata': {'name': 'new'}})", vec![&*a, new, &*b, &*c]),
        ("items.pop(1)", vec![&*a, &*c]),
        ("items.clear()", vec![]),
        ("ctx.resource_list['items'] = [items[2], items[0]]", vec![&*c, &*a]),
        ("ctx.resource_list['items'] = [items[0], items[0]]", vec![&*a, &*a]),
        ("ctx.resource_list['items'] = tuple(items[1:])", vec![&*b, &*c]),
        ("ctx.resource_list['items'] = None", vec![]),
        ("ctx.resource_list.pop('items')", vec![]),
        (
            "ctx.resource_list['items'] = sorted(items, key = lambda r: r['metadata']['name'], reverse = True)",
            vec![&*c, &*b, &*a],
        ),
        // What is bound to the name is not looked at.
        ("ctx = 1", vec![&*a, &*b, &*c]),
    ] {
        becomes(&format!("{items}{program}"), &all, &after);
    }
}

#[test]
fn the_number_of_an_entry_is_no_part_of_it() {
    let before = "kind: A\nlist:\n- {mode: 0644} # one\n- {mode: 0755} # two\n- {mode: 0600} # three\n";
    let after = "kind: A\nlist:\n- {mode: 0755} # two\n- {mode: 0600} # three\n";
    let program = "ctx.resource_list['items'][0]['list'].pop(0)";
    becomes(program, &[before], &[after]);
}

#[test]
fn values_have_their_types() {
    let resource = "
int: 7
hex: 0x1F
octal: 014
big: 18446744073709551615
negative: -9223372036854775808
float: 1.5
whole: 2.0
infinite: .inf
truth: True
null: null
nothing:
text: 'x'
digits: '7'
date: 2024-01-01
on: on
list: [1, [2]]
";
    let program =
        "for key, value in ctx.resource_list['items'][0].items():\n  print(key, type(value), value)";
    let (outcome, printed) = run(program, &[resource]);
    assert!(outcome.succeeded);
    let expected = [
        "int int 7",
        "hex int 31",
        "octal int 12",
        "big int 18446744073709551615",
        "negative int -9223372036854775808",
        "float float 1.5",
        "whole float 2.0",
        "infinite float +inf",
        "truth bool True",
        "null NoneType None",
        "nothing NoneType None",
        "text string x",
        "digits string 7",
        "date string 2024-01-01",
        "on string on",
        "list list [1, [2]]",
    ];
    assert_eq!(printed, expected);
}

#[test]
fn values_are_written_as_what_they_are() {
    let program = "
ctx.resource_list['items'].append({
  'int': 7, 'big': 18446744073709551615, 'float': 1.5, 'whole': 2.0, 'truth': False, 'none': None,
  'text': 'x', 'digits': '7', 'yes': 'yes', 'date': '2024-01-01', 'tuple': (1, 'two'), 'empty': {}, 'lines': 'a\\nb\\n',
  'range': [x for x in range(2)],
})";
    let (outcome, _) = run(program, &["list:\n- 1\n"]);
    assert!(outcome.succeeded, "{:?}", outcome.results);
    let text = String::from_utf8(outcome.output).unwrap();
    let expected = "
- big: 18446744073709551615
  date: \"2024-01-01\"
  digits: \"7\"
  empty: {}
  float: 1.5
  int: 7
  lines: |
    a
    b
  none: null
  range:
  - 0
  - 1
  text: x
  truth: false
  tuple:
  - 1
  - two
  whole: 2
  \"yes\": \"yes\"
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn the_configuration_is_there_and_changes_to_it_are_not_looked_at() {
    let program = "
config = ctx.resource_list['functionConfig']
ctx.resource_list['items'][0]['next'] = config['params']['number'] + 1
config['params']['number'] = 9
ctx.resource_list['results'] = [{'message': 'not looked at'}]
ctx.resource_list['items'][0]['kinds'] = ctx.resource_list['kind'] + ' ' + ctx.resource_list['apiVersion']
ctx.resource_list['items'][0]['home'] = ctx.environment['HOME']
";
    let after = "kind: A\nhome: /tmp\nkinds: ResourceList config.kubernetes.io/v1\nnext: 8\n";
    becomes(program, &["kind: A\n"], &[after]);
}

#[test]
fn a_config_map_has_the_program_and_its_parameters() {
    let list = format!(
        "kind: ResourceList
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: set-replicas
  data:
    replicas: \"5\"
    source: |
      for r in ctx.resource_list['items']:
        r['replicas'] = ctx.resource_list['functionConfig']['data']['replicas']
{}",
        items(&["kind: A\n"])
    );
    let (outcome, _) = run_list(&list);
    assert!(outcome.succeeded, "{:?}", outcome.results);
    assert!(String::from_utf8(outcome.output).unwrap().ends_with("- kind: A\n  replicas: \"5\"\n"));
}

#[test]
fn lists_in_json_stay_json() {
    let list = r#"{"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "functionConfig": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"source": "ctx.resource_list['items'][0]['b'] = [1]"}}, "items": [{"a": 0}]}"#;
    let (outcome, _) = run_list(list);
    assert!(outcome.succeeded, "{:?}", outcome.results);
    let text = String::from_utf8(outcome.output).unwrap();
    assert_eq!(text, list.replace(r#"{"a": 0}"#, r#"{"a": 0, "b": [1]}"#));
}
