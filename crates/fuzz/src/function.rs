//! The built-in functions.

use functions::{Function, Outcome};
use krm::{Budget, Document};

/// The largest output, as the service has it without being told otherwise.
const LARGEST: usize = 6 * 1024 * 1024;

/// Functions of which a second run changes nothing, whatever their configuration is.
const STABLE: [&str; 6] = [
    "list-setters",
    "remove-local-config-resources",
    "set-annotations",
    "set-labels",
    "set-namespace",
    "upsert-resource",
];

/// The first byte chooses the function. The rest is the functionConfig and the items, or a whole list.
pub(crate) fn run(input: &[u8]) {
    let Some((&choice, rest)) = input.split_first() else { return };
    let all = functions::all();
    let function = &all[usize::from(choice) % all.len()];
    let list = match std::str::from_utf8(rest).ok().and_then(|text| {
        let mut parts = crate::parts(text);
        Some((parts.next()?, parts.next()?))
    }) {
        Some((config, items)) => list(config, items).into_bytes(),
        None => rest.to_vec(),
    };
    let outcome = checked(function, &list);
    if outcome.succeeded && STABLE.contains(&function.name) {
        let again = checked(function, &outcome.output);
        if again.over_budget.is_some() {
            return;
        }
        assert!(again.succeeded, "{}: the second run fails: {}", function.name, again.stderr);
        assert_eq!(items(&again), items(&outcome), "{}: the second run changes something", function.name);
    }
}

fn list(config: &str, items: &str) -> String {
    let mut text = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n".to_owned();
    for line in config.split_inclusive('\n') {
        text.push_str("  ");
        text.push_str(line);
    }
    text.push_str("\nitems:\n");
    text.push_str(items);
    text
}

/// Runs a function: it leaves a list that can be read, or says why there is none.
fn checked(function: &Function, input: &[u8]) -> Outcome {
    let outcome = function.run(input, &Budget::new(LARGEST));
    if outcome.output.is_empty() {
        assert!(!outcome.succeeded, "{}: succeeded without output", function.name);
    } else {
        let written = String::from_utf8_lossy(&outcome.output);
        let document = Document::parse_bytes(&outcome.output);
        assert!(document.is_ok(), "{}: {:?} in\n{written}", function.name, document.err());
        let summary = krm::inspect(&outcome.output);
        assert!(summary.is_ok(), "{}: {:?} in\n{written}", function.name, summary.err());
    }
    if !outcome.succeeded {
        let says =
            !outcome.stderr.trim().is_empty() || outcome.results.iter().any(|one| !one.message.is_empty());
        assert!(says, "{}: failed without a word", function.name);
    }
    outcome
}

/// The resources as text.
fn items(outcome: &Outcome) -> String {
    let document = Document::parse_bytes(&outcome.output).unwrap();
    document.get(document.root(), "items").map(|items| document.text_of(items)).unwrap_or_default()
}
