//! Every input that was kept is taken by its target without harm.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{collections::BTreeSet, fs, path::PathBuf};

use fuzz::TARGETS;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

#[test]
fn every_target_has_inputs_and_every_folder_a_target() {
    let folders: BTreeSet<String> = fs::read_dir(corpus())
        .unwrap()
        .map(|folder| folder.unwrap().file_name().into_string().unwrap())
        .collect();
    let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(folders, names);
}

#[test]
fn all_inputs_are_taken() {
    for target in TARGETS {
        let mut inputs = 0;
        for file in fs::read_dir(corpus().join(target.name)).unwrap() {
            let path = file.unwrap().path();
            println!("{}", path.display());
            (target.body)(&fs::read(&path).unwrap());
            inputs += 1;
        }
        assert!(inputs > 4, "{}: only {inputs} inputs", target.name);
    }
}
