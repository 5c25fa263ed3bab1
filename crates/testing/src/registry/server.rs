//! Debian's `docker-registry`, started for a test.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::certificates;
use super::images::{DOCKER, Image, Pusher};

/// A running registry, ended with the test.
#[derive(Debug)]
pub struct RealRegistry {
    /// `localhost:PORT`
    pub host: String,
    /// Where its files are; tests may put theirs there.
    pub folder: TempDir,
    processes: Vec<Child>,
}

impl Drop for RealRegistry {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl RealRegistry {
    /// One that lets anyone in.
    pub async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (host, process) = start(folder.path(), "open", "", "").await;
        Self { host, folder, processes: vec![process] }
    }

    /// A registry with `functions/a:v1` in it that anyone must be let into.
    async fn guarded(auth: &str, tls: &str, files: &[(&str, &str)]) -> Self {
        let mut registry = Self::open().await;
        registry.pusher().image("functions/a", "v1", &Image::new(DOCKER, "amd64")).await;
        let folder = registry.folder.path();
        for (name, content) in files {
            std::fs::write(folder.join(name), content).unwrap();
        }
        let place = |text: &str| text.replace("FOLDER", folder.to_str().unwrap());
        let (host, process) = start(folder, "guarded", &place(auth), &place(tls)).await;
        registry.host = host;
        registry.processes.push(process);
        registry
    }

    /// With user names and passwords. The lines are those of `htpasswd -B`.
    pub async fn password(line: &str) -> Self {
        let auth = "auth:\n  htpasswd:\n    realm: test\n    path: FOLDER/htpasswd\n";
        Self::guarded(auth, "", &[("htpasswd", line)]).await
    }

    /// With this certificate.
    pub async fn tls(server: &certificates::Server) -> Self {
        let tls = "  tls:\n    certificate: FOLDER/tls.crt\n    key: FOLDER/tls.key\n";
        Self::guarded("", tls, &[("tls.crt", &server.certificate), ("tls.key", &server.key)]).await
    }

    /// With tokens of the server at `realm`, signed with the key of a certificate.
    pub async fn tokens(realm: &str, certificate: &str) -> Self {
        let auth = format!(
            "auth:\n  token:\n    realm: {realm}\n    service: test-service\n    issuer: test-issuer\n    \
             rootcertbundle: FOLDER/token.crt\n"
        );
        Self::guarded(&auth, "", &[("token.crt", certificate)]).await
    }

    /// Puts images into an open registry.
    pub fn pusher(&self) -> Pusher {
        Pusher::new(&self.host)
    }
}

async fn start(folder: &Path, name: &str, auth: &str, tls: &str) -> (String, Child) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = format!(
        "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: \
         127.0.0.1:{port}\n{tls}{auth}",
        folder.join("storage").display()
    );
    let file = folder.join(format!("{name}.yml"));
    std::fs::write(&file, config).unwrap();
    let log = std::fs::File::create(folder.join(format!("{name}.log"))).unwrap();
    let mut process = Command::new("docker-registry")
        .arg("serve")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .expect("these tests need Debian's docker-registry: apt-get install docker-registry");
    let begin = Instant::now();
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        let ended = process.try_wait().unwrap();
        if ended.is_some() || begin.elapsed() > Duration::from_mins(2) {
            let log = std::fs::read_to_string(folder.join(format!("{name}.log"))).unwrap();
            let _ = process.kill();
            panic!("docker-registry does not listen ({ended:?}): {log}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (format!("localhost:{port}"), process)
}
