//! `function-runner explain`: which executor would run an image and why, for a person and for programs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where its set-up fails")]

mod common;

use std::{
    fs,
    process::{Command, Output},
};

use common::PROGRAM;
use serde_json::{Value, json};
use testing::{
    Functions,
    registry::{
        FIRST_PASSWORD, RealRegistry,
        certificates::Authority,
        docker_config,
        images::{Image, OCI},
    },
};

/// Makes the pod runtime one that could run things. Nobody asks the cluster.
const CLUSTER: [(&str, &str); 2] =
    [("KUBECONFIG", "/nonexistent/kubeconfig"), ("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1")];

fn explain(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(PROGRAM)
        .arg("explain")
        .args(arguments)
        .env_remove("KUBECONFIG")
        .env_remove("WRAPPER_SERVER_IMAGE")
        .env("DOCKER_CONFIG", "/nonexistent")
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// What stands beside a word in the text. All of it must be aligned.
fn row<'a>(output: &'a Output, name: &str) -> &'a str {
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    let column = lines.iter().map(|line| line.find("  ").unwrap()).max().unwrap() + 2;
    for line in &lines {
        let (word, value) = line.split_at(column);
        assert!(!word.trim().is_empty() && word.ends_with("  ") && !value.starts_with(' '), "{lines:#?}");
    }
    let found = lines.iter().find(|line| line[..column].trim() == name);
    &found.unwrap_or_else(|| panic!("there is no {name} in {lines:#?}"))[column..]
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[tokio::test]
async fn an_executable_is_named_with_its_entry() {
    let registry = RealRegistry::open().await;
    let name = format!("{}/functions/f", registry.host);
    let ours = Image::new(OCI, "amd64");
    for tag in ["v1.2.0", "v1.3.0"] {
        registry.pusher().image("functions/f", tag, &ours).await;
    }
    let functions = Functions::new();
    functions.write_executable("good", "#!/bin/sh\ncat\n");
    let functions = functions
        .with_entry("good", &[&format!("{name}:v1.2.0"), &format!("{name}:~2"), &format!("{name}:v0.1")])
        .with_entry("gone", &[&format!("{name}:v3.0.0")]);
    let flags = functions.flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let with = |more: &[&str], variables: &[(&str, &str)]| explain(&[more, &flags].concat(), variables);
    let file = functions.folder().join("good").display().to_string();

    // The constraint means the highest tag that an executable has, not the highest there is.
    let output = with(&[&name, "--tag=^1"], &CLUSTER);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!((row(&output, "image"), row(&output, "tag")), (name.as_str(), "^1"));
    assert_eq!(row(&output, "allowed"), "yes: every image is, as --allowed-images lists none");
    let config = functions.config().display().to_string();
    let entry = format!("the entry \"{name}:v1.2.0\" of {config} names the executable {file}");
    assert_eq!(row(&output, "exec"), format!("yes: {entry}"));
    assert_eq!(row(&output, "pod"), "no: it is not asked, as exec comes first");
    assert_eq!(row(&output, "runs as"), format!("the executable {file}"));
    assert_eq!(row(&output, "reference"), format!("{name}:v1.2.0"));
    assert_eq!(row(&output, "digest"), ours.digest());
    let warned = text(&output.stderr);
    assert!(warned.contains("gone is missing") && warned.lines().count() == 1, "{warned}");

    let found = json(&with(&[&name, "--tag=^1", "--output=json"], &CLUSTER));
    assert_eq!(found["executor"], "exec");
    assert_eq!(
        found["exec"],
        json!({"runs": true, "reason": entry, "entry": format!("{name}:v1.2.0"), "file": file})
    );

    // The registry does not have it, which is no matter to an executable.
    let output = with(&[&format!("{name}:v2.7")], &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(row(&output, "exec").starts_with(&format!("yes: the entry \"{name}:~2\"")), "{output:?}");
    assert!(row(&output, "registry").starts_with("FailedPrecondition: image"), "{output:?}");

    // A missing file: the next runtime has it, or nobody.
    let missing = format!("{name}:v3.0.0");
    let output = with(&[&missing], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        row(&output, "exec").starts_with("no: ")
            && row(&output, "exec").ends_with("gone, but that is missing")
    );
    assert!(row(&output, "pod").starts_with("no: no cluster is configured (--kubeconfig"), "{output:?}");
    assert_eq!(row(&output, "runs as"), "nothing");
    registry.pusher().image("functions/f", "v3.0.0", &ours).await;
    let output = with(&[&missing], &CLUSTER);
    assert_eq!((output.status.code(), row(&output, "runs as")), (Some(0), "a pod"), "{output:?}");
}

#[tokio::test]
async fn a_pods_image_is_told_in_full() {
    let registry = RealRegistry::open().await;
    let name = format!("{}/functions/f", registry.host);
    let ours = Image::new(OCI, "amd64");
    for tag in ["v1.2.0", "v1.10.0", "latest"] {
        registry.pusher().image("functions/f", tag, &ours).await;
    }
    // Flags before the image and after it, and flags of the service that do not matter here.
    for arguments in [
        vec![name.as_str(), "--tag", "~1", "--output=json", "--pod-ttl=1h", "--port=0"],
        vec!["--tag", "~1", &name, "--output=json"],
        vec!["-output=json", "--tag=~1", &name],
        vec!["-output=json", "--tag=~1", "--", &name],
    ] {
        let output = explain(&arguments, &CLUSTER);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let found = json(&output);
        assert_eq!(found["executor"], "pod");
        assert_eq!(found["pod"], json!({"runs": true, "reason": "it takes every image"}));
        let reference = format!("{name}:v1.10.0");
        let expected = json!({
            "reference": reference, "source": reference, "digest": ours.digest(),
            "entrypoint": ["/bin/function", "amd64"], "command": ["--flag"], "user": "65532:65532",
            "workingDir": "/work", "platform": "linux/amd64", "credential": null, "trust": "none, plain HTTP",
        });
        assert_eq!(found["registry"], expected);
    }
    let output = explain(&[&name, "--pin-digests"], &CLUSTER);
    assert_eq!(row(&output, "entrypoint"), "/bin/function amd64");
    assert_eq!((row(&output, "command"), row(&output, "user")), ("--flag", "65532:65532"));
    assert_eq!((row(&output, "platform"), row(&output, "folder")), ("linux/amd64", "/work"));
    assert_eq!((row(&output, "credential"), row(&output, "trust")), ("none", "none, plain HTTP"));
    assert_eq!(row(&output, "pinned"), format!("{name}@{}", ours.digest()));
    // By a mirror.
    let mirror = format!("--registry-mirrors=images.example={}", registry.host);
    let output = explain(&["images.example/functions/f:v1.2.0", &mirror], &CLUSTER);
    assert_eq!(row(&output, "mirror"), format!("{name}:v1.2.0"));
}

#[tokio::test]
async fn what_no_runtime_would_run_is_told_with_the_reason_and_exits_with_1() {
    let registry = RealRegistry::open().await;
    let name = format!("{}/functions/f:v9", registry.host);
    let in_cluster = &CLUSTER[..1];
    for (flags, variables, exec, pod) in [
        (&[][..], &[][..], "lists no images, or is not there", "no cluster is configured"),
        (&["--disable-runtimes=exec,pod"], &CLUSTER[..], "turned off by --disable-runtimes", "turned off"),
        (&[], in_cluster, "./config.yaml", "WRAPPER_SERVER_IMAGE does not name"),
        // A pod could run it, were it there.
        (&[], &CLUSTER[..], "./config.yaml", "it takes every image"),
    ] {
        let output = explain(&[&[name.as_str()], flags].concat(), variables);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            row(&output, "exec").starts_with("no: ") && row(&output, "exec").contains(exec),
            "{output:?}"
        );
        assert!(row(&output, "pod").contains(pod), "{output:?}");
        assert_eq!(row(&output, "runs as"), "nothing");
        assert!(row(&output, "registry").contains("MANIFEST_UNKNOWN"), "{output:?}");
        let found = json(&explain(&[&[name.as_str(), "--output=json"], flags].concat(), variables));
        assert_eq!(
            (&found["executor"], &found["registryError"]["code"]),
            (&Value::Null, &json!("FailedPrecondition"))
        );
    }
}

#[test]
fn an_image_that_is_not_allowed_is_not_asked_for() {
    // Nobody listens there: to ask would take a while.
    let flags = ["--allowed-images=ghcr.io/org,localhost:1/org", "--output=json"];
    let output = explain(&[&["localhost:1/organisation/f"], &flags[..]].concat(), &CLUSTER);
    assert_eq!(output.status.code(), Some(1));
    let policy = "localhost:1/organisation/f is not under --allowed-images (ghcr.io/org, localhost:1/org); use an image \
                  from there, or have its prefix added to the flag";
    let image = "localhost:1/organisation/f";
    assert_eq!(json(&output), json!({"image": image, "allowed": false, "policy": policy, "executor": null}));
    let output = explain(&[image, flags[0], "--tag=~1"], &CLUSTER);
    assert_eq!(row(&output, "allowed"), format!("no: {policy}"));
    assert_eq!((row(&output, "runs as"), row(&output, "tag")), ("nothing", "~1"));
    let output = explain(&["localhost:1/org/f", flags[0], "--timeout=2s"], &CLUSTER);
    assert_eq!(row(&output, "allowed"), "yes: it is under localhost:1/org of --allowed-images");
    assert!(row(&output, "registry").starts_with("Unavailable: "), "{output:?}");
}

#[tokio::test]
async fn credentials_and_trust_are_named_and_no_secret_is() {
    let registry = RealRegistry::password(FIRST_PASSWORD.1).await;
    let name = format!("{}/functions/a:v1", registry.host);
    let auth = registry.folder.path().join("config.json");
    let path = format!("--registry-auth-secret-path={}", auth.display());
    let flags = [name.as_str(), "--enable-private-registries", &path, "--log-level=5"];
    docker_config(&auth, &registry.host, "me", FIRST_PASSWORD.0);
    let output = explain(&flags, &CLUSTER);
    assert_eq!(
        (output.status.code(), row(&output, "credential")),
        (Some(0), registry.host.as_str()),
        "{output:?}"
    );
    assert!(!format!("{output:?}").contains(FIRST_PASSWORD.0), "{output:?}");
    // The user's own Docker config, where private registries are not enabled.
    let folder = registry.folder.path().to_str().unwrap();
    let output = explain(&[&name], &[("DOCKER_CONFIG", folder), CLUSTER[0], CLUSTER[1]]);
    assert_eq!(row(&output, "credential"), registry.host, "{output:?}");
    docker_config(&auth, &registry.host, "me", "hidden-password");
    let output = explain(&flags, &CLUSTER);
    assert_eq!(output.status.code(), Some(1));
    assert!(row(&output, "registry").starts_with("PermissionDenied: "), "{output:?}");
    assert!(!format!("{output:?}").contains("hidden-password"), "{output:?}");

    let authority = Authority::new("own");
    let registry = RealRegistry::tls(&authority.server()).await;
    let tls = tempfile::tempdir().unwrap();
    authority.put(tls.path());
    let name = format!("{}/functions/a:v1", registry.host);
    let path = format!("--tls-secret-path={}", tls.path().display());
    let flags = [name.as_str(), "--enable-private-registries", "--enable-private-registries-tls", &path];
    assert_eq!(row(&explain(&flags, &CLUSTER), "trust"), "custom certificate authority");
    fs::remove_file(tls.path().join("ca.crt")).unwrap();
    let output = explain(&flags, &CLUSTER);
    assert!(row(&output, "registry").contains("neither ca.crt nor ca.pem"), "{output:?}");
    let insecure = format!("--insecure-registries={}", registry.host);
    assert_eq!(row(&explain(&[&name, &insecure], &CLUSTER), "trust"), "none, certificate not verified");
}

#[test]
fn a_wrong_command_line_exits_with_2_and_a_wrong_image_with_1() {
    for (arguments, told) in [
        (&[][..], "name the image to explain"),
        (&["--output=json"], "name the image to explain"),
        (&["a/b", "c/d"], "one image is explained at a time; what is \"c/d\"?"),
        (&["a/b", "--output=xml"], "must be one of text, json"),
        (&["a/b", "--allowed-images=x"], "--allowed-images"),
    ] {
        let output = explain(arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty() && text(&output.stderr).contains(told), "{output:?}");
        assert!(text(&output.stderr).contains("function-runner explain --help"), "{output:?}");
    }
    for (arguments, told) in [
        (&["Not:An:Image"][..], "function-runner: invalid image reference"),
        (&[""], "function-runner: invalid image reference"),
        (&["a/b", "--tag=not a tag"], "neither a tag nor a version constraint"),
        (&["a/b", "--config=/nonexistent.yaml"], "cannot read /nonexistent.yaml"),
    ] {
        let output = explain(arguments, &[]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty() && text(&output.stderr).contains(told), "{output:?}");
    }
    let output = explain(&["a/b"], &[("HTTPS_PROXY", "http://u:hidden@["), CLUSTER[0]]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("HTTPS_PROXY is not the address of a proxy"), "{output:?}");
    assert!(!text(&output.stderr).contains("hidden"), "{output:?}");
}
