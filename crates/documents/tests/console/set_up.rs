//! What the commands of a document need to be there.

use std::{fs, path::Path, process::Command};

use serde_json::json;
use testing::{
    checkout,
    registry::{
        FIRST_PASSWORD, RealRegistry, docker_config,
        images::{Image, OCI},
    },
};

use crate::session::Session;

/// What is prepared for the commands of a document.
#[derive(Default)]
pub(crate) struct SetUp {
    /// Run in their shell before them.
    pub(crate) script: String,
    /// Keeps what the script uses.
    _registry: Option<RealRegistry>,
}

/// Prepares for the commands of a document.
pub(crate) async fn of(document: &str, session: &Session) -> SetUp {
    match document {
        "README.md" => readme(session),
        "docs/function-config.md" => function_config(session),
        "docs/registries.md" => registries(session).await,
        _ => SetUp::default(),
    }
}

/// Waits until somebody listens on a port.
fn wait_for(port: u16) -> String {
    format!("for try in $(seq 600); do (: </dev/tcp/localhost/{port}) 2>/dev/null && break; sleep 0.05; done")
}

/// The service as `make run` starts it.
fn readme(session: &Session) -> SetUp {
    session.link("target/release/grpcurl", &grpcurl());
    let makefile = fs::read_to_string(checkout().join("Makefile")).unwrap();
    let mut lines = makefile.lines().skip_while(|line| !line.starts_with("run:")).skip(1);
    let command = lines.next().unwrap().trim().replace("$(FLAGS)", "");
    assert!(command.starts_with("./target/release/function-runner "), "{command}");
    SetUp { script: format!("{command} >.log 2>&1 &\n{}", wait_for(9445)), ..SetUp::default() }
}

/// The program that the README names as another client, of the version in `grpcurl/go.mod`.
fn grpcurl() -> std::path::PathBuf {
    let found = Command::new(checkout().join("scripts/setup-go")).output().unwrap();
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(found.status.success(), "there is no Go to build grpcurl with: {said}");
    let go = String::from_utf8(found.stdout).unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("grpcurl");
    let built = Command::new(go.trim())
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("grpcurl"))
        .env("CGO_ENABLED", "0")
        .args(["build", "-mod=readonly", "-trimpath", "-o"])
        .arg(&program)
        .arg("github.com/fullstorydev/grpcurl/cmd/grpcurl")
        .output()
        .unwrap();
    assert!(built.status.success(), "cannot build grpcurl: {}", String::from_utf8_lossy(&built.stderr));
    program
}

/// A FunctionConfig with a mistake, and a good configuration.
fn function_config(session: &Session) -> SetUp {
    let object = "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: FunctionConfig\nmetadata:\n  name: set-labels\n\
                  spec:\n  image: set-labels\n  podExecutor:\n    timeToLive: 1d\n";
    session.write("functions/set-labels.yaml", object);
    session.link("config.yaml", &checkout().join("examples/config.yaml"));
    SetUp::default()
}

/// A registry that wants a password, the executable and the configuration that the page shows.
async fn registries(session: &Session) -> SetUp {
    let registry = RealRegistry::open().await;
    let config = json!({
        "os": "linux", "architecture": "amd64", "rootfs": {"type": "layers", "diff_ids": []},
        "config": {"Entrypoint": ["/usr/local/bin/function"], "User": "65532:65532"},
    });
    let image = Image::with_config(OCI, "amd64", config.to_string());
    registry.pusher().image("team/set-owner", "v0.4.1", &image).await;

    let page = fs::read_to_string(checkout().join("docs/registries.md")).unwrap();
    let shown = documents::blocks(&page)
        .into_iter()
        .find(|block| block.lines.first().is_some_and(|line| line == "functions:"));
    session.write("srv/config.yaml", &shown.unwrap().lines.join("\n"));
    session.link("srv/functions/set-owner", Path::new("/bin/true"));
    docker_config(&session.path("srv/docker.json"), "localhost:5001", "me", FIRST_PASSWORD.0);
    session.write("htpasswd", FIRST_PASSWORD.1);
    session.write(
        "registry.yml",
        &format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  \
             addr: 127.0.0.1:5001\nauth:\n  htpasswd:\n    realm: test\n    path: {}\n",
            registry.folder.path().join("storage").display(),
            session.path("htpasswd").display(),
        ),
    );
    let script = format!(
        "mount --bind srv /srv || exit\ndocker-registry serve registry.yml >.registry.log 2>&1 &\n{}",
        wait_for(5001)
    );
    SetUp { script, _registry: Some(registry) }
}
