//! Random resources, in the styles that people write.

use std::fmt::Write as _;

use super::dice::Dice;

const IMAGES: &[&str] = &[
    "nginx",
    "nginx:1.2",
    "nginx@sha256:abc",
    "nginx:1@sha256:abc",
    "example.com:5000/nginx:2",
    "example.com:5000/nginx",
    "docker.io/library/nginx:3",
    "nginx-extra:1",
    "my-nginx",
];

/// A text in double quotes.
fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\u{85}' => out.push_str("\\N"),
            _ => out.push(letter),
        }
    }
    out + "\""
}

/// A plain word in one of the styles of scalars.
pub(crate) fn word(dice: &mut Dice, word: &str) -> String {
    match dice.below(5) {
        0 => format!("'{word}'"),
        1 => format!("\"{word}\""),
        2 => format!("  {word}   # a comment"),
        _ => word.to_owned(),
    }
}

/// `key: {…}` in one of the styles of mappings; sometimes null, empty, or nothing at all.
fn strings(dice: &mut Dice, key: &str, indent: usize, keys: &[&str]) -> String {
    let spaces = " ".repeat(indent);
    match dice.below(7) {
        0 => String::new(),
        1 => format!("{spaces}{key}: {{}}\n"),
        2 => format!("{spaces}{key}:\n"),
        3 => {
            let fields: Vec<String> = keys.iter().map(|key| format!("{key}: v")).collect();
            format!("{spaces}{key}: {{{}}} # in brackets\n", fields.join(",  "))
        }
        _ => {
            let mut text = format!("{spaces}{key}: # of mappings\n");
            for key in keys {
                if dice.once_in(4) {
                    let _ = writeln!(text, "{spaces}  # about {key}");
                }
                let _ = writeln!(text, "{spaces}  {key}: {}", word(dice, "old"));
            }
            text
        }
    }
}

fn metadata(dice: &mut Dice, name: &str, namespace: bool) -> String {
    let mut text = format!("metadata:\n  name: {}\n", word(dice, name));
    text.push_str(&strings(dice, "labels", 2, &["app", "tier"]));
    if namespace {
        let _ = writeln!(text, "  namespace: {}", word(dice, "old-space"));
    }
    text.push_str(&strings(dice, "annotations", 2, &["note", "example.com/owner"]));
    text
}

const WORKLOADS: &[&str] = &[
    "apps/v1 Deployment",
    "apps/v1 StatefulSet",
    "apps/v1 DaemonSet",
    "apps/v1 ReplicaSet",
    "batch/v1 Job",
    "batch/v1 CronJob",
    "v1 ReplicationController",
    "v1 Pod",
];

const OTHERS: &[&str] = &[
    "v1 ConfigMap",
    "v1 Service",
    "v1 Secret",
    "networking.k8s.io/v1 NetworkPolicy",
    "policy/v1 PodDisruptionBudget",
    "example.com/v1 Custom",
];

pub(crate) fn head(kind: &str) -> String {
    let (version, kind) = kind.split_once(' ').unwrap();
    format!("apiVersion: {version}\nkind: {kind}\n")
}

/// The containers of a pod, at a depth.
fn containers(dice: &mut Dice, indent: usize) -> String {
    let spaces = " ".repeat(indent);
    let mut text = String::new();
    for key in ["containers", "initContainers"].into_iter().take(1 + dice.below(2)) {
        let dash = dice.pick(&["", "  "]);
        let _ = writeln!(text, "{spaces}{key}:");
        for at in 0..=dice.below(3) {
            let image = dice.pick(IMAGES);
            let image = word(dice, image);
            if dice.once_in(5) && !image.contains('#') {
                let _ = writeln!(text, "{spaces}{dash}- {{name: c{at}, image: {image} }}");
            } else {
                let _ =
                    writeln!(text, "{spaces}{dash}- name: c{at} # first\n{spaces}{dash}  image: {image}\n");
            }
        }
    }
    text
}

/// A pod template, at a depth.
fn template(dice: &mut Dice, indent: usize, selectors: bool) -> String {
    let spaces = " ".repeat(indent);
    let mut text = format!("{spaces}template:\n");
    if !dice.once_in(3) {
        let _ = writeln!(text, "{spaces}  metadata:\n{spaces}    name: t");
        text.push_str(&strings(dice, "labels", indent + 4, &["app", "tier"]));
        text.push_str(&strings(dice, "annotations", indent + 4, &["note"]));
    }
    let _ = writeln!(text, "{spaces}  spec:");
    text.push_str(&containers(dice, indent + 4));
    if selectors {
        let _ = writeln!(
            text,
            "{spaces}    topologySpreadConstraints:\n{spaces}    - maxSkew: 1\n{spaces}      labelSelector:\n{spaces}        matchLabels: {{app: x, tier: y}}"
        );
    }
    text
}

/// A resource with pods in it. `selectors`: with those that labels are changed in, but not added to.
fn workload(dice: &mut Dice, name: &str, selectors: bool) -> String {
    let kind = dice.pick(WORKLOADS);
    let mut text = head(kind) + &metadata(dice, name, has_namespace(name)) + "spec:\n";
    match kind {
        "v1 Pod" => text.push_str(&containers(dice, 2)),
        "batch/v1 CronJob" => {
            text.push_str("  jobTemplate:\n");
            if dice.once_in(2) {
                text.push_str("    metadata:\n      name: j\n");
                text.push_str(&strings(dice, "labels", 6, &["app"]));
            }
            text.push_str("    spec:\n");
            text.push_str(&template(dice, 6, false));
        }
        "batch/v1 Job" | "v1 ReplicationController" => text.push_str(&template(dice, 2, false)),
        _ => {
            text.push_str("  replicas: 3 # three\n");
            if dice.once_in(2) {
                text.push_str("  selector:\n    matchLabels: {app: old}\n");
            }
            text.push_str(&template(dice, 2, selectors));
            if kind == "apps/v1 StatefulSet" && dice.once_in(2) {
                text.push_str("  volumeClaimTemplates:\n  - metadata: {name: v}\n    spec: {}\n");
            }
        }
    }
    text
}

/// Some have a namespace, by their name.
fn has_namespace(name: &str) -> bool {
    name.ends_with(['0', '2', '4'])
}

fn other(dice: &mut Dice, name: &str, selectors: bool) -> String {
    let kind = dice.pick(OTHERS);
    let mut text = head(kind) + &metadata(dice, name, kind == "example.com/v1 Custom" || has_namespace(name));
    match kind {
        "v1 Service" if dice.once_in(2) => text.push_str("spec:\n  selector:\n    app: old   # whom\n"),
        "networking.k8s.io/v1 NetworkPolicy" if selectors => text.push_str(
            "spec:\n  podSelector:\n    matchLabels: {app: x, tier: y}\n  ingress:\n  - from:\n    - podSelector:\n        matchLabels:\n          app: x\n          tier: z\n",
        ),
        "policy/v1 PodDisruptionBudget" if selectors => {
            text.push_str("spec:\n  selector:\n    matchLabels:\n      tier: y # why\n      app: x\n");
        }
        _ => text.push_str("data: {a: b, odd: [014, yes, ~, 1_000]}\ntext: |\n  one\n\n  two\n"),
    }
    text
}

pub(crate) fn resources(dice: &mut Dice, selectors: bool) -> Vec<String> {
    (0..=dice.below(5))
        .map(|at| {
            let name = format!("r-{at}");
            if dice.once_in(2) { workload(dice, &name, selectors) } else { other(dice, &name, selectors) }
        })
        .collect()
}

pub(crate) fn config_map(data: &[(&str, &str)]) -> String {
    let fields: String =
        data.iter().map(|(key, value)| format!("  {}: {}\n", quoted(key), quoted(value))).collect();
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config}}\ndata:\n{fields}")
}
