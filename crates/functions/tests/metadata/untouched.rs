//! Whatever is in a resource beside what is set stays as it is, byte for byte.

use krm::Document;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{config_map, list};

/// Lines of a resource's other fields, in styles that people write.
const OTHERS: &[&str] = &[
    "  data: {a: 'b',   c: [d, \"e\"] } # flow\n",
    "  # a comment\n  spec: # another\n      replicas:   3\n\n      list:\n        - a\n        -   b # last\n",
    "  text: |+\n    one\n     two\n\n\n",
    "  folded: >-\n    one\n    two # no comment\n",
    "  \"quoted\": 'it''s'\n  ? explicit\n  : value\n",
    "  anchor: &a {x: y}\n  alias: *a\n",
    "  odd: [014, 1_000, yes, 2001-01-01, ~]\n  empty:\n",
    "\n  # foot\n\n",
];

fn resource(number: usize, choices: &[u8]) -> String {
    let [first, second, third] =
        [0, 1, 2].map(|at| usize::from(choices.get(at).copied().unwrap_or_default()));
    let kind =
        ["v1\n  kind: ConfigMap", "apps/v1\n  kind: Deployment", "example.com/v1\n  kind: Custom"][first % 3];
    let metadata = [
        format!("  metadata:\n    name: r-{number} # its name\n    namespace: 'old'   # where\n"),
        format!("  metadata: {{name: r-{number}, labels: {{app: x}}}}\n"),
        format!(
            "  metadata:\n      # above\n      name: r-{number}\n      annotations:\n        # about b\n        b: c\n"
        ),
        format!("  metadata:\n    labels:\n      app: \"old\" # label\n    name: r-{number}\n"),
    ];
    let mut others: Vec<&str> = OTHERS.to_vec();
    others.rotate_left(second % OTHERS.len());
    let (before, after) = others.split_at(third % 4);
    // One anchor of a name is enough.
    let after = &after[..after.len().min(3)];
    format!("- apiVersion: {kind}\n{}{}{}", before.concat(), metadata[third % 4], after.concat())
}

/// The lines of a text, without those that a function may add or change.
fn others(text: &str) -> Vec<&str> {
    let set = [
        "namespace:",
        "app:",
        "color:",
        "labels:",
        "annotations:",
        "metadata:",
        "template:",
        "spec:",
        "selector:",
        "matchLabels:",
    ];
    text.split("\nresults:")
        .next()
        .unwrap()
        .trim_end()
        .lines()
        .filter(|line| !set.iter().any(|key| line.contains(key)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn by_any_of_them(choices in vec(vec(any::<u8>(), 3), 1..5), windows in any::<bool>()) {
        let items: String = choices.iter().enumerate().map(|(number, choices)| resource(number, choices)).collect();
        for (function, config) in [
            ("set-namespace", config_map(&[("namespace", "new")])),
            ("set-labels", config_map(&[("app", "new"), ("color", "orange")])),
            ("set-annotations", config_map(&[("app", "new"), ("color", "orange")])),
        ] {
            let mut input = list(&config, &items);
            if windows {
                input = input.replace('\n', "\r\n");
            }
            let outcome = functions::run(function, input.as_bytes()).unwrap();
            prop_assert!(outcome.succeeded, "{} on\n{}", outcome.stderr, input);
            let output = String::from_utf8(outcome.output).unwrap();
            prop_assert_eq!(others(&output), others(&input), "{} on\n{}", function, input);
            let parsed = Document::parse(&output);
            prop_assert!(parsed.is_ok(), "{:?} in\n{}", parsed.err(), output);
            let again = functions::run(function, output.as_bytes()).unwrap();
            let again = String::from_utf8(again.output).unwrap();
            let without_results = |text: &str| text.split("\nresults:").next().unwrap().to_owned();
            prop_assert_eq!(without_results(&again), without_results(&output), "{} again", function);
        }
    }
}
