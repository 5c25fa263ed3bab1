//! The Containerfile says the same as the catalogue.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its set-up fails")]

mod common;

use std::{collections::BTreeMap, fs};

use common::{checkout, stand_ins};
use images::{
    catalogue::{self, PATH, Programs, USER},
    program::Program,
};

/// The instructions of each stage, by its name.
fn stages() -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(checkout().join("Containerfile")).unwrap();
    let mut stages = BTreeMap::<_, Vec<_>>::new();
    let mut stage = String::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((_, name)) = line.strip_prefix("FROM ").and_then(|line| line.split_once(" AS ")) {
            name.clone_into(&mut stage);
        }
        stages.entry(stage.clone()).or_default().push(line.to_owned());
    }
    stages
}

#[test]
fn each_target_is_as_the_catalogue_says() {
    let folder = tempfile::tempdir().unwrap();
    let order = stand_ins(folder.path());
    let program = |name| Program::read(&order.programs.join(name)).unwrap();
    let programs = Programs {
        function_runner: program("function-runner"),
        wrapper_server: program("wrapper-server"),
        set_owner: program("set-owner"),
        test_function: program("test-function"),
    };
    let mut stages = stages();
    stages.remove("build").expect("the stage that builds");
    let images = catalogue::images(&programs, Vec::new(), order.time).unwrap();
    for image in images.into_iter().filter(|image| !image.for_tests) {
        let name = image.name;
        let ports: Vec<_> = image.ports.iter().map(u16::to_string).collect();
        let mut expected = vec![
            format!("FROM scratch AS {name}"),
            format!("COPY --from=build /source/target/rootfs/{name}/ /"),
            format!("USER {USER}"),
            format!("ENV PATH={PATH}"),
            format!("WORKDIR {}", image.folder),
            format!("EXPOSE {}", ports.join(" ")),
            format!("ENTRYPOINT [{:?}]", image.entrypoint),
        ];
        expected.retain(|line| line != "EXPOSE ");
        assert_eq!(stages.remove(name), Some(expected));
    }
    assert!(stages.is_empty(), "{stages:?}");
}

#[test]
fn the_building_stage_has_all_of_the_workspace() {
    let workspace = fs::read_to_string(checkout().join("Cargo.toml")).unwrap();
    let members = workspace.lines().find_map(|line| line.strip_prefix("members = ")).unwrap();
    let members: Vec<String> = serde_json::from_str(members).unwrap();
    let stages = stages();
    for member in members {
        let folder = member.split('/').next().unwrap();
        assert!(stages["build"].contains(&format!("COPY {folder} {folder}")), "{folder} is not copied");
    }
    let toolchain = fs::read_to_string(checkout().join("rust-toolchain.toml")).unwrap();
    let channel = toolchain.lines().find_map(|line| line.strip_prefix("channel = ")).unwrap();
    let image = format!("rust:{}-bookworm", channel.trim_matches('"'));
    assert!(stages["build"][0].contains(&image), "{image} is not what it builds with");
}
