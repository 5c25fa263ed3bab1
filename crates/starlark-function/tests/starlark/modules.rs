use super::*;

#[test]
fn all_modules_of_the_catalog_can_be_loaded() {
    let program = "
load('bsoup.star', 'bsoup')
load('encoding/base64.star', 'base64')
load('encoding/csv.star', 'csv')
load('encoding/json.star', 'json')
load('encoding/yaml.star', 'yaml')
load('geo.star', 'geo')
load('hash.star', 'hash')
load('html.star', 'html')
load('http.star', 'http')
load('math.star', 'math')
load('re.star', 're')
load('time.star', 'time')
load('xlsx.star', 'xlsx')
load('zipfile.star', 'ZipFile')
load('krmfn.star', 'krmfn')
print(type(json))
";
    assert_eq!(prints(program).len(), 1);
}

#[test]
fn what_is_not_here_says_so() {
    for (module, name, call) in [
        ("http.star", "http", "http.get('https://example.com')"),
        ("time.star", "time", "time.now()"),
        ("zipfile.star", "ZipFile", "ZipFile(name = 'x')"),
    ] {
        let message = failure(&format!("load('{module}', '{name}')\n{call}"), &[]);
        assert!(
            message.starts_with("this module is not available in the built-in starlark function"),
            "{message}"
        );
    }
    let message = failure("load('file.star', 'x')", &[]);
    assert!(
        message.contains("there is no module file.star; there are bsoup.star, encoding/base64.star"),
        "{message}"
    );
    let message = failure("load('math.star', 'nothing')", &[]);
    assert!(message.contains("nothing"), "{message}");
}

#[test]
fn json_is_read_and_written() {
    let program = r#"
load('encoding/json.star', 'json')
print(json.encode({'b': [1, 2.5, None, True], 'a': 'x"\n'}))
print(json.decode('{"b": [1, 2.5, null, true], "a": "\\u00e4\\ud83d\\ude00"}')['a'])
print(json.decode('nope', default = 'other'))
print(json.indent('{"a": [1, {}], "b": "x, y"}', indent = '  '))
print(json.indent('[1]', prefix = '>'))
"#;
    assert_eq!(
        prints(program),
        [
            r#"{"a":"x\"\n","b":[1,2.5,null,true]}"#,
            "ä😀",
            "other",
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"x, y\"\n}",
            "[\n>\t1\n>]",
        ]
    );
    let message = failure("load('encoding/json.star', 'json')\njson.decode('{')", &[]);
    assert_eq!(message, "json.decode: at offset 1, unexpected end of file");
}

#[test]
fn yaml_is_read_and_written() {
    let program = r"
load('encoding/yaml.star', 'yaml')
print(yaml.loads('b: [1, x]\na: {c: 0x10} # comment\n'))
print(yaml.loads(''))
print(yaml.dumps({'b': [1, 'x'], 'a': {'c': None}}))
print(yaml.dumps([1, [2]]), yaml.dumps('a'))
";
    assert_eq!(
        prints(program),
        [
            "{\"b\": [1, \"x\"], \"a\": {\"c\": 16}}",
            "None",
            "a:\n  c: null\nb:\n- 1\n- x\n",
            "- 1\n- - 2\n a\n"
        ]
    );
    let message = failure("load('encoding/yaml.star', 'yaml')\nyaml.loads('a: [')", &[]);
    assert!(message.contains("line 1"), "{message}");
}

#[test]
fn base64_and_hashes() {
    let program = "
load('encoding/base64.star', 'base64')
load('hash.star', 'hash')
print(base64.encode('hello?>'), base64.decode('aGVsbG8='), base64.encode('hello?>', encoding = 'url_raw'))
print(hash.md5('hello'), hash.sha1('hello'))
print(hash.sha256('hello'))
";
    assert_eq!(
        prints(program),
        [
            "aGVsbG8/Pg== hello aGVsbG8_Pg",
            "5d41402abc4b2a76b9719d911017c592 aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d",
            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        ]
    );
    for call in ["base64.decode('!')", "base64.decode('//8=')", "base64.encode('x', encoding = 'rot13')"] {
        failure(&format!("load('encoding/base64.star', 'base64')\n{call}"), &[]);
    }
}

#[test]
fn regular_expressions() {
    let program = r"
load('re.star', 're')
print(re.search('b+', 'abbc'), re.search('x', 'abc'))
print(re.match('(a)(b)?', 'ab a'))
print(re.split(',', 'a,b,c'), re.split(',', 'a,b,c', 2), re.findall('[a-c]', 'abxc'))
print(re.sub('(a)b', '$1-', 'ab ab'))
p = re.compile('a+')
print(p.search('baa'), p.match('aa a'), p.split('1a2'), p.findall('aa a'), p.sub('x', 'aab'))
";
    assert_eq!(
        prints(program),
        [
            "[1, 3] None",
            "[(\"ab\", \"a\", \"b\"), (\"a\", \"a\", \"\")]",
            "(\"a\", \"b\", \"c\") (\"a\", \"b,c\") (\"a\", \"b\", \"c\")",
            "a- a-",
            "[1, 3] [(\"aa\",), (\"a\",)] (\"1\", \"2\") (\"aa\", \"a\") xb",
        ]
    );
    let message = failure("load('re.star', 're')\nre.compile('(')", &[]);
    assert!(message.contains("error parsing regexp"), "{message}");
}

#[test]
fn mathematics() {
    let program = "
load('math.star', 'math')
print(math.ceil(1.2), math.floor(-1.2), math.round(1.5), math.fabs(-2), math.pow(2, 3), math.mod(7, 4), math.sqrt(16))
print(math.log(math.e), math.log(8, 2), math.copysign(1, -2), math.remainder(7, 4), math.hypot(3, 4), math.degrees(math.pi))
print(math.cos(0), math.sin(0), math.atan2(0, 1), math.exp(0), math.tanh(0))
";
    assert_eq!(
        prints(program),
        ["2 -2 2.0 2.0 8.0 3.0 4.0", "1.0 3.0 -1.0 -1.0 5.0 180.0", "1.0 0.0 0.0 1.0 0.0"]
    );
    failure("load('math.star', 'math')\nmath.ceil(1e300)", &[]);
    failure("load('math.star', 'math')\nmath.ceil('x')", &[]);
}

#[test]
fn questions_about_resources() {
    let program = "
load('krmfn.star', 'krmfn')
r = ctx.resource_list['items'][0]
print(krmfn.match_gvk(r, 'apps/v1', 'Deployment'), krmfn.match_gvk(r, 'v1', 'Deployment'), krmfn.match_gvk(r, 'v1', 'Pod'))
print(krmfn.match_name(r, 'a'), krmfn.match_name(r, 'b'), krmfn.match_namespace(r, 'n'), krmfn.match_namespace(r, ''))
";
    let (outcome, printed) =
        run(program, &["apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n  namespace: n\n"]);
    assert!(outcome.succeeded, "{:?}", outcome.results);
    assert_eq!(printed, ["True True False", "True False True False"]);
}
