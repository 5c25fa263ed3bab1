use super::*;

#[test]
fn errors_have_their_place_in_the_program() {
    for (program, expected) in [
        ("x = 1\nfail('no', 'good')", "program:2:1: fail: no good"),
        ("x = (1 +", "program:2:1: Parse error: "),
        ("x = 1\ny = z", "program:2:5: Variable `z` not found"),
        ("while True:\n\n  x = 1 // 0", "program:3:7: "),
        ("def f():\n  return {}['a']\nf()", "program:2:10: Key `\"a\"` was not found"),
        ("ctx.open_api", "program:1:1: Object of type `struct` has no attribute `open_api`"),
        ("if True\n  pass", "program:1:8: Parse error: "),
    ] {
        let message = failure(program, &[]);
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn calls_that_led_to_an_error_are_on_stderr() {
    let (outcome, _) = run("def f():\n  fail('x')\ndef g():\n  f()\ng()", &[]);
    assert_eq!(
        outcome.stderr,
        "Traceback (most recent call last):
  program:5:1: in <toplevel>
  program:4:3: in g
  program:2:3: in f
failed to evaluate function: error: function failure
"
    );
}

#[test]
fn nothing_is_changed_by_a_program_that_fails() {
    let resource = "kind: A # comment\n";
    let (outcome, _) = run("ctx.resource_list['items'][0]['kind'] = 'B'\nfail('x')", &[resource]);
    let text = String::from_utf8(outcome.output).unwrap();
    assert!(text.contains("- kind: A # comment\n"), "{text}");
}

#[test]
fn what_cannot_be_written_is_refused() {
    for (program, expected) in [
        (
            "ctx.resource_list['items'] = 'x'",
            "ctx.resource_list[\"items\"] must be a list, but is of type string",
        ),
        (
            "ctx.resource_list['items'] = ['x']",
            "ctx.resource_list[\"items\"][0] must be a dict, but is of type string",
        ),
        (
            "ctx.resource_list['items'] = [{}, {'a': [print]}]",
            "ctx.resource_list[\"items\"][1][\"a\"][0]: a value of type function cannot be part of a resource",
        ),
        (
            "ctx.resource_list['items'] = [{'a': set([1])}]",
            "ctx.resource_list[\"items\"][0][\"a\"]: a value of type set cannot be part of a resource",
        ),
        (
            "ctx.resource_list['items'] = [{'a': ctx}]",
            "ctx.resource_list[\"items\"][0][\"a\"]: a value of type struct cannot be part of a resource",
        ),
        (
            "ctx.resource_list['items'] = [{'a': {1: 'a'}}]",
            "ctx.resource_list[\"items\"][0][\"a\"]: the keys of a resource must be strings, but one is of type int",
        ),
        (
            "ctx.resource_list['items'] = [{'a': float('nan')}]",
            "ctx.resource_list[\"items\"][0][\"a\"]: the number nan cannot be part of a resource",
        ),
        (
            "ctx.resource_list['items'] = [{'a': -float('inf')}]",
            "ctx.resource_list[\"items\"][0][\"a\"]: the number -inf cannot be part of a resource",
        ),
        (
            "ctx.resource_list['items'] = [{'a': 18446744073709551615 + 1}]",
            "ctx.resource_list[\"items\"][0][\"a\"]: an integer of more than 64 bits cannot be part of a resource",
        ),
    ] {
        assert_eq!(failure(program, &[]), expected);
    }
    for (program, expected) in [
        ("x = {}\nx['x'] = x", "values are nested more than 480 levels deep, or in themselves"),
        (
            "x = []\nfor i in range(100):\n  x = [x, x]",
            "what the program wants written is larger than 256 MiB",
        ),
    ] {
        let message = failure(&format!("{program}\nctx.resource_list['items'] = [{{'x': x}}]"), &[]);
        assert!(message.starts_with("ctx.resource_list[\"items\"][0][\"x\"]"), "{message}");
        assert!(message.ends_with(&format!("...: {expected}")), "{message}");
    }
}

#[test]
fn bad_configurations_are_refused() {
    let run = "apiVersion: fn.kpt.dev/v1alpha1\n  kind: StarlarkRun\n  metadata: {name: x}\n";
    let either = "`functionConfig` must be either /v1, Kind=ConfigMap or fn.kpt.dev/v1alpha1, Kind=StarlarkRun, but we got: ";
    for (config, expected) in [
        ("{}", "FunctionConfig is missing. Expect `ConfigMap` or `StarlarkRun`".to_owned()),
        (run, "`source` must not be empty".to_owned()),
        (&format!("{run}  source: ''"), "`source` must not be empty".to_owned()),
        (&format!("{run}  source: [x]"), "`source` must be a string".to_owned()),
        (&format!("{run}  source: 5"), "`source` must be a string".to_owned()),
        (&format!("{run}  source: !!binary aGk="), "`source` must be a string".to_owned()),
        ("apiVersion: v1\n  kind: ConfigMap", "`source` must not be empty".to_owned()),
        ("apiVersion: v1\n  kind: ConfigMap\n  data: {x: foo}", "`source` must not be empty".to_owned()),
        (
            "apiVersion: v1\n  kind: ConfigMap\n  data: {source: 5}",
            "all values of `data` must be strings".to_owned(),
        ),
        (
            "apiVersion: fn.kpt.dev/v1beta1\n  kind: StarlarkFunction",
            format!("{either}fn.kpt.dev/v1beta1, Kind=StarlarkFunction"),
        ),
    ] {
        let (outcome, _) = run_list(&format!("kind: ResourceList\nfunctionConfig:\n  {config}\nitems: []\n"));
        assert!(!outcome.succeeded);
        assert_eq!(outcome.results.iter().map(|result| &*result.message).collect::<String>(), expected);
    }
    let (outcome, _) = run_list("kind: ResourceList\n");
    assert!(!outcome.succeeded);
    let (outcome, _) = run_list("kind: Other\n");
    assert!(!outcome.succeeded && outcome.output.is_empty());
    let outcome =
        starlark_function::run(b"kind: ResourceList\nfunctionConfig: {source: \"\xff\"}\n", &[], &|_| {});
    assert!(!outcome.succeeded && outcome.output.is_empty());
    assert!(outcome.stderr.contains("UTF-8"), "{}", outcome.stderr);
}
