//! Every console block of README.md and docs/ is run, and prints what it is said to print.
//!
//! The blocks of a document are one session of a shell, in a folder that looks like the checkout after `make build`
//! and in a network of its own, where all ports are free. How a document marks what varies is told at
//! [`documents::agree`]. A command that fails is followed by `$ echo $?`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod session;
mod set_up;

use std::{collections::BTreeSet, fs, path::Path};

use documents::{Block, agree, blocks, trim};
use session::{Session, steps};
use testing::checkout;

/// Blocks that are not run, by document and first line, and why.
const NOT_RUN: &[(&str, &str, &str)] = &[
    (
        "README.md",
        "$ make run     # builds and starts the service: built-in functions and an example of your own",
        BUILD,
    ),
    ("docs/function-config.md", "$ kubectl -n porch-fn-system get functionconfigs", CLUSTER),
    (
        "docs/benchmarks.md",
        "cp -a target/release /tmp/before        # after make bench, before the change",
        BUILD,
    ),
    (
        "docs/builtin-functions.md",
        "kpt fn eval PACKAGE --exec ./set-namespace -- namespace=shop",
        "needs kpt and a package of people's own",
    ),
    ("docs/install.md", "make images", BUILD),
    ("docs/install.md", "REGISTRY=registry.example.com          # yours", CLUSTER),
    ("docs/install.md", "cd deploy/components/images", CLUSTER),
    ("docs/install.md", "kubectl apply -k deploy/overlays/exec-only", CLUSTER),
    (
        "docs/install.md",
        "kubectl run first-call --namespace=default --rm --stdin --quiet --restart=Never \\",
        CLUSTER,
    ),
    ("docs/install.md", "kubectl apply -f deploy/base/namespaces.yaml", CLUSTER),
    (
        "docs/install.md",
        "kubectl -n porch-system create secret generic tls-secret --from-file=ca.crt=authority.pem",
        CLUSTER,
    ),
    ("docs/install.md", "kubectl apply -k deploy/overlays/replicas", CLUSTER),
    ("docs/install.md", "kubectl delete namespace porch-fn-system", CLUSTER),
    (
        "docs/install.md",
        "kubectl -n porch-fn-system delete functionconfigs --all   # not with exec-only",
        CLUSTER,
    ),
    (
        "docs/install.md",
        "kubectl delete -k deploy/overlays/exec-only      # the one that was applied",
        CLUSTER,
    ),
    (
        "docs/install.md",
        "kubectl -n porch-system delete deployment,service,poddisruptionbudget,serviceaccount \\",
        CLUSTER,
    ),
    (
        "docs/migrate-from-porch.md",
        "kubectl -n porch-system get deployment function-runner -o yaml > function-runner-before.yaml",
        CLUSTER,
    ),
    ("docs/migrate-from-porch.md", "kubectl -n porch-fn-system delete pods -l fn.kpt.dev/image", CLUSTER),
    ("docs/migrate-from-porch.md", "kubectl -n porch-system logs deployment/function-runner | head", CLUSTER),
    (
        "docs/migrate-from-porch.md",
        "kubectl -n porch-system rollout undo deployment/function-runner",
        CLUSTER,
    ),
    ("docs/operations.md", "kubectl -n porch-fn-system delete functionconfigs --all", CLUSTER),
    ("docs/operations.md", "kubectl -n porch-fn-system edit functionconfig NAME", CLUSTER),
    (
        "docs/operations.md",
        "for object in $(kubectl -n porch-fn-system get functionconfigs -o name); do",
        CLUSTER,
    ),
];
const BUILD: &str = "builds what this test needs to begin with";
const CLUSTER: &str = "needs a cluster and people's own registry; cluster-tests do the like";

/// The documents and their texts.
fn all() -> Vec<(String, String)> {
    let root = checkout();
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let name = |path: &Path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = docs.map(|path| name(&path)).chain(["README.md".to_owned()]).collect();
    names.sort();
    names.into_iter().map(|name| (name.clone(), fs::read_to_string(root.join(name)).unwrap())).collect()
}

fn is_of_commands(block: &Block) -> bool {
    ["console", "sh"].contains(&block.language.as_str())
}

/// The blocks of a document that are run.
fn runnable(document: &str, text: &str) -> Vec<Block> {
    let not_run = |block: &Block| {
        NOT_RUN.iter().any(|(name, first, _)| {
            *name == document && Some(*first) == block.lines.first().map(|line| &**line)
        })
    };
    blocks(text).into_iter().filter(|block| is_of_commands(block) && !not_run(block)).collect()
}

#[test]
fn what_is_not_run_is_there_and_what_has_a_prompt_is_a_console() {
    let mut there = BTreeSet::new();
    for (document, text) in all() {
        for block in blocks(&text) {
            let prompt = block.lines.iter().any(|line| line.starts_with("$ "));
            assert!(!prompt || block.language == "console", "{document}, {block}: name its language console");
            there.insert((document.clone(), block.lines.first().cloned().unwrap_or_default()));
        }
        for block in runnable(&document, &text) {
            assert_eq!(
                block.language, "console",
                "{document}, {block}: show its output, or list it under NOT_RUN"
            );
        }
    }
    for (document, first, _) in NOT_RUN {
        assert!(
            there.contains(&((*document).to_owned(), (*first).to_owned())),
            "{document} has no block {first:?}"
        );
    }
}

#[tokio::test]
async fn every_block_prints_what_it_says() {
    let mut wrong = Vec::new();
    let mut run = 0;
    for (document, text) in all() {
        let steps: Vec<_> = runnable(&document, &text).iter().flat_map(steps).collect();
        if steps.is_empty() {
            continue;
        }
        let session = Session::new();
        let set_up = set_up::of(&document, &session).await;
        let commands: Vec<&str> = steps.iter().map(|step| step.command.as_str()).collect();
        let done = session.run(&set_up.script, &commands);
        run += done.len();
        for (at, (step, done)) in steps.iter().zip(&done).enumerate() {
            let mut printed: Vec<String> = done.output.lines().map(str::to_owned).collect();
            trim(&mut printed);
            let place = format!("{document}, line {}: $ {}", step.line, step.command);
            if !agree(&step.output, &printed) {
                let said = step.output.join("\n");
                wrong.push(format!("{place}\nis said to print\n{said}\nand prints\n{}", printed.join("\n")));
            }
            if done.status != 0 && commands.get(at + 1) != Some(&"echo $?") {
                wrong.push(format!(
                    "{place}\nends with {} without a word of it:\n{}",
                    done.status, done.output
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(run > 15, "only {run} commands");
}
