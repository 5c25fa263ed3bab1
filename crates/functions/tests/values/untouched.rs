//! Whatever the resources look like: only the lines of the fields that are set change.

use proptest::collection::vec;
use proptest::prelude::*;

use super::lines::{LINES, resource};
use super::*;

/// What a function does to one line.
const CHANGES: &[(&str, &str, &str, &str)] = &[
    (
        "apply-setters",
        "marker: new\n",
        "target: old   # kpt-set: ${marker}\n",
        "target: new   # kpt-set: ${marker}\n",
    ),
    (
        "apply-setters",
        "marker: '[x, z]'\n",
        "target: # kpt-set: ${marker}\n- x\n",
        "target: # kpt-set: ${marker}\n- x\n- z\n",
    ),
    (
        "apply-setters",
        "other: new\n",
        "target: old # kpt-set: ${marker}\n",
        "target: old # kpt-set: ${marker}\n",
    ),
    (
        "create-setters",
        "marker: unique\n",
        "target:  'un-unique'\n",
        "target:  'un-unique' # kpt-set: un-${marker}\n",
    ),
    (
        "search-replace",
        "by-value: unique\nput-value: new\n",
        "target:  \"unique\" # c\n",
        "target:  \"new\" # c\n",
    ),
    ("search-replace", "by-path: target\nput-value: new\n", "target:   old\n", "target:   new\n"),
    ("search-replace", "by-value: unique\nput-comment: c\n", "target: unique\n", "target: unique # c\n"),
    ("search-replace", "by-value-regex: '^(u)nique$'\n", "target: unique\n", "target: unique\n"),
    ("list-setters", "{}\n", "target: x # kpt-set: ${marker}\n", "target: x # kpt-set: ${marker}\n"),
    (
        "set-image",
        "name: nginx\nnewTag: '2'\n",
        "spec:\n  containers:\n  - image:  'nginx:1' # c\n",
        "spec:\n  containers:\n  - image:  'nginx:2' # c\n",
    ),
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_the_lines_of_fields_that_are_set_change(
        lines in vec(0..LINES.len(), 0..12),
        change in 0..CHANGES.len(),
        at in 0..12_usize,
        windows in any::<bool>(),
    ) {
        let (function, data, before, after) = CHANGES[change];
        let config = config_map(data);
        let text = |target: &str| {
            let text = list(&config, &[&resource(&lines, target, at)]);
            if windows { text.replace('\n', "\r\n") } else { text }
        };
        let outcome = functions::run(function, text(before).as_bytes()).unwrap();
        prop_assert!(outcome.succeeded, "{}\n{}", outcome.stderr, text(before));
        let again = functions::run(function, &outcome.output).unwrap();
        for outcome in [outcome, again] {
            let output = String::from_utf8(outcome.output).unwrap();
            let output = output.split("\nresults:").next().unwrap().trim_end().to_owned();
            prop_assert_eq!(output, text(after).trim_end().to_owned());
        }
    }
}
