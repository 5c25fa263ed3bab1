//! What holds for every command line.
#![allow(clippy::panic, clippy::expect_used, reason = "helpers of tests are not seen as tests")]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use flags::{Command, Flag, Flags, GoDuration, Group, Outcome};
use proptest::prelude::*;

const SWITCH: Flag<bool> = Flag::boolean("switch", false, "A switch.");
const NUMBER: Flag<i64> = Flag::integer("number", 0, i64::MIN..=i64::MAX, "A number.");
const TEXT: Flag<String> = Flag::text("text", "", "A text.");
const DURATION: Flag<GoDuration> = Flag::duration("duration", GoDuration::ZERO, "A duration.");
const LIST: Flag<Vec<String>> = Flag::list("list", &[], &[], "A list.");
const CHOICE: Flag<&'static str> = Flag::choice("choice", "red", &["red", "green"], "A colour.");
const FILE: Flag<PathBuf> = Flag::path("file", "", "A file.");

static COMMAND: Command = Command {
    name: "test",
    usage: "[flags]",
    summary: "Tests.",
    groups: &[Group {
        heading: "All",
        flags: &[
            SWITCH.spec(),
            NUMBER.spec(),
            TEXT.spec(),
            DURATION.spec(),
            LIST.spec(),
            CHOICE.spec(),
            FILE.spec(),
        ],
    }],
};

fn read(arguments: Vec<OsString>) -> Flags {
    match COMMAND.parse(arguments) {
        Outcome::Flags(flags) => flags,
        Outcome::Help => panic!("no help was asked for"),
    }
}

/// The four ways to write a flag with its value.
fn spellings(name: &str, value: &OsString) -> [Vec<OsString>; 4] {
    let joined = |dashes: &str| {
        let mut argument = OsString::from(format!("{dashes}{name}="));
        argument.push(value);
        vec![argument]
    };
    let apart = |dashes: &str| vec![format!("{dashes}{name}").into(), value.clone()];
    [joined("-"), joined("--"), apart("-"), apart("--")]
}

/// Arguments that come close to being right, and any others.
fn argument() -> impl Strategy<Value = OsString> {
    let name = prop_oneof!["switch|number|text|duration|list|choice|file|h|help", "[-=a-z]{0,8}",];
    let value =
        prop_oneof!["-?[0-9]{1,20}", "[0-9.]{0,4}(ns|us|ms|s|m|h|d)", "true|false|red|,|--|-", ".{0,6}"];
    prop_oneof![
        4 => ("-{0,3}", name, prop_oneof![Just(None), value.clone().prop_map(Some)])
            .prop_map(|(dashes, name, value)| match value {
                Some(value) => format!("{dashes}{name}={value}").into(),
                None => format!("{dashes}{name}").into(),
            }),
        2 => value.prop_map(OsString::from),
        1 => prop::collection::vec(any::<u8>(), 0..12).prop_map(OsString::from_vec),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_duration_printed_reads_back(nanoseconds in prop_oneof![
        any::<i64>(),
        -4_000_000_000_000..4_000_000_000_000_i64,
        -2_000_000..2_000_000_i64,
    ]) {
        let duration = GoDuration::from_nanoseconds(nanoseconds);
        prop_assert_eq!(duration.to_string().parse(), Ok(duration));
    }

    #[test]
    fn any_text_as_duration_or_not(text in "[-+]?([0-9]{0,20}(\\.[0-9]{0,22})?(ns|us|µs|μs|ms|s|m|h|x)?){0,3}|.{0,9}") {
        if let Ok(duration) = text.parse::<GoDuration>() {
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }

    #[test]
    fn no_command_line_panics(arguments in prop::collection::vec(argument(), 0..12)) {
        if let Outcome::Flags(flags) = COMMAND.parse(arguments.clone()) {
            let values = (
                flags.get(&SWITCH), flags.get(&NUMBER), flags.get(&TEXT), flags.get(&DURATION),
                flags.get(&LIST), flags.get(&CHOICE), flags.get(&FILE),
            );
            // What is handed over is the end of what was given.
            prop_assert!(arguments.ends_with(flags.arguments()));
            match flags.finish(values) {
                Ok(values) => prop_assert!(["red", "green"].contains(&values.5)),
                Err(mistakes) => {
                    prop_assert!(!mistakes.list().is_empty());
                    let message = mistakes.to_string();
                    prop_assert!(message.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", message);
                }
            }
        }
    }

    #[test]
    fn values_survive_every_spelling(
        number in any::<i64>(),
        nanoseconds in any::<i64>(),
        text in any::<String>(),
        items in prop::collection::vec("[a-z0-9=-]{1,5}", 0..4),
        file in prop::collection::vec(any::<u8>(), 0..20),
        spelling in 0..4_usize,
        switch in any::<bool>(),
    ) {
        let duration = GoDuration::from_nanoseconds(nanoseconds);
        let file = OsString::from_vec(file);
        let mut arguments = vec![OsString::from(format!("-switch={switch}"))];
        for (name, value) in [
            ("number", number.to_string().into()),
            ("duration", duration.to_string().into()),
            ("text", text.clone().into()),
            ("list", items.join(",").into()),
            ("choice", "green".into()),
            ("file", file.clone()),
        ] {
            arguments.extend(spellings(name, &value)[spelling].clone());
        }
        arguments.extend(["--".into(), file.clone()]);
        let flags = read(arguments);
        prop_assert_eq!(flags.get(&SWITCH), switch);
        prop_assert_eq!(flags.get(&NUMBER), number);
        prop_assert_eq!(flags.get(&DURATION), duration);
        prop_assert_eq!(flags.get(&TEXT), text);
        prop_assert_eq!(flags.get(&LIST), items);
        prop_assert_eq!(flags.get(&CHOICE), "green");
        prop_assert_eq!(flags.get(&FILE), PathBuf::from(&file));
        prop_assert_eq!(flags.arguments(), [file]);
        prop_assert!(flags.given(&LIST) && flags.given(&SWITCH));
        prop_assert!(flags.finish(()).is_ok());
    }
}
