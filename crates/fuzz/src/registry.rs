//! Registries: a real client, and a server that answers as the input says.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Mutex},
};

use registry::{Keychain, Options, Proxies, Reference, Registry, RegistryError};
use ring::digest::{SHA256, digest};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
};

/// In an answer: the digest of the next body that is not empty.
const NEXT: &str = "sha256:next";
/// In an answer: the proof that was sent with the question.
const PROOF: &str = "$authorization";
/// What must be shown to nobody: the secrets in `logins`, as they are and as they are sent.
const SECRETS: [&str; 3] = ["hidden-password", "hidden-identity", "cmVhZGVyOmhpZGRlbi1wYXNzd29yZA"];
/// More bytes of a question are not read.
const LONGEST_QUESTION: usize = 64 * 1024;

/// What the server answers, one after the other; then nothing is found.
type Answers = Arc<Mutex<VecDeque<String>>>;

struct World {
    runtime: Runtime,
    answers: Answers,
    /// Without a login, with a password, with an identity token.
    clients: [Registry; 3],
}

thread_local! {
    static WORLD: World = World::new();
}

/// The first line says what is asked, and as whom: `tags` or anything else, `basic` or `identity` or nobody. Then
/// come the answers: a line with the status, headers, an empty line, the body.
pub(crate) fn answers(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // A registry that knows the secrets may tell them.
    if SECRETS.iter().any(|secret| text.contains(secret)) {
        return;
    }
    if let Err(error) = ask(text) {
        let message = error.to_string();
        crate::is_one_line(&message);
        assert!(!SECRETS.iter().any(|secret| message.contains(secret)), "a secret is shown: {message}");
    }
}

fn ask(text: &str) -> Result<(), RegistryError> {
    let mut parts = crate::parts(text);
    let what = parts.next().unwrap_or_default();
    let mut answers = VecDeque::new();
    let mut next = String::new();
    for part in parts.collect::<Vec<_>>().into_iter().rev() {
        let (head, body) = part.split_once("\n\n").unwrap_or((part, ""));
        let (head, body) = (head.replace(NEXT, &next), body.replace(NEXT, &next));
        if !body.is_empty() {
            next = digest_of(body.as_bytes());
        }
        answers.push_front(answer(&head, &body));
    }
    WORLD.with(|world| world.ask(what, answers))
}

fn digest_of(content: &[u8]) -> String {
    digest(&SHA256, content)
        .as_ref()
        .iter()
        .fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

fn answer(head: &str, body: &str) -> String {
    let (status, headers) = head.split_once('\n').unwrap_or((head, ""));
    let status = status.parse().ok().filter(|status| (100..600).contains(status)).unwrap_or(200);
    let headers = headers.lines().fold(String::new(), |all, line| all + line + "\r\n");
    let length = body.len();
    format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

impl World {
    fn new() -> Self {
        // Its time is not the machine's: pauses between attempts are over at once.
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        // As a proxy it is also whatever else an answer leads to, so that no other host is asked.
        let proxy = format!("http://{}", listener.local_addr().unwrap());
        let answers = Answers::default();
        runtime.spawn(serve(listener, answers.clone()));
        let login = |file: &str| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("logins");
            Keychain::file_with_helpers(folder.join(file), "".into())
        };
        let client = |keychain| {
            Registry::new(Options {
                keychain,
                insecure_registries: vec!["registry.test".to_owned()],
                proxies: Proxies::from_variables(|name| (name == "ALL_PROXY").then(|| proxy.clone())),
                ..Options::default()
            })
            .unwrap()
        };
        let clients = [client(Keychain::none()), client(login("basic.json")), client(login("identity.json"))];
        Self { runtime, answers, clients }
    }

    fn ask(&self, what: &str, answers: VecDeque<String>) -> Result<(), RegistryError> {
        // A repository of its own: what earlier answers said of tokens is of no use to it.
        let length = answers.iter().map(String::len).sum::<usize>();
        *self.answers.lock().unwrap() = answers;
        let image = Reference::parse(&format!("registry.test/app{length}:v1")).unwrap();
        let client = match what {
            _ if what.contains("basic") => &self.clients[1],
            _ if what.contains("identity") => &self.clients[2],
            _ => &self.clients[0],
        };
        self.runtime.block_on(async {
            if what.contains("tags") {
                let tags = client.tags(&image, None).await?;
                assert!(tags.iter().all(|tag| Reference::check_tag(tag).is_ok()), "no tags: {tags:?}");
            } else {
                let metadata = client.metadata(&image, None).await?;
                assert!(image.with_digest(&metadata.digest).is_ok(), "no digest: {}", metadata.digest);
            }
            Ok(())
        })
    }
}

async fn serve(listener: TcpListener, answers: Answers) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(converse(stream, answers.clone()));
    }
}

/// Answers one question. Those of TLS, and those to be led on to another host by it, are not answered.
async fn converse(mut stream: TcpStream, answers: Answers) -> std::io::Result<()> {
    let mut question = Vec::new();
    while !is_whole(&question) {
        if stream.read_buf(&mut question).await? == 0 || question.len() > LONGEST_QUESTION {
            return Ok(());
        }
        if question.starts_with(&[0x16]) || question.starts_with(b"CONNECT") {
            return Ok(());
        }
    }
    let question = String::from_utf8_lossy(&question).into_owned();
    let proof = question.lines().find_map(|line| line.strip_prefix("authorization: ")).unwrap_or_default();
    let answer = answers.lock().unwrap().pop_front().unwrap_or_else(|| answer("404", ""));
    stream.write_all(answer.replace(PROOF, proof).as_bytes()).await?;
    stream.shutdown().await
}

/// Whether the header and, of a form, the body have arrived.
fn is_whole(question: &[u8]) -> bool {
    let text = String::from_utf8_lossy(question);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    body.len() >= length.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The conversations of the corpus go as they are meant to: they would find little else.
    #[test]
    fn registries_are_talked_with() {
        let told = |name: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/registry").join(name);
            ask(&std::fs::read_to_string(path).unwrap()).err().map(|error| error.explanation())
        };
        for name in ["image", "index", "token", "identity", "tags", "redirect", "busy", "shapes"] {
            assert_eq!(told(name), None, "{name}");
        }
        for (name, problem) in [
            ("basic", "no Basic ***"),
            ("basic-token", "not you: Basic ***"),
            ("deep-index", "indexes are more than"),
            ("redirects", "redirect"),
            ("missing", "MANIFEST_UNKNOWN"),
            ("digest-header", "does not match its digest"),
        ] {
            let error = told(name).unwrap();
            assert!(error.contains(problem), "{name}: {error}");
        }
    }
}
