use super::*;

/// What is wrong with the program itself has its place, what goes wrong in a run has none: both in Go's words.
#[test]
fn errors_are_in_the_words_of_go() {
    for (program, expected) in [
        ("x = 1\nfail('no', 'good', [1.0])", "fail: no good [1.0]"),
        ("fail('no', 'good', sep = '-')", "fail: no-good"),
        ("x = (1 +", "program:2:1: got end of file, want primary expression"),
        ("x = ", "program:2:1: got newline, want primary expression"),
        ("def f():\nreturn 1", "program:2:7: got return, want indent"),
        ("x = \"abc", "program:1:5: unexpected newline in string"),
        ("x = 1\ny = z", "program:2:5: undefined: z"),
        ("x = [1][0] % 2\ny = ('é'[0:2] + z)", "program:2:17: undefined: z"),
        ("while True:\n\n  x = 1 // 0", "floored division by zero"),
        ("def f():\n  return {}['a']\nf()", "key \"a\" not in dict"),
        ("if True\n  pass", "program:2:1: got newline, want ':'"),
        ("return 1", "program:1:1: return statement not within a function"),
        ("[][1]", "index 1 out of range: empty list"),
        ("(1, 2)[5]", "tuple index 5 out of range [-2:1]"),
        ("'abc'[7]", "string index 7 out of range [-3:2]"),
        ("'né'[3]", "string index 3 out of range [-3:2]"),
        ("'a' + 1", "unknown binary op: string + int"),
        ("'a' < 1", "string < int not implemented"),
        ("ctx.foo", "struct has no .foo attribute"),
        ("'a'.foo()", "string has no .foo field or method"),
        ("(1).index(2)", "int has no .index field or method"),
        ("len(1)", "len: value of type int has no len"),
        ("for x in 1: pass", "int value is not iterable"),
        ("int('x')", "int: invalid literal with base 10: x"),
        ("{}.pop('k')", "pop: missing key"),
        ("[1].index(2)", "index: value not in list"),
        ("'abc'.index('z')", "index: substring not found"),
        ("a, b = [1, 2, 3]", "too many values to unpack (got 3, want 2)"),
        ("a, b = [1]", "too few values to unpack (got 1, want 2)"),
        ("{[]: 1}", "unhashable type: list"),
        ("1 % 0", "integer modulo by zero"),
        ("1()", "invalid call of non-function (int)"),
        ("'%d' % 'a'", "%d format requires integer: cannot convert string to int"),
        ("'%s %s' % ('a',)", "not enough arguments for format string"),
        ("'%s' % ('a', 'b')", "too many arguments for format string"),
        ("'%(k)s' % {}", "key not found: k"),
        ("'%(k)s' % 1", "format requires a mapping"),
        ("'%y' % 1", "unknown conversion %y"),
        ("'%' % 1", "incomplete format"),
        ("'%c' % 'ab'", "%c format requires a single-character string"),
        ("'{}'.format()", "format: tuple index out of range"),
        (
            "'{} {1}'.format(1, 2)",
            "format: cannot switch from automatic field numbering to manual field specification",
        ),
        ("'{x}'.format()", "format: keyword x not found"),
        ("'}'.format()", "format: single '}' in format"),
        ("chr(-1)", "chr: Unicode code point -1 out of range (<0)"),
        ("ord('ab')", "ord: string encodes 2 Unicode code points, want 1"),
        (
            "ctx.open_api['x']",
            "ctx.open_api is not available in the built-in starlark function; let the service run the function's image instead",
        ),
    ] {
        assert_eq!(failure(program, &[]), expected, "{program}");
    }
}

#[test]
fn nothing_but_the_failure_is_on_stderr() {
    let (outcome, _) = run("def f():\n  fail('x')\ndef g():\n  f()\ng()", &[]);
    assert_eq!(outcome.stderr, "failed to evaluate function: error: function failure\n");
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
