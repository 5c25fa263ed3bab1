//! Command lines as Go's flag package takes them, and what is better here: all mistakes at once.
#![allow(clippy::panic, clippy::expect_used, reason = "helpers of tests are not seen as tests")]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::time::Duration;

use flags::{Command, Flag, Flags, GoDuration, Group, Mistake, Mistakes, Outcome};

const PORT: Flag<u16> =
    Flag::integer("port", 9445, 1..=i64::MAX, "Port the service listens on.").placeholder("PORT");
const OFFSET: Flag<i64> = Flag::integer("offset", 0, i64::MIN..=i64::MAX, "Any number.");
const WAITLIST: Flag<i64> = Flag::integer("max-waitlist-length", 2, -5..=i64::MAX, "Calls queued per pod.");
const WARM_UP: Flag<bool> =
    Flag::boolean("warm-up-pod-cache", true, "Start the pods of known functions early.");
const PRIVATE: Flag<bool> = Flag::boolean("enable-private-registries", false, "Use the pull secret.");
const NAMESPACE: Flag<String> = Flag::text("pod-namespace", "porch-fn-system", "Namespace of the pods.");
const TTL: Flag<GoDuration> =
    Flag::duration("pod-ttl", GoDuration::from_minutes(30), "How long an idle pod is kept.");
const DISABLED: Flag<Vec<String>> =
    Flag::list("disable-runtimes", &[], &["exec", "pod"], "Runtimes not to use.");
const LABELS: Flag<Vec<String>> = Flag::list("labels", &["a", "b"], &[], "Any words.");
const FORMAT: Flag<&'static str> =
    Flag::choice("log-format", "text", &["text", "json"], "How log lines are written.");
const FUNCTIONS: Flag<PathBuf> = Flag::path("functions", "./functions", "Folder of the function binaries.");
const DEBUG: Flag<bool> = Flag::boolean("debug-pool", false, "For developers.").hidden();

static COMMAND: Command = Command {
    name: "server",
    usage: "[flags]",
    summary: "Evaluates KRM functions for Porch.",
    groups: &[
        Group {
            heading: "Serving",
            flags: &[PORT.spec(), OFFSET.spec(), FORMAT.spec(), FUNCTIONS.spec(), DEBUG.spec()],
        },
        Group {
            heading: "Pods",
            flags: &[
                WAITLIST.spec(),
                WARM_UP.spec(),
                PRIVATE.spec(),
                NAMESPACE.spec(),
                TTL.spec(),
                DISABLED.spec(),
                LABELS.spec(),
            ],
        },
    ],
};

fn read(arguments: &[&str]) -> Flags {
    match COMMAND.parse(arguments.iter().map(OsString::from)) {
        Outcome::Flags(flags) => flags,
        Outcome::Help => panic!("no help was asked for by {arguments:?}"),
    }
}

fn read_all(flags: &Flags) {
    let _ = (flags.get(&PORT), flags.get(&OFFSET), flags.get(&FORMAT), flags.get(&FUNCTIONS));
    let _ = (flags.get(&DEBUG), flags.get(&WAITLIST), flags.get(&WARM_UP), flags.get(&PRIVATE));
    let _ = (flags.get(&NAMESPACE), flags.get(&TTL), flags.get(&DISABLED), flags.get(&LABELS));
}

fn good(arguments: &[&str]) -> Flags {
    let flags = read(arguments);
    read_all(&flags);
    flags.finish(()).unwrap_or_else(|mistakes| panic!("{arguments:?}: {mistakes}"));
    read(arguments)
}

fn bad(arguments: &[&str]) -> Mistakes {
    read(arguments).finish(()).expect_err("there are mistakes")
}

fn messages(arguments: &[&str]) -> Vec<String> {
    bad(arguments).list().iter().map(ToString::to_string).collect()
}

#[test]
fn the_table_is_sound() {
    assert_eq!(COMMAND.defects(), Vec::<String>::new());
}

#[test]
fn defects_of_a_table_are_found() {
    const LOW: Flag<u16> = Flag::integer("low", 0, 1..=9, "");
    const WIDE: Flag<u8> = Flag::integer("wide", 300, 1..=1000, "");
    const DASHED: Flag<bool> = Flag::boolean("-dashed", true, "");
    const EQUALS: Flag<bool> = Flag::boolean("a=b", true, "");
    const STRANGE: Flag<&'static str> = Flag::choice("strange", "c", &["a", "b"], "");
    const SPLIT: Flag<Vec<String>> = Flag::list("split", &["a,b"], &[], "");
    static BROKEN: Command = Command {
        name: "broken",
        usage: "",
        summary: "",
        groups: &[Group {
            heading: "",
            flags: &[
                LOW.spec(),
                WIDE.spec(),
                DASHED.spec(),
                EQUALS.spec(),
                STRANGE.spec(),
                SPLIT.spec(),
                PORT.spec(),
                PORT.spec(),
            ],
        }],
    };
    let defects = BROKEN.defects();
    assert_eq!(defects.len(), 7, "{defects:#?}");
    for (defect, part) in defects.iter().zip([
        "--low",
        "--wide",
        "-dashed",
        "a=b",
        "--strange",
        "--split",
        "two flags are named --port",
    ]) {
        assert!(defect.contains(part), "{defect} lacks {part}");
    }
}

#[test]
fn defaults_hold_when_nothing_is_given() {
    let flags = good(&[]);
    assert_eq!(flags.get(&PORT), 9445);
    assert_eq!(flags.get(&OFFSET), 0);
    assert!(flags.get(&WARM_UP));
    assert!(!flags.get(&PRIVATE));
    assert_eq!(flags.get(&NAMESPACE), "porch-fn-system");
    assert_eq!(flags.get(&TTL).positive(), Some(Duration::from_mins(30)));
    assert_eq!(flags.get(&DISABLED), Vec::<String>::new());
    assert_eq!(flags.get(&LABELS), ["a", "b"]);
    assert_eq!(flags.get(&FORMAT), "text");
    assert_eq!(flags.get(&FUNCTIONS), PathBuf::from("./functions"));
    assert!(!flags.given(&PORT));
    assert!(flags.arguments().is_empty());
}

#[test]
fn every_spelling_of_a_value() {
    for arguments in
        [&["-port=80"][..], &["--port=80"], &["-port", "80"], &["--port", "80"], &["--port=0x50"]]
    {
        let flags = good(arguments);
        assert_eq!(flags.get(&PORT), 80, "{arguments:?}");
        assert!(flags.given(&PORT) && !flags.given(&TTL));
    }
}

#[test]
fn a_flag_given_its_default_is_given() {
    assert!(good(&["--port=9445"]).given(&PORT));
}

#[test]
fn booleans() {
    for (word, expected) in [
        ("1", true),
        ("t", true),
        ("T", true),
        ("true", true),
        ("TRUE", true),
        ("True", true),
        ("0", false),
        ("f", false),
        ("F", false),
        ("false", false),
        ("FALSE", false),
        ("False", false),
    ] {
        let argument = format!("-enable-private-registries={word}");
        assert_eq!(good(&[&argument]).get(&PRIVATE), expected, "{word}");
    }
    assert!(good(&["--enable-private-registries"]).get(&PRIVATE));
    for word in ["", "yes", "no", "tRUE", "2", " true"] {
        let argument = format!("--warm-up-pod-cache={word}");
        let expected = format!("--warm-up-pod-cache {word:?}: must be true or false");
        assert_eq!(messages(&[&argument]), [expected]);
    }
}

#[test]
fn values_with_dashes_and_equals_signs() {
    assert_eq!(good(&["--offset", "-1"]).get(&OFFSET), -1);
    assert_eq!(good(&["--offset=-1"]).get(&OFFSET), -1);
    assert_eq!(good(&["--pod-ttl", "-1s"]).get(&TTL).nanoseconds(), -1_000_000_000);
    assert_eq!(good(&["--pod-ttl", "-1s"]).get(&TTL).positive(), None);
    assert_eq!(good(&["--pod-namespace", "-"]).get(&NAMESPACE), "-");
    assert_eq!(good(&["--pod-namespace=a=b=c"]).get(&NAMESPACE), "a=b=c");
    assert_eq!(good(&["--pod-namespace="]).get(&NAMESPACE), "");
    assert_eq!(good(&["--pod-namespace", ""]).get(&NAMESPACE), "");
    // Go takes whatever follows for the value, also what looks like a flag.
    assert_eq!(good(&["--pod-namespace", "--port"]).get(&NAMESPACE), "--port");
    assert_eq!(good(&["--pod-namespace", "--"]).get(&NAMESPACE), "--");
}

#[test]
fn integers_as_go_reads_them() {
    for (text, expected) in [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("0x1F", 31),
        ("0X1f", 31),
        ("-0x10", -16),
        ("0b101", 5),
        ("0o17", 15),
        ("017", 15),
        ("1_000", 1000),
        ("0x_f", 15),
        ("0_7", 7),
        ("00", 0),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("-0x8000000000000000", i64::MIN),
    ] {
        assert_eq!(good(&["--offset", text]).get(&OFFSET), expected, "{text}");
    }
    for text in [
        "",
        "-",
        "+",
        "1.5",
        "1e3",
        " 1",
        "1 ",
        "abc",
        "0x",
        "0x_",
        "_1",
        "1_",
        "1__0",
        "08",
        "0b2",
        "--1",
        "+-1",
        "9223372036854775808",
        "-9223372036854775809",
        "١",
        "0xé",
        "é",
    ] {
        let argument = format!("--offset={text}");
        assert_eq!(messages(&[&argument]), [format!("--offset {text:?}: must be a whole number")]);
    }
}

#[test]
fn ranges_are_named() {
    for text in ["0", "-1", "65536", "99999999999999999999"] {
        let expected = format!("-port {text:?}: must be a whole number from 1 to 65535");
        assert_eq!(messages(&["-port", text]), [expected]);
    }
    assert_eq!(
        messages(&["--max-waitlist-length=-6"]),
        [r#"--max-waitlist-length "-6": must be a whole number, -5 or more"#]
    );
}

#[test]
fn lists_and_choices() {
    assert_eq!(good(&["--disable-runtimes", "exec,pod"]).get(&DISABLED), ["exec", "pod"]);
    assert_eq!(good(&["--disable-runtimes= exec ,,"]).get(&DISABLED), ["exec"]);
    assert_eq!(good(&["--labels="]).get(&LABELS), Vec::<String>::new());
    assert_eq!(good(&["--log-format", "json"]).get(&FORMAT), "json");
    assert_eq!(
        messages(&["--disable-runtimes=exec,pods", "--log-format=JSON", "--log-format="]),
        [
            r#"--disable-runtimes "exec,pods": must be some of exec, pod, separated by commas; did you mean pod?"#,
            r#"--log-format "JSON": must be one of text, json; did you mean json?"#,
            r#"--log-format "": must be one of text, json"#,
        ]
    );
}

#[test]
fn the_last_one_wins() {
    assert_eq!(good(&["--port=1", "-port", "2", "--port=3"]).get(&PORT), 3);
    // But an earlier mistake stays one, as in Go.
    assert_eq!(messages(&["--port=x", "--port=3"]).len(), 1);
}

#[test]
fn where_the_flags_end() {
    for (arguments, rest) in [
        (&["--port=1", "--", "--port=2", "x"][..], &["--port=2", "x"][..]),
        (&["--port=1", "x", "--port=2"], &["x", "--port=2"]),
        (&["--port=1", "-", "--port=2"], &["-", "--port=2"]),
        (&["--port=1", "", "--port=2"], &["", "--port=2"]),
        (&["--port=1", "--", "--"], &["--"]),
        (&["--port=1", "--", "--help"], &["--help"]),
        (&["--port=1", "eval", "-h"], &["eval", "-h"]),
        (&["--port=1", "--"], &[]),
        (&["--port=1", "--warm-up-pod-cache", "--", "true"], &["true"]),
        (&["--port=1", "--warm-up-pod-cache", "1"], &["1"]),
    ] {
        let flags = good(arguments);
        assert_eq!(flags.get(&PORT), 1);
        assert_eq!(flags.arguments(), rest, "{arguments:?}");
    }
}

#[test]
fn help_is_an_outcome_of_its_own() {
    for arguments in [
        &["-h"][..],
        &["--h"],
        &["-help"],
        &["--help"],
        &["--help=false"],
        &["--port=1", "-h", "x"],
        &["--no-such-flag", "--help"],
        &["--port", "--help"],
    ] {
        let outcome = COMMAND.parse(arguments.iter().map(OsString::from));
        assert!(matches!(outcome, Outcome::Help), "{arguments:?}");
    }
}

#[test]
fn all_mistakes_are_reported_together() {
    let mistakes = bad(&[
        "--prot",
        "80",
        "-pod-ttl=30",
        "--warm-up-pod-cache",
        "False",
        "---x",
        "--=v",
        "--max-waitlist-length",
        "--zzz=3",
        "--port",
        "--log-format=xml",
        "--offset",
    ]);
    let expected = "\
9 mistakes on the command line:
  --prot: unknown flag; did you mean --port?
  -pod-ttl \"30\": the unit is missing; write it as 30m, 1h30m or 1.5s
  --warm-up-pod-cache False: write --warm-up-pod-cache=False; a switch takes its value only with \"=\"
  ---x: not a flag; write --name or --name=value
  --=v: not a flag; write --name or --name=value
  --max-waitlist-length \"--zzz=3\": must be a whole number, -5 or more
  --port: the value is missing; must be a whole number from 1 to 65535
  --log-format \"xml\": must be one of text, json
  --offset: the value is missing; must be a whole number
All flags: server --help";
    assert_eq!(mistakes.to_string(), expected);
}

#[test]
fn what_follows_an_unknown_flag() {
    // Taken for its value, or the second mistake would go unseen.
    assert_eq!(messages(&["--prot", "80", "--offset=x"]).len(), 2);
    assert_eq!(messages(&["--zzz", "80", "--offset=x"]).len(), 2);
    assert_eq!(messages(&["--zzz", "--offset=x"]).len(), 2);
    // A switch has none: the flags end there.
    assert_eq!(messages(&["--warm-up-pod-cach", "file", "--offset=x"]).len(), 1);
    assert_eq!(messages(&["--zzz=80", "file", "--offset=x"]).len(), 1);
}

#[test]
fn hidden_flags_work_but_are_not_advertised() {
    assert!(good(&["--debug-pool"]).get(&DEBUG));
    assert_eq!(messages(&["--debug-pol"]), ["--debug-pol: unknown flag"]);
    assert!(!COMMAND.help().contains("debug-pool"));
}

#[test]
fn the_caller_adds_to_the_same_list() {
    let mut flags = read(&["-functions=/nowhere", "--port=x", "left", "over"]);
    flags.reject(&FUNCTIONS, "no such folder; create it or name another");
    flags.reject(&FUNCTIONS, "only the first reason counts");
    flags.reject(&PORT, "already known to be wrong");
    flags.reject(&NAMESPACE, "does not exist");
    flags.refuse_arguments();
    flags.add(Mistake::Other("WRAPPER_SERVER_IMAGE is not set".to_owned()));
    let mistakes = flags.finish(()).unwrap_err();
    let messages: Vec<String> = mistakes.list().iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            r#"--port "x": must be a whole number from 1 to 65535"#,
            r#"-functions "/nowhere": no such folder; create it or name another"#,
            r#"--pod-namespace "porch-fn-system" (the default): does not exist"#,
            r#""left": unexpected argument; only flags are taken here"#,
            r#""over": unexpected argument; only flags are taken here"#,
            "WRAPPER_SERVER_IMAGE is not set",
        ]
    );
}

#[test]
fn flags_behind_refused_arguments_are_read_for_their_mistakes() {
    let refused = |arguments: &[&str]| -> Vec<String> {
        let mut flags = read(arguments);
        flags.refuse_arguments();
        let mistakes = flags.finish(()).unwrap_err();
        mistakes
            .list()
            .iter()
            .map(|mistake| mistake.to_string().replace("; only flags are taken here", ""))
            .collect()
    };
    let wrong = r#"--port "x": must be a whole number from 1 to 65535"#;
    assert_eq!(
        refused(&["left", "--port=x", "over"]),
        [r#""left": unexpected argument"#, wrong, r#""over": unexpected argument"#]
    );
    assert_eq!(refused(&["left", "--port", "x"]), [r#""left": unexpected argument"#, wrong]);
    assert_eq!(
        refused(&["left", "--portt=1"]),
        [r#""left": unexpected argument"#, "--portt: unknown flag; did you mean --port?"]
    );
    // What follows dashes is no flag, whatever it looks like; nor is there more to say where help is wanted.
    assert_eq!(refused(&["--", "--port=x", "--port=y"]), [r#""--port=x": unexpected argument"#]);
    assert_eq!(refused(&["left", "--", "--port=x"]), [r#""left": unexpected argument"#]);
    assert_eq!(refused(&["left", "--help", "--port=x"]), [r#""left": unexpected argument"#]);
}

#[test]
fn a_wrong_flag_keeps_its_default_for_further_checks() {
    assert_eq!(read(&["--port=x"]).get(&PORT), 9445);
}

#[test]
#[should_panic(expected = "nobody reads --offset of server")]
#[cfg(debug_assertions)]
fn a_flag_nobody_reads_is_noticed() {
    let flags = read(&[]);
    let _ = flags.get(&PORT);
    let _ = flags.finish(());
}

#[test]
#[should_panic(expected = "--stranger is not in the table of server")]
#[cfg(debug_assertions)]
fn a_flag_of_another_command_is_noticed() {
    const STRANGER: Flag<bool> = Flag::boolean("stranger", true, "");
    let _ = read(&[]).get(&STRANGER);
}

#[test]
fn paths_need_not_be_unicode_and_all_else_must() {
    let argument = |text: &[u8]| OsString::from_vec(text.to_vec());
    let Outcome::Flags(flags) = COMMAND.parse([argument(b"--functions=/a\xff"), argument(b"\xff")]) else {
        panic!("no help was asked for")
    };
    assert_eq!(flags.get(&FUNCTIONS), PathBuf::from(argument(b"/a\xff")));
    assert_eq!(flags.arguments(), [argument(b"\xff")]);

    let Outcome::Flags(flags) = COMMAND.parse([
        argument(b"--pod-namespace=\xff"),
        argument(b"--port"),
        argument(b"\xfe"),
        argument(b"--p\xffrt=1"),
        argument(b"-\xff"),
    ]) else {
        panic!("no help was asked for")
    };
    let mistakes = flags.finish(()).unwrap_err();
    let messages: Vec<String> = mistakes.list().iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "--pod-namespace \"\u{fffd}\": not UTF-8; must be a text",
            "--port \"\u{fffd}\": not UTF-8; must be a whole number from 1 to 65535",
            "--p\u{fffd}rt: unknown flag",
            "-\u{fffd}: unknown flag",
        ]
    );
}

#[test]
fn errors_are_short_and_without_control_characters() {
    let huge = "é".repeat(5_000_000);
    let message = bad(&["--port", &huge, "--offset=\x1b[31m\n", &format!("--{huge}")]).to_string();
    assert!(message.len() < 1000, "{message}");
    assert!(message.contains("(10000000 bytes)") && message.contains(r"\u{1b}[31m\n"), "{message}");
    assert_eq!(message.lines().count(), 5, "{message}");
}

#[test]
fn many_mistakes_are_counted() {
    let arguments = vec!["--max-waitlist-lenght"; 200_000];
    let message = bad(&arguments).to_string();
    assert!(message.contains("and 199980 more"), "{message}");
}

#[test]
fn the_help_text() {
    let expected = "\
Evaluates KRM functions for Porch.

Usage: server [flags]

Serving:
  --port PORT                  Port the service listens on. (default 9445)
  --offset N                   Any number. (default 0)
  --log-format WORD            How log lines are written. Must be one of text, json. (default text)
  --functions PATH             Folder of the function binaries. (default ./functions)

Pods:
  --max-waitlist-length N      Calls queued per pod. (default 2)
  --warm-up-pod-cache          Start the pods of known functions early. (default true)
  --enable-private-registries  Use the pull secret. (default false)
  --pod-namespace TEXT         Namespace of the pods. (default porch-fn-system)
  --pod-ttl DURATION           How long an idle pod is kept. (default 30m0s)
  --disable-runtimes LIST      Runtimes not to use. Must be some of exec, pod, separated by commas.
  --labels LIST                Any words. (default a,b)

Flags take one dash or two, and their value as --name=value or --name value; switches as --name,
--name=true or --name=false. Durations look like 30m, 1h30m or 1.5s.
";
    assert_eq!(COMMAND.help(), expected);
}

#[test]
fn lines_of_help_are_filled_but_not_overfilled() {
    for (word, width) in [("a ", 99), ("aaaa ", 99), ("aaaaaaaaaaaaaaaaaaa ", 99), ("aa ", 98), ("ä ", 99)] {
        let command = Command { name: "wide", usage: "", summary: word.repeat(200).leak(), groups: &[] };
        assert_eq!(command.help().lines().map(|line| line.chars().count()).max(), Some(width), "{word}");
    }
}

#[test]
fn long_help_is_wrapped() {
    const LONG: Flag<String> = Flag::text(
        "a-name-so-long-that-no-column-can-be-made-for-it",
        "a/default/of/many/many/characters",
        "This explains at great length, over far more than the hundred columns that are set aside for it, what \
         the flag is good for.",
    );
    static TALKATIVE: Command = Command {
        name: "talkative",
        usage: "",
        summary: "",
        groups: &[Group { heading: "All", flags: &[LONG.spec(), PORT.spec()] }],
    };
    let help = TALKATIVE.help();
    assert!(help.lines().all(|line| line.chars().count() <= 100 && line.trim_end() == line), "{help}");
    assert!(help.contains("for-it TEXT\n               This explains"), "{help}");
    assert!(
        help.contains("\n               aside for it, what the flag is good for. (default a/default/of/many/many/characters)\n"),
        "{help}"
    );
}
