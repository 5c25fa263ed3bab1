//! Registries by name: names that are found, wherever they are written, and names that are not, told at once.

use std::fs;

use registry::RegistryErrorKind::{Invalid, TimedOut, Unavailable};
use registry::{Options, Proxies, Registry, RegistryError, Resolver};
use tempfile::TempDir;

use crate::support::dns::{Asked, NameServer, name_server};
use crate::support::http::{Reply, Server, serve};
use crate::support::images::{Image, OCI};
use crate::support::{image, inspect, options, refusal, within};

const NAME: &str = "images.example";

/// A machine with these files.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new(resolv_conf: &str) -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        machine.write("resolv.conf", resolv_conf);
        machine
    }

    /// One that asks these servers, once and with much patience.
    fn asking(servers: &[&NameServer]) -> Self {
        Self::asking_for(30, servers)
    }

    fn asking_for(seconds: u32, servers: &[&NameServer]) -> Self {
        let servers: Vec<_> = servers.iter().map(|server| format!("nameserver {}", server.address)).collect();
        let servers = servers.join("\n");
        Self::new(&format!("{servers}\noptions timeout:{seconds} attempts:1\n"))
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).unwrap();
    }

    fn options(&self) -> Options {
        let [hosts, resolv_conf] = ["hosts", "resolv.conf"].map(|file| self.folder.path().join(file));
        Options {
            resolver: Resolver::with_files(hosts, resolv_conf),
            insecure_registries: ["images.example", "images", "images.team.example"]
                .map(str::to_owned)
                .into(),
            ..options()
        }
    }

    fn client(&self) -> Registry {
        Registry::new(self.options()).unwrap()
    }

    /// The error of an image whose registry's name is not found.
    async fn refusal(&self, part: &str) -> RegistryError {
        refusal(&self.client(), &format!("{NAME}/a:v1"), Unavailable, part).await
    }
}

async fn registry() -> (Server, u16) {
    let ours = Image::new(OCI, "amd64");
    let server = serve(move |request| {
        Reply::ok(if request.target.contains("/blobs/") {
            ours.config.clone()
        } else {
            ours.manifest.clone()
        })
    })
    .await;
    let port = server.host.rsplit_once(':').unwrap().1.parse().unwrap();
    (server, port)
}

/// A server that gives all names the address of this machine.
async fn finding() -> NameServer {
    name_server(|asked| vec![asked.addresses(&["127.0.0.1"])]).await
}

#[tokio::test]
async fn a_name_that_is_not_found_ends_at_once_with_the_cause() {
    type Answer = fn(&Asked) -> Vec<Vec<u8>>;
    let answers: [(Answer, &str); 6] = [
        (|asked| vec![asked.code(2)], "the name server 127.0.0.1:PORT answers SERVFAIL"),
        (|asked| vec![asked.code(5)], "answers REFUSED"),
        (|asked| vec![asked.code(3)], "the name \"images.example\" cannot be looked up: no such host"),
        (|asked| vec![asked.code(0)], "it has no address"),
        (|asked| vec![[asked.cut(), vec![0xFF; 9]].concat()], "has no whole answer"),
        (
            |asked| {
                let mut broken = asked.addresses(&["127.0.0.1", "::1"]);
                broken.truncate(broken.len() - 1);
                vec![broken]
            },
            "gives an answer that makes no sense",
        ),
    ];
    for (answer, part) in answers {
        let server = name_server(answer).await;
        let part = part.replace("[127.0.0.1]", "127.0.0.1");
        let part = part.replace("PORT", server.address.rsplit_once(':').unwrap().1);
        let machine = Machine::asking(&[&server]);
        let error = machine.refusal(&part).await;
        assert!(!error.to_string().contains("attempts"), "{error}");
        // For both families, and by TCP what is said to be longer.
        let expected = 2 + server.asked_by_tcp();
        assert_eq!(server.asked(), vec![NAME; expected], "{part}");
    }
}

#[tokio::test]
async fn silence_and_noise_are_told_as_such() {
    let silent = name_server(|_| Vec::new()).await;
    // Answers to other questions, and none at all.
    let noisy = name_server(|asked| {
        let mut other = asked.addresses(&["127.0.0.1"]);
        other[0] ^= 0xFF;
        let mut stranger = asked.addresses(&["127.0.0.1"]);
        stranger[14] = b'x';
        vec![
            Vec::new(),
            b"garbage".to_vec(),
            vec![0; 12],
            vec![0xFF; 9000],
            other,
            stranger,
            asked.code(2)[..11].to_vec(),
        ]
    })
    .await;
    for server in [&silent, &noisy] {
        let port = server.address.rsplit_once(':').unwrap().1;
        let expected = format!("no answer of the name server 127.0.0.1:{port} within 1 s");
        Machine::asking_for(1, &[server]).refusal(&expected).await;
        assert_eq!(server.asked().len(), 2, "it is asked once for each family");
    }
    Machine::asking_for(1, &[&silent, &noisy]).refusal("no answer of the name servers 127.0.0.1:").await;

    // The caller has less patience.
    let machine = Machine::new(&format!("nameserver {}", silent.address));
    let error = machine.client().metadata(&image("images.example/a:v1"), within(1)).await.unwrap_err();
    assert_eq!(error.kind(), TimedOut, "{error}");

    let nobody = Machine::new("nameserver [127.0.0.1]:1\n");
    nobody.refusal("the name server 127.0.0.1:1 cannot be asked: Connection refused").await;
}

#[tokio::test]
async fn one_server_that_knows_is_enough() {
    let (registry, port) = registry().await;
    let silent = name_server(|_| Vec::new()).await;
    let broken = name_server(|asked| vec![asked.code(2)]).await;
    let good = finding().await;
    let machine = Machine::asking(&[&silent, &broken, &good]);
    inspect(&machine.client(), &format!("{NAME}:{port}/a:v1")).await.unwrap();
    assert!(registry.count("/manifests/") > 0 && !good.asked().is_empty());
}

#[tokio::test]
async fn servers_that_never_answer_for_ipv6_hold_nothing_up() {
    let (_registry, port) = registry().await;
    for answer in [None, Some(2), Some(3)] {
        let server = name_server(move |asked| match answer {
            _ if !asked.is_v6 => vec![asked.addresses(&["127.0.0.1"])],
            Some(code) => vec![asked.code(code)],
            None => Vec::new(),
        })
        .await;
        let machine = Machine::new(&format!("nameserver {}\noptions timeout:30", server.address));
        inspect(&machine.client(), &format!("{NAME}:{port}/a:v1")).await.unwrap();
    }
}

#[tokio::test]
async fn an_answer_too_long_for_a_datagram_is_fetched_by_tcp() {
    let (_registry, port) = registry().await;
    let server = name_server(|asked| {
        if !asked.is_tcp {
            return vec![asked.cut()];
        }
        // As long as an answer can be; only the first addresses are of use.
        let addresses = [vec!["127.0.0.1"; 4000], vec!["::1"; 2300]].concat();
        vec![asked.addresses(&addresses)]
    })
    .await;
    inspect(&Machine::asking(&[&server]).client(), &format!("{NAME}:{port}/a:v1")).await.unwrap();
    assert!(server.asked_by_tcp() > 0);
}

#[tokio::test]
async fn names_are_completed_as_resolv_conf_says() {
    let (_registry, port) = registry().await;
    let whole = "images.team.example";
    let longer = ["images.team.example.broken.example", "images.team.example.team.example", whole];
    for (host, more, expected) in [
        ("images", "", &["images.broken.example", whole][..]),
        // As it is first, for it has a dot.
        (whole, "", &[whole]),
        (whole, "options ndots:3", &longer),
    ] {
        let server = name_server(|asked| {
            vec![match asked.name.as_str() {
                "images.team.example" => asked.addresses(&["127.0.0.1"]),
                "images.broken.example" => asked.code(2),
                _ => asked.code(3),
            }]
        })
        .await;
        let search = "search broken.example team.example";
        let machine = Machine::new(&format!("nameserver {}\n{search}\n{more}", server.address));
        inspect(&machine.client(), &format!("{host}:{port}/a:v1")).await.unwrap();
        let mut names = server.asked();
        names.dedup();
        // It is looked up for each connection.
        assert_eq!(names[..expected.len()], *expected);

        // What could not be told is told, not that there is nothing by another name.
        let machine =
            Machine::new(&format!("nameserver {}\nsearch broken.example none.example", server.address));
        refusal(&machine.client(), "images:1/a:v1", Unavailable, "answers SERVFAIL").await;
    }
}

#[tokio::test]
async fn the_file_of_hosts_comes_first_and_its_changes_count_at_once() {
    let (_registry, port) = registry().await;
    let server = name_server(|asked| vec![asked.code(3)]).await;
    let machine = Machine::asking(&[&server]);
    let (client, name) = (machine.client(), format!("{NAME}:{port}/a:v1"));
    refusal(&client, &name, Unavailable, "no such host").await;
    let asked = server.asked().len();
    machine.write("hosts", "# none\n127.0.0.1 localhost\n127.0.0.1 other Images.Example # ours\n");
    inspect(&client, &name).await.unwrap();
    // These are this machine, whatever a server says.
    inspect(&client, &format!("a.localhost:{port}/a:v1")).await.unwrap();
    assert_eq!(server.asked().len(), asked);
}

#[tokio::test]
async fn files_that_cannot_be_read_and_names_that_are_none_are_named() {
    let machine = Machine::new("");
    fs::remove_file(machine.folder.path().join("resolv.conf")).unwrap();
    fs::create_dir(machine.folder.path().join("resolv.conf")).unwrap();
    machine.refusal("resolv.conf: it is not a regular file").await;

    let server = finding().await;
    let long = format!("{}.example:5000/a:v1", ["a".repeat(63).as_str(); 4].join("."));
    refusal(&Machine::asking(&[&server]).client(), &long, Invalid, "too long for the name of a host").await;
    let empty_part = "a..example:5000/a:v1";
    if registry::Reference::parse(empty_part).is_ok() {
        refusal(&Machine::asking(&[&server]).client(), empty_part, Unavailable, "not the name of a host")
            .await;
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn the_name_of_a_proxy_is_told_apart_from_that_of_the_registry() {
    let server = name_server(|asked| vec![asked.code(3)]).await;
    let proxies =
        Proxies::from_variables(|name| (name == "ALL_PROXY").then(|| "http://proxy.example:3128".to_owned()));
    let machine = Machine::asking(&[&server]);
    let client = Registry::new(Options { proxies, ..machine.options() }).unwrap();
    refusal(&client, "images.example/a:v1", Unavailable, "the name \"proxy.example\" cannot").await;
    assert_eq!(server.asked(), ["proxy.example"; 2]);
}
