//! Resources by chance: many small ones, few wide, long or deep ones, and what functions look for in them.

use crate::maker::{Maker, quoted};
use crate::paths;

/// Writes the items of a list.
pub(crate) fn write(maker: &mut Maker) {
    for _ in 0..=maker.below(3) {
        match maker.below(6) {
            0 => {
                let item = maker.pick(&[
                    "- {}",
                    "- kind: A",
                    "- metadata: a",
                    "- {kind: A, a: b, l: [a]}",
                    "- a: {}",
                ]);
                let count = maker.count(item);
                // Not all functions take resources without a name.
                maker.times(count, |maker, _| maker.line(item));
            }
            1 => {
                let count = maker.count("resources");
                let distinct = maker.pick(&["1", "7", "1000000"]).parse().unwrap_or(1);
                maker.times(count, |maker, at| small(maker, at % distinct));
            }
            2 => {
                maker.line("- &item");
                maker.within(fields);
                let count = maker.count("aliases of a resource");
                // Some merge it into another resource, or each into the next.
                match maker.below(4) {
                    0 => {
                        maker.times(count, |maker, at| maker.line(format_args!("- {{<<: *item, a: b{at}}}")));
                    }
                    1 => maker.times(count, |maker, at| {
                        let before = at.checked_sub(1).map_or("item".to_owned(), |at| format!("m{at}"));
                        maker.line(format_args!("- &m{at} {{<<: *{before}, kind: A}}"));
                    }),
                    2 => {
                        let all = vec!["*item"; count.min(2048)].join(", ");
                        maker.line(format_args!("- {{<<: [{all}], metadata: {{name: b}}}}"));
                    }
                    _ => maker.times(count, |maker, _| maker.line("- *item")),
                }
            }
            _ => {
                maker.line("- # a large one");
                maker.within(fields);
            }
        }
    }
    if maker.once_in(10) {
        let count = maker.count("unknown fields of the list");
        maker.times(count, |maker, at| maker.line(format_args!("unknown{at}: a")));
    }
}

/// A small resource, of which some are the same.
pub(crate) fn small(maker: &mut Maker, number: usize) {
    let kind = maker.pick(&["ConfigMap", "A", "Pod", "Deployment", "NetworkPolicy"]);
    maker.line(format_args!("- apiVersion: {}", version(kind)));
    maker.line(format_args!("  kind: {kind}"));
    maker.line(format_args!("  metadata: {{name: n{number}, labels: {{a: b}}}}"));
}

fn version(kind: &str) -> &'static str {
    match kind {
        "Deployment" | "StatefulSet" => "apps/v1",
        "NetworkPolicy" => "networking.k8s.io/v1",
        "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => "rbac.authorization.k8s.io/v1",
        "Kptfile" => "kpt.dev/v1",
        _ => "v1",
    }
}

/// The fields of one resource that has much of something.
pub(crate) fn fields(maker: &mut Maker) {
    let kind = maker.pick(&[
        "A",
        "ConfigMap",
        "Pod",
        "Deployment",
        "StatefulSet",
        "NetworkPolicy",
        "Role",
        "ClusterRole",
        "RoleBinding",
        "Kptfile",
        "Namespace",
    ]);
    maker.note(kind, 0);
    maker.line(format_args!("apiVersion: {}", version(kind)));
    maker.line(format_args!("kind: {kind}"));
    metadata(maker);
    spec(maker, kind);
    let first = maker.below(SHAPES);
    for shape in first..=first + maker.below(3) {
        content(maker, shape % SHAPES);
    }
}

fn metadata(maker: &mut Maker) {
    maker.collection("metadata", |maker| {
        let name = maker.any("length of a name");
        maker.field("name", &format!("n{name}"));
        if maker.once_in(4) {
            let namespace = maker.any("length of a namespace");
            maker.field("namespace", &namespace);
        }
        if maker.once_in(3) {
            maker.many_fields("labels");
        }
        if maker.once_in(2) {
            maker.collection("annotations", |maker| {
                let path = if maker.once_in(2) {
                    "Kptfile".to_owned()
                } else {
                    maker.any("length of a file's path")
                };
                maker.field("internal.config.kubernetes.io/path", &path);
                let other = maker.pick(&[
                    "config.kubernetes.io/local-config",
                    "config.kubernetes.io/depends-on",
                    "internal.kpt.dev/upstream-identifier",
                    "config.kubernetes.io/target-path",
                ]);
                let value = maker.any("length of an annotation");
                maker.field(other, &value);
                let count = if maker.once_in(3) { maker.count("annotations") } else { 0 };
                maker.times(count, |maker, at| maker.field(&format!("{at}"), "v"));
            });
        }
    });
}

/// What Kubernetes' own kinds have, and functions look for.
fn spec(maker: &mut Maker, kind: &str) {
    match kind {
        "Pod" => {
            maker.line("spec:");
            maker.within(containers);
        }
        "Deployment" | "StatefulSet" => {
            maker.line("spec:");
            maker.line("  template:");
            maker.line("    spec:");
            maker.within(|maker| maker.within(|maker| maker.within(containers)));
            maker.line("  volumeClaimTemplates:");
            entries(maker, "  - {metadata: {labels: {a: b}}}");
        }
        "NetworkPolicy" => {
            maker.line("spec:");
            maker.line("  ingress:");
            maker.line("  - from:");
            let peer = maker.pick(&["    - {}", "    - podSelector: {matchLabels: {a: b}}", "    - a"]);
            entries(maker, peer);
        }
        "Role" | "ClusterRole" => {
            maker.line("rules:");
            maker.line("- resourceNames:");
            entries(maker, "  - n1");
        }
        "RoleBinding" => {
            maker.line("subjects:");
            entries(maker, "- {kind: ServiceAccount, name: n1, namespace: a}");
        }
        "Kptfile" => {
            maker.line("pipeline:");
            maker.line("  mutators:");
            entries(maker, "  - {image: apply-setters, configPath: Kptfile}");
            maker.line("  - image: apply-setters");
            maker.within(|maker| maker.within(|maker| maker.many_fields("configMap")));
        }
        _ => {
            maker.collection("spec", |maker| {
                maker.line("l:");
                entries(maker, "- a: b");
            });
        }
    }
}

fn containers(maker: &mut Maker) {
    maker.line("containers:");
    let image = maker.any("length of an image");
    entries(maker, &format!("- {{name: a, image: {}}}", quoted(&image)));
    maker.line("topologySpreadConstraints:");
    entries(maker, "- {labelSelector: {matchLabels: {a: b}}}");
}

fn entries(maker: &mut Maker, entry: &str) {
    let count = maker.count(entry.trim_start());
    maker.line(entry);
    maker.times(count, |maker, _| maker.line(entry));
}

/// How many shapes [`content`] knows.
const SHAPES: usize = 13;

/// A field of some shape, with a key of its own.
fn content(maker: &mut Maker, shape: usize) {
    match shape {
        0 => {
            let entry = maker.pick(&[
                "- a",
                "- ''",
                "- {}",
                "- []",
                "-",
                "- a: b",
                "- a # comment",
                "- b # kpt-set: ${a}",
            ]);
            maker.line("l:");
            entries(maker, entry);
        }
        1 => {
            let list = maker.again("entries in brackets", &["a,", "{a: b},", "[a],", "'',", "{},"]);
            maker.line(format_args!("f: [{list}]"));
        }
        2 => maker.many_fields("m"),
        3 => {
            let text = maker.any("length of a text");
            maker.field("t", &text);
        }
        4 => {
            let depth = maker.count("depth").min(400);
            maker.line(format_args!("d: {}a{}", "[".repeat(depth), "]".repeat(depth)));
        }
        5 => {
            let depth = maker.count("depth").min(200);
            maker.line("deep:");
            for level in 0..depth {
                let space = " ".repeat(level + 1);
                maker.line(format_args!("{space}a:"));
            }
            let space = " ".repeat(depth + 1);
            maker.line(format_args!("{space}z: b"));
            let comments = maker.count("comments behind");
            maker.times(comments, |maker, _| maker.line("# comment"));
        }
        6 => setters(maker),
        7 => maker.collection("aliased", Maker::aliases),
        8 => embedded(maker),
        9 => {
            let comment = maker.any("length of a comment").replace('\n', " ");
            maker.line(format_args!("c: b # {comment}"));
            let count = maker.count("comments");
            maker.times(count, |maker, _| maker.line("# comment"));
        }
        10 => {
            let count = maker.count("explicit keys").min(40);
            let key = maker.any("length of a key");
            maker.line("e:");
            maker.times(count, |maker, at| {
                maker.line(format_args!("  ? {}", quoted(&format!("{key}{at}"))));
                maker.line("  : v");
            });
        }
        11 => {
            let path = paths::field_path(maker);
            maker.field("p", &path);
        }
        _ => {
            maker.line("n:");
            entries(maker, "- [[a, a], [a, a]]");
        }
    }
}

/// Fields with setters in their comments.
fn setters(maker: &mut Maker) {
    let pattern = match maker.below(4) {
        0 => maker.again("setters in a comment", &["${a}", "${s1}-", "${", "a${b}"]),
        1 => format!("${{{}}}", maker.any("length of a name in a comment").replace(['\n', '}'], " ")),
        _ => "${a}".to_owned(),
    };
    maker.line("s:");
    let entry = match maker.below(3) {
        0 => format!("- b # kpt-set: {pattern}"),
        1 => format!("- l: # kpt-set: {pattern}\n      - b"),
        _ => format!("- l: [a, b] # kpt-set: {pattern}"),
    };
    entries(maker, &entry);
}

/// YAML inside YAML, some levels deep.
fn embedded(maker: &mut Maker) {
    let levels = 1 + maker.count("levels of texts").min(150);
    let list = maker.again("entries in a text", &["a,", "{},"]);
    maker.line("a: |");
    for level in 0..levels {
        let space = " ".repeat(level + 1);
        maker.line(format_args!("{space}a: |"));
    }
    let space = " ".repeat(levels + 1);
    maker.line(format_args!("{space}a: b"));
    maker.line(format_args!("{space}l: [{list}]"));
}
