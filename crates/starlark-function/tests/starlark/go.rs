//! What go.starlark.net makes of the same programs: each text here is what the catalog's function prints.

use super::*;

#[test]
fn texts_of_values() {
    for (program, expected) in [
        (
            "print(1, 'a', [1.5], 1234567.5, 1e30, {'a': None}, (1,), True, set([1, 2]))",
            "1 a [1.5] 1.2345675e+06 1e+30 {\"a\": None} (1,) True set([1, 2])",
        ),
        ("print(-0.0, 1e-7, 3.0, 100000.0, 1000000.0)", "-0.0 1e-07 3.0 100000.0 1e+06"),
        (
            "print(str(1.0), repr('a\\n\"b'), str('x'), repr('\\x01\\x7f'))",
            "1.0 \"a\\n\\\"b\" x \"\\x01\\x7f\"",
        ),
        ("print('a', 'b', sep = '-')", "a-b"),
        ("l = []\nl.append(l)\nd = {}\nd['d'] = d\nprint(l, d)", "[[...]] {\"d\": {...}}"),
        ("def f(): pass\nprint(len, f, lambda: 1)", "<built-in function len> <function f> <function lambda>"),
    ] {
        assert_eq!(prints(program), [expected], "{program}");
    }
}

#[test]
fn formats() {
    for (program, expected) in [
        ("print('%(k)s %(j)d' % {'k': 1.0, 'j': 2})", "1.0 2"),
        ("print('%i %c %c %x %X %o' % (3, 'é', 233, 255, 255, 8))", "3 é é ff FF 10"),
        (
            "print('%r %s' % ('a', [1.0]), '%g %e %f' % (1e10, 1.5, 2))",
            "\"a\" [1.0] 1e+10 1.500000e+00 2.000000",
        ),
        ("print('%s%%' % 5, '%d' % 3.7, 7 % 3, -7 % 3, 7.5 % 2)", "5% 3 1 2 1.5"),
        ("x = 'a%s'\nx %= 1.0\ny = 7\ny %= (4)\nprint(x, y)", "a1.0 3"),
        ("print('{} {a!r} {{}}'.format(1.0, a = 'x'), '{0}{1}{0}'.format(1, 2))", "1.0 \"x\" {} 121"),
    ] {
        assert_eq!(prints(program), [expected], "{program}");
    }
}

#[test]
fn strings_are_bytes() {
    for (program, expected) in [
        ("print(len('né'), 'né'[0], 'né'[0:1], 'né'[1:], 'né'[-2:])", "3 n n é é"),
        (
            "print('né'.find('é'), 'xéa'.index('a'), 'éa'.rfind('a'), 'éaé'.count('é'), 'né'.find('x'))",
            "1 3 2 2 -1",
        ),
        ("print('éa'.find('a', 1), 'éa'.startswith('a', 2), 'éa'.endswith('é', 0, 2))", "2 True True"),
        (
            "print(list('né'.codepoints()), list('né'.codepoint_ords()), list('né'.elem_ords()))",
            "[\"n\", \"é\"] [110, 233] [110, 195, 169]",
        ),
        ("print(ord('é'), chr(233), 'né'.upper())", "233 é NÉ"),
    ] {
        assert_eq!(prints(program), [expected], "{program}");
    }
    // What the interpreter cannot have is refused, and not made up.
    for program in ["'né'[1]", "'née'[0:2]", "'é'.elems()", "'né'[::2]"] {
        let message = failure(program, &[]);
        assert!(message.contains("let the service run the function's image instead"), "{message}");
    }
}

/// Programs are rewritten to call our functions, wherever brackets are.
#[test]
fn brackets_are_what_they_were() {
    for (program, expected) in [
        (
            "print((1, 2)[1], ('abc')[1], ([1, 2])[0:1], 'abcdef'[::2], 'abc'[-1], [1, 2, 3][::-1])",
            "2 b [1] ace c [3, 2, 1]",
        ),
        (
            "print([x[0] for x in ['ab', 'cd']], {'a': [1]}['a'][0], (lambda a: a[0])('xy'))",
            "[\"a\", \"c\"] 1 x",
        ),
        (
            "d = {'a': {'b': [1, 2]}}\nd['a']['b'][0] = 5\nd['a']['c'] = d['a']['b'][1:]\nprint(d)",
            "{\"a\": {\"b\": [5, 2], \"c\": [2]}}",
        ),
        ("a = [1, 2, 3]\na[0] += 5\nprint(a, a[a[0] - 5])", "[6, 2, 3] 2"),
        (
            "print(not 'a'[0:0], -[1][0], [1, 2][0] + 1, [[1]][0][0], 1 if [0][0] else 'b'[0])",
            "True -1 2 1 b",
        ),
        ("print('abc'[1:2:1], 'abc'[:], 'abc'[5:], [1, 2, 3][-2:], (1, 2, 3)[:2])", "b abc  [2, 3] (1, 2)"),
        (
            "x = 'a]['\nprint(x [ 1 ], r'\\['[0], 'b'.find('b'), ('x' + 'y').find('y'), ''.join(['a']).count('a'))",
            "] \\ 0 1 1",
        ),
        (
            "def f(x):\n  return x[1:3]\nprint(f('hello').find('l'), f([1, 2, 3]), [f('abc')][0][0:1])",
            "1 [2, 3] b",
        ),
        ("x = [1]\n(x[0], y) = (2, 3)\n[x[0] for x in [[4]]]\nprint(x[0], y)", "2 3"),
    ] {
        assert_eq!(prints(program), [expected], "{program}");
    }
}

#[test]
fn json_and_yaml() {
    let json = "load('encoding/json.star', 'json')\n";
    for (program, expected) in [
        (
            "print(json.encode({'b': 1, 'a': [1.0, 1e21, 1234567.5, '<é>', '<', '\\n'], 't': (1,)}))",
            r#"{"a":[1,1e+21,1.2345675e+06,"\u003cé\u003e","<","\n"],"b":1,"t":[1]}"#,
        ),
        (
            r#"print(json.decode('[1, 1.0, 1e3, -0, 123456789012345678901234567890, "\\u00e9\\n"]'))"#,
            r#"[1, 1.0, 1000.0, 0, 123456789012345678901234567890, "é\n"]"#,
        ),
    ] {
        assert_eq!(prints(&format!("{json}{program}")), [expected], "{program}");
    }
    for (program, expected) in [
        ("json.decode('[1,')", "json.decode: at offset 3, unexpected end of file"),
        ("json.decode('01')", "json.decode: at offset 2, invalid number: 01"),
        ("json.decode('{1:2}')", "json.decode: at offset 2, got int for object key, want string"),
        ("json.decode('tru')", "json.decode: at offset 0, unexpected character 't'"),
        ("json.encode({1: 2})", "json.encode: dict has int key, want string"),
        ("json.encode(float('nan'))", "json.encode: cannot encode non-finite float nan"),
    ] {
        assert_eq!(failure(&format!("{json}{program}"), &[]), expected, "{program}");
    }
    let program = "load('encoding/yaml.star', 'yaml')\nprint(yaml.loads('a: yes\\nb: [no, on, off, y, \"yes\", true]\\nc: 0x1F\\nd: 1e3\\ne: 014\\n'))";
    let expected = "{\"a\": True, \"b\": [False, True, False, True, \"yes\", True], \"c\": 31, \"d\": 1000.0, \"e\": 12}";
    assert_eq!(prints(program), [expected]);
}

#[test]
fn tables() {
    let csv = "load('encoding/csv.star', 'csv')\n";
    for (program, expected) in [
        (
            r#"print(csv.read_all('a,b\n"c,""d",e\n\nf,"g\nh"\n'))"#,
            "[[\"a\", \"b\"], [\"c,\\\"d\", \"e\"], [\"f\", \"g\\nh\"]]",
        ),
        (
            r#"print(csv.write_all([['a', 'b,c', 1, 1.5, None, True], ['x"y', ' z']]))"#,
            "a,\"b,c\",1,1.5,<nil>,true\n\"x\"\"y\",\" z\"\n",
        ),
        (
            r"print(csv.read_all('#x\na;b\n', comma = ';', comment = '#'), csv.read_all('h\na\n', skip = 1))",
            "[[\"a\", \"b\"]] [[\"a\"]]",
        ),
        ("print(csv.read_all(''))", "[]"),
    ] {
        assert_eq!(prints(&format!("{csv}{program}")), [expected], "{program}");
    }
    for (program, expected) in [
        (r"csv.read_all('a,b\nc\n')", "record on line 2: wrong number of fields"),
        (r#"csv.read_all('a,b"x\nc,d\n')"#, "parse error on line 1, column 4: bare \" in non-quoted-field"),
        (
            r#"csv.read_all('a,"b\nc,d\n')"#,
            "record on line 1; parse error on line 2, column 5: extraneous or missing \" in quoted-field",
        ),
        ("csv.write_all(1)", "expected value to be an array type"),
    ] {
        assert_eq!(failure(&format!("{csv}{program}"), &[]), expected, "{program}");
    }
}

/// Numbers that a program does not change stay as they are written; so do anchors and merge keys.
#[test]
fn what_is_not_changed_stays_as_it_came() {
    let resource = "\
kind: A
numbers: [0, -0, 1e3, 0x1F, 0o17, 1_000, .5, 9223372036854775807, -9223372036854775808, 18446744073709551615, 123456789012345678901234567890]
base: &base {a: 1, b: [x]}
derived: {<<: *base, c: 0x10}
";
    let program = "
r = ctx.resource_list['items'][0]
if r['derived']['a'] != 1: fail('merge keys are not resolved')
if '<<' in r['derived']: fail('merge keys are to be seen')
r['kind'] = 'B'
";
    becomes(program, &[resource], &[&resource.replace("kind: A", "kind: B")]);
    let program = "ctx.resource_list['items'][0]['derived']['a'] = 2";
    becomes(program, &[resource], &[&resource.replace("c: 0x10}", "c: 0x10, a: 2}")]);
}
