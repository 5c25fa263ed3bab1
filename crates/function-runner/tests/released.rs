//! The released programs change no number, whatever their dependencies were built with.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

use std::{
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use function_runner::builtin::{self, Builtin};
use testing::{Server, released};
use wire::client::CallOptions;

/// Numbers of every kind, and what only looks like one.
const ITEM: &str = r#"  - apiVersion: example.com/v1
    kind: Numbers
    metadata:
      name: numbers
    spec:
      zero: 0
      minus: -0
      thousand: 1e3
      grouped: 1_000
      hexadecimal: 0x1F
      octal: [0o17, 017, "017", '0o17', 09]
      half: .5
      edges: {i64: [-9223372036854775808, 9223372036854775807], u64: 18446744073709551615}
      beyond: [-9223372036854775809, 18446744073709551616]
      digits: 123456789012345678901234567890
      exact: 0.1000000000000000055511151231257827021181583404541015625
      tiny: 1e-400
      huge: 1E+400
      endless: [.inf, -.Inf, +.INF, .nan]
      signed: +1
      binary: 0b11
      sexagesimal: 1:30
      date: 2001-12-14
      time: 2001-12-14t21:59:43.10-05:00
      text: ["1e3", '0x1F', "2001-12-14", !!str 12, !!float 3]
      set: 9.0 # kpt-set: ${tag}
      trailing: 1.0
"#;

/// What one of the functions looks for, too.
const KPTFILE: &str = "  - apiVersion: kpt.dev/v1
    kind: Kptfile
    metadata:
      name: package
      annotations:
        internal.config.kubernetes.io/path: Kptfile
";

struct Case {
    function: &'static str,
    config: &'static str,
    /// What is changed, and into what.
    edit: (&'static str, &'static str),
    /// What follows the items.
    after: &'static str,
}

const CASES: &[Case] = &[
    Case {
        function: "apply-replacements",
        config: "{apiVersion: fn.kpt.dev/v1alpha1, kind: ApplyReplacements, metadata: {name: c}, replacements: \
                 [{source: {kind: Numbers, fieldPath: spec.digits}, \
                 targets: [{select: {kind: Numbers}, fieldPaths: [spec.trailing]}]}]}",
        edit: ("trailing: 1.0", "trailing: 123456789012345678901234567890"),
        after: "",
    },
    Case {
        function: "apply-setters",
        config: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {tag: 1e2}}",
        edit: ("set: 9.0 ", "set: 1e2 "),
        after: "results:
  - message: set field value to \"1e2\"
    severity: info
    resourceRef:
      apiVersion: example.com/v1
      kind: Numbers
      name: numbers
    field:
      path: spec.set
      currentValue: \"9.0\"
      proposedValue: \"1e2\"
    file: {}
",
    },
    Case {
        function: "create-setters",
        config: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {version: 1.0}}",
        edit: ("trailing: 1.0", "trailing: 1.0 # kpt-set: ${version}"),
        after: "results:
  - message: 'Added line comment \"kpt-set: ${version}\" for field with value \"1.0\"'
    field:
      path: spec.trailing
    file: {}
",
    },
    Case {
        function: "ensure-name-substring",
        config: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {prepend: a-}}",
        edit: ("name: numbers", "name: a-numbers"),
        after: "",
    },
    Case {
        function: "list-setters",
        config: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {}}",
        edit: ("", ""),
        after: "results:
  - message: 'Name: tag, Value: 9.0, Type: float, Count: 1'
",
    },
    Case {
        function: "remove-local-config-resources",
        config: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {}}",
        edit: ("", ""),
        after: "results:
  - message: Found no resources to prune with the local config annotation
    severity: warning
",
    },
    Case {
        function: "search-replace",
        config: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {by-path: spec.trailing, put-value: 0x2}}",
        edit: ("trailing: 1.0", "trailing: 0x2"),
        after: "results:
  - message: Mutated field value to \"0x2\"
    field:
      path: spec.trailing
    file: {}
",
    },
    Case {
        function: "set-annotations",
        config: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: \"017\"}}",
        edit: ("name: numbers\n", "name: numbers\n      annotations:\n        a: \"017\"\n"),
        after: "results:
  - message: 'set annotations: {\"a\":\"017\"}'
    field:
      path: metadata.annotations
    file: {}
",
    },
    Case {
        function: "set-image",
        config: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {name: x, newTag: \"1.10\"}}",
        edit: ("", ""),
        after: "results:
  - message: 'summary: updated a total of 0 image(s)'
    severity: info
",
    },
    Case {
        function: "set-labels",
        config: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: \"1e3\"}}",
        edit: ("name: numbers\n", "name: numbers\n      labels:\n        a: \"1e3\"\n"),
        after: "results:
  - message: set 1 labels in total
    severity: info
",
    },
    Case {
        function: "set-namespace",
        config: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {namespace: shop}}",
        edit: ("", ""),
        after: "results:
  - message: all matching namespaces are already \"shop\". no value changed
    severity: info
  - message: all `depends-on` annotations are up-to-date. no `namespace` changed
    severity: info
",
    },
    Case {
        function: "set-project-id",
        config: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {project-id: \"1e3\"}}",
        edit: (
            "path: Kptfile\n",
            "path: Kptfile
    pipeline:
      mutators:
        - image: gcr.io/kpt-fn/apply-setters:v0.2
          configMap:
            project-id: \"1e3\"
",
        ),
        after: "",
    },
    Case {
        function: "starlark",
        config: "{apiVersion: fn.kpt.dev/v1alpha1, kind: StarlarkRun, metadata: {name: c}, source: \
                 'ctx.resource_list[\"items\"][0][\"spec\"][\"trailing\"] = \
                 ctx.resource_list[\"items\"][0][\"spec\"][\"edges\"][\"u64\"]'}",
        edit: ("trailing: 1.0", "trailing: 18446744073709551615"),
        after: "",
    },
    Case {
        function: "upsert-resource",
        config: "{apiVersion: v1, kind: Other, metadata: {name: more}, spec: [0x1F, 1_000, 18446744073709551616]}",
        edit: (
            "trailing: 1.0\n",
            "trailing: 1.0\n  - {apiVersion: v1, kind: Other, metadata: {name: more}, spec: \
                 [0x1F, 1_000, 18446744073709551616]}\n",
        ),
        after: "",
    },
];

/// What `set-owner` is given, and what it makes of it.
const OWNER: Case = Case {
    function: "set-owner",
    config: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {owner: \"1e3\"}}",
    edit: ("name: numbers\n", "name: numbers\n      annotations:\n        example.com/owner: \"1e3\"\n"),
    after: "",
};

impl Case {
    fn items(&self) -> String {
        let kptfile = if self.function == "set-project-id" { KPTFILE } else { "" };
        format!("{ITEM}{kptfile}")
    }

    fn input(&self) -> String {
        let (config, items) = (self.config, self.items());
        format!(
            "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig: {config}\nitems:\n{items}"
        )
    }

    fn expected(&self) -> String {
        let (from, to) = self.edit;
        let input = self.input();
        let (before, items) = input.split_at(input.len() - self.items().len());
        assert!(items.contains(from), "{from:?}");
        format!("{before}{}{}", items.replacen(from, to, 1), self.after)
    }
}

fn run(program: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[track_caller]
fn assert_output(what: &str, output: &Output, expected: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{what}: {said}");
}

#[test]
fn every_function_leaves_numbers_as_they_are_written() {
    let runner = released("function-runner");
    let folder = tempfile::tempdir().unwrap();
    let listed: Vec<_> = builtin::all().iter().map(Builtin::name).collect();
    assert_eq!(CASES.iter().map(|case| case.function).collect::<Vec<_>>(), listed);
    for case in CASES {
        let (input, expected) = (case.input(), case.expected());
        let link = folder.path().join(case.function);
        std::os::unix::fs::symlink(&runner, &link).unwrap();
        assert_output(case.function, &run(&link, &[], &input), &expected);
        let eval = run(&runner, &["eval", "--builtin-functions=all", "--image", case.function], &input);
        assert_output(&format!("eval {}", case.function), &eval, &expected);
    }
}

#[test]
fn the_example_leaves_numbers_as_they_are_written() {
    let (function, runner) = (released("set-owner"), released("function-runner"));
    let (input, expected) = (OWNER.input(), OWNER.expected());
    assert_output("set-owner", &run(&function, &[], &input), &expected);
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&function, folder.path().join("set-owner")).unwrap();
    let functions = format!("--functions={}", folder.path().display());
    let config = format!("--config={}", testing::checkout().join("examples/config.yaml").display());
    let eval = run(&runner, &["eval", &functions, &config, "--image=set-owner"], &input);
    assert_output("eval set-owner", &eval, &expected);
}

#[tokio::test]
async fn the_service_and_the_wrapper_hand_numbers_on() {
    let folder = tempfile::tempdir().unwrap();
    let function = released("set-owner");
    std::os::unix::fs::symlink(&function, folder.path().join("set-owner")).unwrap();
    let config = testing::checkout().join("examples/config.yaml");
    let flags = [
        format!("--functions={}", folder.path().display()),
        format!("--config={}", config.display()),
        "--builtin-functions=all".to_owned(),
    ];
    let service = Server::of(released("function-runner")).flags(flags).start();
    let client = service.client().await;
    for case in CASES.iter().chain([&OWNER]) {
        let answer =
            client.evaluate(case.function, case.input().into(), CallOptions::default()).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer.resource_list), case.expected(), "{}", case.function);
    }
    let wrapper = Server::of(released("wrapper-server")).rest(["--", function.to_str().unwrap()]).start();
    let client = wrapper.client().await;
    let answer = client.evaluate("x", OWNER.input().into(), CallOptions::default()).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&answer.resource_list), OWNER.expected());
}

#[test]
fn numbers_of_json_stay_too() {
    const NUMBERS: &str =
        r#"[0,-0,1e3,-1.50E+07,18446744073709551616,123456789012345678901234567890,1e-400,"0x1F"]"#;
    let list = |config: &str, metadata: &str, after: &str| {
        format!(
            r#"{{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","functionConfig":{config},"items":[{{"apiVersion":"v1","kind":"Numbers","metadata":{metadata},"spec":{NUMBERS}}}]{after}}}"#
        )
    };
    let config = r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"owner":"1","a":"1"}}"#;
    let input = list(config, r#"{"name":"x"}"#, "");
    let expected = list(config, r#"{"name":"x","annotations":{"example.com/owner": "1"}}"#, "");
    assert_output("set-owner", &run(&released("set-owner"), &[], &input), &expected);
    let expected = list(
        config,
        r#"{"name":"x","annotations":{"a": "1", "owner": "1"}}"#,
        r#","results":[{"message": "set annotations: {\"a\":\"1\",\"owner\":\"1\"}", "field": {"path": "metadata.annotations"}, "file": {}}]"#,
    );
    let eval = ["eval", "--builtin-functions=all", "--image=set-annotations"];
    assert_output("set-annotations", &run(&released("function-runner"), &eval, &input), &expected);
}

#[test]
fn what_a_failed_function_wrote_is_printed_by_eval_as_by_its_executable() {
    let runner = released("function-runner");
    let folder = tempfile::tempdir().unwrap();
    // One that runs here, and one that runs in a process of its own.
    for (function, config, message) in [
        ("set-namespace", "{apiVersion: v1, kind: ConfigMap, data: {}}", "should not be empty"),
        (
            "starlark",
            "{apiVersion: fn.kpt.dev/v1alpha1, kind: StarlarkRun, source: 'fail(\"no\")'}",
            "fail: no",
        ),
    ] {
        let case = Case { function: "", config, edit: ("", ""), after: "" };
        let link = folder.path().join(function);
        std::os::unix::fs::symlink(&runner, &link).unwrap();
        let alone = run(&link, &[], &case.input());
        let eval = run(&runner, &["eval", "--builtin-functions=all", "--image", function], &case.input());
        assert_eq!((alone.status.code(), eval.status.code()), (Some(1), Some(1)), "{eval:?}");
        let (alone, told) = (String::from_utf8(alone.stdout).unwrap(), String::from_utf8_lossy(&eval.stderr));
        assert!(alone.starts_with(&case.input()) && alone.contains(message), "{alone}");
        assert_eq!(String::from_utf8_lossy(&eval.stdout), alone);
        assert!(
            told.starts_with("Internal: failed to evaluate function ") && told.contains(message),
            "{told}"
        );
    }
}
