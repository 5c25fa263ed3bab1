//! The tables of the documents say what is so: flags, metrics, fields, sizes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, path::Path, process::Command};

use documents::{
    Table, blocks,
    metrics::{exposed, listed},
    quoted, tables,
};
use flags::GoDuration;
use krm::Document;
use testing::{Functions, Server, checkout, eventually, released, resource_list};
use wire::client::CallOptions;

fn read(document: &str) -> String {
    fs::read_to_string(checkout().join(document)).unwrap()
}

/// The table of a document whose first column has this head.
fn table(document: &str, head: &str) -> Table {
    let found = tables(&read(document))
        .into_iter()
        .find(|table| table.head.first().is_some_and(|first| first == head));
    found.unwrap_or_else(|| panic!("{document} has no table of {head}"))
}

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// The flags that a program's help tells of, with their defaults.
fn flags_of(program: &Path, command: &[&str]) -> Vec<(String, String)> {
    let help = Command::new(program).args(command).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let mut flags: Vec<String> = Vec::new();
    for line in help.lines() {
        match (line.strip_prefix("  --"), flags.last_mut()) {
            (Some(flag), _) => flags.push(flag.to_owned()),
            (None, Some(flag)) if line.starts_with("   ") => {
                flag.push(' ');
                flag.push_str(line.trim());
            }
            _ => {}
        }
    }
    let default = |flag: &str| Some(flag.rsplit_once("(default ")?.1.strip_suffix(')')?.to_owned());
    flags
        .iter()
        .map(|flag| (flag.split(' ').next().unwrap().to_owned(), default(flag).unwrap_or_default()))
        .collect()
}

/// Whether two texts are the same value of a flag: durations have several.
fn same(one: &str, other: &str) -> bool {
    let duration = |text: &str| text.parse::<GoDuration>().ok();
    one == other || duration(one).is_some_and(|value| Some(value) == duration(other))
}

#[test]
fn the_readme_lists_every_flag_with_its_default() {
    let table = table("README.md", "flag");
    let mut there = flags_of(&released("function-runner"), &[]);
    // They share the last row, with another one.
    there.retain(|(name, _)| name != "version");
    let listed: Vec<_> = table.rows.iter().filter(|row| !row[0].contains("--help")).collect();
    assert_eq!(listed.len() + 1, table.rows.len());
    let names: Vec<_> =
        listed.iter().map(|row| quoted(&row[0])[0].trim_start_matches("--").to_owned()).collect();
    assert_eq!(names, there.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    for (row, (name, default)) in listed.iter().zip(there) {
        assert!(same(&row[1], &default), "--{name}: the README says {:?}, the program {default:?}", row[1]);
    }
}

#[test]
fn the_pages_name_no_flag_that_there_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let probe = folder.path().join("grpc-health-probe");
    symlink(released("wrapper-server"), &probe).unwrap();
    let mut known = set(["help"]);
    for program in [&released("wrapper-server"), &probe] {
        known.extend(flags_of(program, &[]).into_iter().map(|(name, _)| name));
    }
    for command in [&[][..], &["eval"], &["explain"], &["functions"], &["pods"], &["validate"]] {
        known.extend(flags_of(&released("function-runner"), command).into_iter().map(|(name, _)| name));
    }
    for entry in fs::read_dir(checkout().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for span in text.lines().filter(|line| !line.starts_with("    ")).flat_map(quoted) {
            let Some(flag) = span.strip_prefix("--") else { continue };
            let name: String = flag.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            assert!(name.is_empty() || known.contains(&name), "{}: `{span}`", path.display());
        }
    }
}

#[test]
fn the_page_of_the_wrapper_has_its_flags_and_those_of_the_probe() {
    let page = read("docs/wrapper-server.md");
    let wrapper = released("wrapper-server");
    let line = blocks(&page).into_iter().flat_map(|block| block.lines).next().unwrap();
    let words: Vec<&str> = line.split(' ').skip(1).take_while(|word| *word != "--").collect();
    let shown: Vec<_> = words
        .chunks(2)
        .map(|pair| (pair[0].trim_start_matches('-').to_owned(), pair[1].to_owned()))
        .collect();
    assert_eq!(shown, flags_of(&wrapper, &[]));

    let folder = tempfile::tempdir().unwrap();
    let probe = folder.path().join("grpc-health-probe");
    symlink(&wrapper, &probe).unwrap();
    let there: Vec<String> = flags_of(&probe, &[]).into_iter().map(|(name, _)| name).collect();
    let (_, item) = page.split_once("- `grpc-health-probe`:").unwrap();
    let item = item.split("\n- ").next().unwrap();
    let listed = quoted(item).into_iter().filter_map(|span| span.strip_prefix('-'));
    let listed: Vec<&str> = listed.map(|span| span.split(' ').next().unwrap()).collect();
    assert_eq!(listed, there);
}

#[tokio::test]
async fn the_metrics_that_are_listed_are_those_there_are() {
    let functions = Functions::new().with_script("echo", "cat");
    let program = released("function-runner");
    let server =
        Server::of(&program).flags(functions.flags()).flags(["--builtin-functions=all"]).metrics().start();
    let list = resource_list(&["a"]);
    server.client().await.evaluate("list-setters", list, CallOptions::default()).await.unwrap();
    fs::write(functions.config(), "functions: 5\n").unwrap();
    eventually("the broken configuration is counted", || server.metrics().contains("reloads_total{"));
    assert_eq!(exposed(&server.metrics()), listed(&read("docs/operations.md")));
}

#[tokio::test]
async fn the_metrics_of_pods_are_there_where_a_cluster_is() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    // Nobody listens there.
    let text = "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: \
                'http://127.0.0.1:1'}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u}]}";
    fs::write(&kubeconfig, text).unwrap();
    let program = released("function-runner");
    let server = Server::of(&program)
        .flags([format!("--kubeconfig={}", kubeconfig.display())])
        .variable("WRAPPER_SERVER_IMAGE", "example.com/wrapper-server:v1")
        .metrics()
        .start();
    eventually("requests to the cluster are counted", || server.metrics().contains("api_requests_total{"));
    let (there, of_pods) = (exposed(&server.metrics()), listed(&read("docs/pod-runtime.md")));
    let usual = listed(&read("docs/operations.md"));
    let more: Vec<_> = there.iter().filter(|(name, _)| !usual.contains_key(*name)).collect();
    assert!(!more.is_empty());
    for (name, labels) in more {
        assert_eq!(of_pods.get(name), Some(labels), "{name}");
    }
}

/// The fields of an object in the definition of FunctionConfigs.
fn fields(path: &[&str]) -> BTreeSet<String> {
    let text = read("deploy/crds/functionconfigs.yaml");
    let definition = Document::parse(&text).unwrap();
    let version = definition.at(definition.root(), &["spec", "versions"]).unwrap();
    let version = definition.entries(version).next().unwrap();
    let mut schema = definition.at(version, &["schema", "openAPIV3Schema"]).unwrap();
    for name in path {
        schema = definition.at(schema, &["properties", name]).unwrap();
    }
    let fields = definition.get(schema, "properties").unwrap();
    definition.fields(fields).map(|(name, _)| name.into_owned()).collect()
}

#[test]
fn the_fields_of_function_configs_are_those_of_the_definition() {
    let table = table("docs/function-config.md", "field of `podExecutor`");
    let mut listed: BTreeSet<String> = table.rows.iter().map(|row| quoted(&row[0])[0].to_owned()).collect();
    // Told of above.
    listed.insert("tags".to_owned());
    assert_eq!(listed, fields(&["spec", "podExecutor"]));

    let page = read("docs/function-config.md");
    let (_, words) = page.split_once("`templateOverrides` has ").unwrap();
    let words = words.split(". ").next().unwrap();
    let mut overrides = fields(&["spec", "podExecutor", "templateOverrides"]);
    for part in ["initContainer", "container"] {
        overrides.extend(fields(&["spec", "podExecutor", "templateOverrides", part]));
    }
    assert_eq!(set(quoted(words)), overrides);

    let (_, words) = page.split_once("The\nfunction runner tells in the status").unwrap();
    let words = words.split("\n## ").next().unwrap();
    let ours = ["functionRunnerObservedGeneration", "executors", "error"];
    for field in ours {
        assert!(quoted(words).contains(&field) && fields(&["status"]).contains(field), "{field}");
    }
}

#[test]
fn the_objects_that_are_shown_are_good() {
    let folder = tempfile::tempdir().unwrap();
    let mut shown = 0;
    for entry in fs::read_dir(checkout().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        for block in blocks(&fs::read_to_string(&path).unwrap()) {
            let starts = ["kind: FunctionConfig", "functions:", "- name: example.com/", "example.com/"];
            let is_ours = |line: &String| starts.iter().any(|start| line.starts_with(start));
            if block.language != "yaml" || !block.lines.iter().any(is_ours) {
                continue;
            }
            shown += 1;
            let file = folder.path().join(format!("{shown}.yaml"));
            // A digest is shown by its beginning.
            fs::write(
                &file,
                block.lines.join("\n").replace("sha256:…", &format!("sha256:{}", "0".repeat(64))),
            )
            .unwrap();
            let checked =
                Command::new(released("function-runner")).arg("validate").arg(&file).output().unwrap();
            assert!(checked.status.success(), "{}, {block}: {checked:?}", path.display());
        }
    }
    assert!(shown > 5, "{shown}");
}

/// All Rust sources below a folder, strings over several lines put together.
fn sources(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { sources(&path) } else { fs::read_to_string(path).unwrap() })
        .flat_map(|text| text.split("\\\n").map(str::trim_start).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[test]
fn the_words_of_registries_errors_are_those_of_the_program() {
    let sources: String = ["registry", "function-runner"]
        .map(|name| sources(&checkout().join(format!("crates/{name}/src"))))
        .concat();
    for row in table("docs/registries.md", "message says").rows {
        // Between what varies. Of "has no …" the object is a text of its own.
        for words in row[0].split(['…', ',']).map(str::trim).filter(|words| !words.is_empty()) {
            let parts = words.split("has no ").filter(|part| !part.is_empty());
            let missing: Vec<_> = parts.filter(|part| !sources.contains(part)).collect();
            assert!(missing.is_empty(), "no error says {missing:?}");
        }
    }
}

#[test]
fn the_image_has_the_size_that_is_told() {
    let page = fs::read_to_string(checkout().join("docs/migrate-from-porch.md")).unwrap();
    let row = page.lines().find(|line| line.starts_with("| size of the service's image")).unwrap();
    let told = row.split('|').nth(3).unwrap().trim();
    let told: f64 = told.trim_start_matches("about ").trim_end_matches(" MB").parse().unwrap();
    // Beside the program there are certificate authorities, and links.
    let program = fs::metadata(released("function-runner")).unwrap().len();
    let size = f64::from(u32::try_from(program).unwrap()) / 1e6;
    assert!((0.9..1.1).contains(&(size / told)), "released, it is {size} MB and not {told}");
}
