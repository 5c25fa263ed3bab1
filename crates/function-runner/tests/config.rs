//! `config.yaml`: edits while running, mistakes in it, and bytes that are no configuration at all.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    time::{Duration, Instant},
};

use common::{EMPTY, runner, within_patience};
use function_runner::{
    builtin::Offered,
    routing::{ConfigFile, FileFollower, FileSettings, Look, Routing, StartError, Terms, check_executable},
};
use proptest::prelude::*;
use registry::Reference;
use tempfile::TempDir;
use testing::{Functions, Server, eventually};
use tonic::Code;
use wire::client::{CallOptions, Client};

const SHIPPED: &str = "functions:\n- function: echo\n  images: [example.com/echo:TAG]\n";

fn config(tag: &str) -> String {
    SHIPPED.replace("TAG", tag)
}

async fn code(client: &Client, image: &str) -> Code {
    match within_patience(client.evaluate(image, EMPTY.into(), CallOptions::default())).await {
        Ok(_) => Code::Ok,
        Err(status) => status.code(),
    }
}

/// Waits until `tag` is served, and checks that `before` is not any more.
async fn becomes(client: &Client, tag: &str, before: &str) {
    let begun = Instant::now();
    while code(client, &format!("example.com/echo:{tag}")).await != Code::Ok {
        assert!(begun.elapsed() < Duration::from_mins(2), "{tag} is never served");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(code(client, &format!("example.com/echo:{before}")).await, Code::NotFound);
}

#[tokio::test]
async fn edits_take_effect_without_a_restart() {
    let functions = Functions::new().with_script("echo", "cat");
    let server = runner(&functions).start();
    let client = server.client().await;
    assert_eq!(code(&client, "example.com/echo:v1").await, Code::Ok);
    fs::write(functions.config(), config("written")).unwrap();
    becomes(&client, "written", "v1").await;
    functions.write_config(&config("renamed"));
    becomes(&client, "renamed", "written").await;
    // Same size, and the time of the change set back: still another file.
    let touched = fs::metadata(functions.config()).unwrap().modified().unwrap();
    fs::write(functions.config(), config("renewed")).unwrap();
    fs::File::options().write(true).open(functions.config()).unwrap().set_modified(touched).unwrap();
    becomes(&client, "renewed", "renamed").await;
}

/// Puts a new state of a mounted ConfigMap in force as the kubelet does: a new folder, and one link moved.
fn publish(mount: &Path, state: &str, content: &str) {
    let folder = mount.join(format!("..{state}"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("config.yaml"), content).unwrap();
    symlink(folder.file_name().unwrap(), mount.join("..data_tmp")).unwrap();
    fs::rename(mount.join("..data_tmp"), mount.join("..data")).unwrap();
}

#[tokio::test]
async fn a_mounted_config_map_is_followed_through_its_links() {
    let functions = Functions::new().with_script("echo", "cat");
    let mount = TempDir::new().unwrap();
    publish(mount.path(), "2026_01", &config("one"));
    symlink("..data/config.yaml", mount.path().join("config.yaml")).unwrap();
    let server = Server::of(common::PROGRAM)
        .flags([
            format!("--functions={}", functions.folder().display()),
            format!("--config={}", mount.path().join("config.yaml").display()),
        ])
        .start();
    let client = server.client().await;
    assert_eq!(code(&client, "example.com/echo:one").await, Code::Ok);
    publish(mount.path(), "2026_02", &config("two"));
    fs::remove_dir_all(mount.path().join("..2026_01")).unwrap();
    becomes(&client, "two", "one").await;
}

#[tokio::test]
async fn a_constraint_in_place_of_a_tag_serves_all_tags_that_meet_it() {
    let functions = Functions::new();
    for name in ["exact", "range", "open", "any"] {
        functions.write_executable(name, &format!("#!/bin/sh\necho {name} >&2; cat\n"));
    }
    functions.write_config(
        "functions:
- {function: any, images: ['example.com/f:*']}
- {function: range, images: ['example.com/f:>=1.2, <2', 'example.com/f:~0.4']}
- {function: open, images: [example.com/f:3.x]}
- {function: exact, images: [example.com/f:v1.5.0, example.com/f:v0.4, 'example.com/f:~0.4']}
- {function: any, images: ['example.com/f:~~1']}
",
    );
    let server = runner(&functions).start();
    let client = server.client().await;
    for (tag, expected) in [
        ("v1.5.0", "exact"),
        ("1.5.0", "range"),
        ("v1.9", "range"),
        ("v2.0.0", "any"),
        ("v1.9.0-rc.1", "any"),
        ("v0.4", "exact"),
        ("v0.4.1", "range"),
        ("v3.1.4", "open"),
        ("latest", "any"),
    ] {
        let image = format!("example.com/f:{tag}");
        let answer = within_patience(client.evaluate(&image, EMPTY.into(), CallOptions::default())).await;
        assert_eq!(String::from_utf8_lossy(&answer.unwrap().log).trim(), expected, "{tag}");
    }
    let log = server.log();
    for expected in [
        r#"image example.com/f:~0.4 is listed twice: function "range" serves it, its entry under "exact""#,
        r#"an image of function "any" is left out: it is neither a tag nor a digest: invalid version constraint"#,
        "images=6 problems=2",
    ] {
        assert!(log.contains(expected), "{expected:?} is not in:\n{log}");
    }
}

#[tokio::test]
async fn a_broken_edit_keeps_the_old_configuration_and_shows_in_log_and_metric() {
    let functions = Functions::new().with_script("echo", "cat");
    let server = runner(&functions).metrics().start();
    let client = server.client().await;
    assert!(server.metrics().contains("\nfunction_runner_config_valid 1\n"), "{}", server.metrics());
    functions.write_config("functions:\n- function: [echo\n");
    eventually("the metric tells", || server.metrics().contains("\nfunction_runner_config_valid 0\n"));
    assert!(server.metrics().contains(r#"function_runner_config_reloads_total{result="rejected"} 1"#));
    let log = server.log();
    let complaint = log.lines().find(|line| line.contains("ERROR")).unwrap_or_default();
    for words in ["the one before stays in force", "is not a valid configuration", "config.yaml"] {
        assert!(complaint.contains(words), "{words:?} is not in {complaint:?}");
    }
    assert_eq!(code(&client, "example.com/echo:v1").await, Code::Ok);
    // A file that is gone is broken too.
    fs::remove_file(functions.config()).unwrap();
    eventually("the loss is told", || server.log().contains("No such file"));
    assert_eq!(code(&client, "example.com/echo:v1").await, Code::Ok);
    functions.write_config(&config("mended"));
    eventually("the metric tells", || server.metrics().contains("\nfunction_runner_config_valid 1\n"));
    becomes(&client, "mended", "v1").await;
}

#[test]
fn what_cannot_be_served_is_reported_and_the_rest_is_served() {
    let functions = Functions::new();
    functions.write_executable("good", "#!/bin/sh\ncat\n");
    functions.write_executable("plain", "#!/bin/sh\ncat\n");
    fs::set_permissions(functions.folder().join("plain"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(functions.folder().join("folder")).unwrap();
    functions.write_config(&format!(
        "functions:
- {{function: good, images: [example.com/good:v1, 'example.com/pinned@sha256:{}', bare:v1]}}
- {{function: ../escape, images: [example.com/escape:v1]}}
- {{function: /bin/sh, images: [example.com/absolute:v1]}}
- {{function: '', images: [example.com/empty:v1]}}
- {{function: second, images: [example.com/good:v1]}}
- {{function: plain, images: [example.com/plain:v1]}}
- {{function: folder, images: [example.com/folder:v1]}}
- {{function: good, images: [Not An Image]}}
- {{function: good}}
",
        "0".repeat(64)
    ));
    let server = runner(&functions).start();
    let log = server.log();
    let folder = functions.folder();
    for expected in [
        r#"function "../escape" is left out: its name must be a path inside the functions folder"#.to_owned(),
        r#"function "/bin/sh" is left out"#.to_owned(),
        r#"function "" is left out"#.to_owned(),
        r#"image example.com/good:v1 is listed twice: function "good" serves it, its entry under "second""#
            .into(),
        format!("the executable {}/second is missing", folder.display()),
        format!("the executable {}/plain is not executable", folder.display()),
        format!("the executable {}/folder is not a file", folder.display()),
        r#"an image of function "good" is left out: invalid image reference"#.to_owned(),
        r#"function "good" lists no images"#.to_owned(),
        "images=5 problems=9".to_owned(),
    ] {
        assert!(log.contains(&expected), "{expected:?} is not in:\n{log}");
    }
}

#[test]
fn the_index_finds_tags_digests_and_bare_names() {
    let digest = format!("example.com/pinned@sha256:{}", "0".repeat(64));
    let text =
        format!("functions:\n- {{function: f, images: ['example.com/a:v1', '{digest}', 'bare:v1']}}\n");
    let file = ConfigFile::parse(text.as_bytes()).unwrap();
    let (index, _) = file.layer(Path::new("config.yaml"), Path::new("/f"), "example.org/fn");
    assert_eq!(index.executables.len(), 3);
    for (image, known) in [
        ("example.com/a:v1", true),
        ("example.com/a:v2", false),
        (&*digest, true),
        ("example.com/pinned", false),
        ("example.org/fn/bare:v1", true),
    ] {
        assert_eq!(
            index.executables.find(&Reference::parse(image).unwrap(), None).is_some(),
            known,
            "{image}"
        );
    }
}

#[test]
fn the_configurations_of_the_original_parse_with_all_their_images() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    for generation in ["v1.5.3", "v1.5.8"] {
        let path = workspace.parent().unwrap().join("shared/porch").join(generation).join("config.yaml");
        if !path.is_file() {
            println!("{} is absent: it is not tried", path.display());
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let images =
            text.lines().filter(|line| line.trim_start().starts_with("- ") && line.contains('/')).count();
        let (index, problems) = ConfigFile::read(&path).unwrap().layer(&path, Path::new("/nonexistent"), "");
        assert_eq!(index.executables.len(), images, "{generation}: {problems:?}");
        assert!(problems.iter().all(|problem| problem.to_string().contains("is missing")), "{problems:?}");
    }
}

#[test]
fn a_name_of_several_lines_is_told_in_one() {
    let file = ConfigFile::parse(b"functions:\n- {function: \"a\\nb\\e[31m\", images: [example.com/a:v1]}\n")
        .unwrap();
    let (_, problems) = file.layer(Path::new("config.yaml"), Path::new("/nonexistent"), "");
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    let told = problem.to_string();
    assert!(told.contains(r"/nonexistent/a\nb\u{1b}[31m is missing"), "{told}");
}

/// As the original does, which other releases may be configured for.
#[test]
fn what_is_not_known_is_told_and_passed_over() {
    let text = "version: 2\nfunctions:\n- function: f\n  images: [example.com/f:v1]\n  timeout: {a: [b]}\n\
                - {fucntion: g, images: [example.com/g:v1]}\nmore:\n  - functions: x\n";
    let file = ConfigFile::parse(text.as_bytes()).unwrap();
    let (layer, problems) = file.layer(Path::new("config.yaml"), Path::new("/bin"), "");
    assert_eq!(layer.executables.len(), 1);
    let told: Vec<_> =
        problems.iter().map(ToString::to_string).filter(|it| !it.contains("missing")).collect();
    assert_eq!(
        told,
        [
            r#"line 1: the key "version" is not known and is passed over"#,
            r#"line 7: the key "more" is not known and is passed over"#,
            r#"line 5: the key "timeout" is not known and is passed over"#,
            r#"line 6: the key "fucntion" is not known and is passed over"#,
            r#"line 6: an entry is left out: it has no key "function""#,
        ]
    );
    for odd in ["5: x\nfunctions: []\n", "functions: [{}]\n"] {
        assert!(ConfigFile::parse(odd.as_bytes()).is_ok(), "{odd:?}");
    }
}

#[test]
fn odd_files_are_refused_and_empty_ones_are_not() {
    for empty in ["", "\n\n", "# nothing yet\n", "functions:\n", "functions: []\n", "{}"] {
        assert!(ConfigFile::parse(empty.as_bytes()).is_ok(), "{empty:?}");
    }
    for (odd, told) in [
        ("functions: 5", ""),
        ("- a", ""),
        ("functions: [5]", ""),
        ("functions: [{function: [f]}]", ""),
        ("functions: [{function: f, images: {}}]", ""),
        ("\u{0}", ""),
    ] {
        let error = ConfigFile::parse(odd.as_bytes()).err().unwrap_or_else(|| panic!("{odd:?} is accepted"));
        assert!(error.contains(told) && !error.contains('\n'), "{odd:?}: {error}");
    }
    assert!(ConfigFile::parse(b"functions: \xff").is_err());
    let folder = TempDir::new().unwrap();
    assert!(ConfigFile::read(folder.path()).unwrap_err().to_string().contains("not a regular file"));
    let large = folder.path().join("large");
    fs::File::create(&large).unwrap().set_len(1 << 33).unwrap();
    assert!(ConfigFile::read(&large).unwrap_err().to_string().contains("more than"));
}

#[test]
fn the_follower_tells_what_became_of_the_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("config.yaml");
    let routing = Routing::new(Terms {
        builtins: Offered::Off,
        functions: Some(folder.path().to_owned()),
        pods: false,
        default_prefix: String::new(),
        check: check_executable,
    });
    let start = |required| {
        let settings = FileSettings { config: Some((path.clone(), required)), ..FileSettings::default() };
        FileFollower::start(settings, routing.clone())
    };
    assert!(matches!(start(true), Err(StartError::Config(error)) if error.is_missing()));
    let mut follower = start(false).unwrap();
    assert_eq!(follower.look(), Look::Same);
    fs::write(&path, config("v1")).unwrap();
    assert_eq!((follower.look(), follower.look()), (Look::Replaced, Look::Same));
    assert_eq!(routing.index().executables(), 1);
    fs::write(&path, "functions: {").unwrap();
    assert_eq!((follower.look(), follower.look()), (Look::Kept, Look::Same));
    assert_eq!(routing.index().executables(), 1);
}

/// Pieces of which configurations are made, so that chance comes further than the first byte.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&[u8]> = vec![
        b"functions:",
        b"function:",
        b"images:",
        b"- ",
        b"  ",
        b"\n",
        b"[",
        b"]",
        b"{",
        b"}",
        b"&a ",
        b"*a",
        b"!!str ",
        b"|",
        b">-",
        b"'",
        b"\"",
        b"#",
        b"? ",
        b": ",
        b"---",
        b"..",
        b"/",
        b"example.com/f:v1",
        b"example.com/f:~1",
        b":>=1 <2 || *",
        b"\xff",
        b"\0",
        b"\t",
        b"<<: *a",
        b"%YAML",
        b"\r\n",
        b"null",
        b"1e9",
    ];
    prop::collection::vec(prop::sample::select(words), 0..40).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn no_bytes_as_configuration_can_panic(
        bytes in prop_oneof![pieces(), prop::collection::vec(any::<u8>(), 0..200), any::<String>().prop_map(Into::into)],
    ) {
        if let Ok(file) = ConfigFile::parse(&bytes) {
            let (_, problems) = file.layer(Path::new("config.yaml"), Path::new("/nonexistent"), "example.com");
            for problem in problems {
                prop_assert!(!problem.to_string().is_empty());
            }
        }
    }

    #[test]
    fn no_name_leads_out_of_the_functions_folder(name in "[a-z./\\\\\u{0}-]{0,12}") {
        let text = format!("functions: [{{function: {name:?}, images: ['example.com/f:v1']}}]");
        if let Ok(file) = ConfigFile::parse(text.as_bytes()) {
            let (index, _) = file.layer(Path::new("config.yaml"), Path::new("/functions"), "");
            if let Some(found) = index.executables.find(&Reference::parse("example.com/f:v1").unwrap(), None) {
                let path = &found.value.path;
                prop_assert!(path.starts_with("/functions") && path != Path::new("/functions"));
                prop_assert!(!path.components().any(|part| part.as_os_str() == ".."));
            }
        }
    }
}

#[test]
fn deep_nesting_and_aliases_are_refused_quickly() {
    let deep = format!("functions: {}", "[".repeat(500_000));
    assert!(ConfigFile::parse(deep.as_bytes()).is_err());
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (one, next) in ('a'..='i').zip('b'..='j') {
        let ten = vec![format!("*{one}"); 10].join(",");
        writeln!(bomb, "{next}: &{next} [{ten}]").unwrap();
    }
    assert!(ConfigFile::parse(bomb.as_bytes()).is_err());
    let images =
        format!("functions:\n- function: f\n  images: &i [{}]\n", "'example.com/f:v1',".repeat(1000));
    let aliased = format!("{images}{}", "- {function: f, images: *i}\n".repeat(1000));
    // A million references from a few kilobytes: refused or read, but not for ever.
    let _ = ConfigFile::parse(aliased.as_bytes());
}

#[tokio::test]
async fn an_empty_name_of_the_file_means_none() {
    let functions = Functions::new().with_script("echo", "cat");
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("config.yaml"), "not even read: [").unwrap();
    let server =
        runner(&functions).folder(folder.path()).flags(["--config=", "--disable-runtimes=pod"]).start();
    assert_eq!(code(&server.client().await, "example.com/echo:v1").await, Code::NotFound);
}
