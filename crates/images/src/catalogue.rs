//! The images: what is in each of them, in one place. The paths are those that
//! the manifests of all generations of Porch name, the older ones in the root
//! folder, the newer ones in the home of a user.

use std::{io, sync::Arc};

use anyhow::Context as _;

use crate::{
    layer::{Layer, Owner, Packed},
    program::Program,
    time::Timestamp,
};

/// The version of all images, beside `latest` their tag.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The user of all images.
pub const USER: &str = "10001:10001";
/// Where programs are looked for by name.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const NONROOT: Owner = Owner(10001, 10001);
/// Both layouts, relative to the root of the image.
const PLACES: [&str; 2] = ["home/nonroot/", ""];

/// The built-in functions of the service: linked under one of these names, it is that function.
pub const FUNCTIONS: [&str; 16] = [
    "apply-replacements",
    "apply-setters",
    "apply-setters-v1",
    "create-setters",
    "ensure-name-substring",
    "list-setters",
    "remove-local-config-resources",
    "search-replace",
    "set-annotations",
    "set-image",
    "set-labels",
    "set-namespace",
    "set-namespace-v3",
    "set-project-id",
    "starlark",
    "upsert-resource",
];

const PASSWD: &str = "root:x:0:0:root:/:/nonexistent\n\
                      nobody:x:65534:65534:nobody:/nonexistent:/nonexistent\n\
                      nonroot:x:10001:10001:nonroot:/home/nonroot:/nonexistent\n";
const GROUP: &str = "root:x:0:\nnogroup:x:65534:\nnonroot:x:10001:\n";
const NO_FUNCTIONS: &str = include_str!("../files/config.yaml");
const EXAMPLE_FUNCTIONS: &str = include_str!("../../../examples/config.yaml");

/// An image.
#[derive(Debug)]
pub struct Image {
    /// The name of its folder and, usually, of its repository.
    pub name: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// What it starts.
    pub entrypoint: &'static str,
    /// The arguments it is started with where nobody gives others.
    pub arguments: &'static [&'static str],
    /// The folder it starts in.
    pub folder: &'static str,
    /// The ports it listens on.
    pub ports: &'static [u16],
    /// Its files, from below.
    pub layers: Vec<Arc<Packed>>,
    /// Whether it is for our own tests only, and not part of what we ship.
    pub for_tests: bool,
}

/// The programs that go into the images.
#[derive(Debug)]
pub struct Programs {
    /// The service.
    pub function_runner: Program,
    /// The wrapper, the probe and `cp`, by the name they are called by.
    pub wrapper_server: Program,
    /// The example function.
    pub set_owner: Program,
    /// The function of the cluster tests.
    pub test_function: Program,
}

impl Programs {
    /// The machine that all of them are for.
    pub fn architecture(&self) -> anyhow::Result<&'static str> {
        let Self { function_runner, wrapper_server, set_owner, test_function } = self;
        let first = function_runner.architecture;
        [wrapper_server, set_owner, test_function]
            .iter()
            .all(|program| program.architecture == first)
            .then_some(first)
            .context("the programs are for different machines; build them anew with `make build`")
    }
}

/// All images.
pub fn images(programs: &Programs, roots: Vec<u8>, time: Timestamp) -> io::Result<Vec<Image>> {
    let base = base(roots);
    let runner = runner(&base, programs);
    let example = example(&runner, programs);
    let wrapper = wrapper(&base, programs);
    let set_owner = base.above("the function").program("set-owner", &programs.set_owner.bytes);
    let test_function = base.above("the function").program("test-function", &programs.test_function.bytes);
    // Each once: images share what they have in common.
    let [base, runner, example, wrapper, set_owner, test_function] =
        [base, runner, example, wrapper, set_owner, test_function].map(|layer| layer.pack(time));
    let (base, runner) = (base?, runner?);

    let function_runner = Image {
        name: "function-runner",
        description: "Evaluates KRM functions for Porch over gRPC",
        entrypoint: "/home/nonroot/server",
        arguments: &[],
        folder: "/home/nonroot",
        ports: &[9445, 9464],
        layers: vec![base.clone(), runner.clone()],
        for_tests: false,
    };
    let function_runner_example = Image {
        name: "function-runner-example",
        description: "The function runner with an example function, example.com/set-owner:v1",
        layers: vec![base.clone(), runner, example?],
        ..function_runner
    };
    let wrapper_server = Image {
        name: "wrapper-server",
        description: "Evaluates the KRM function of the image it is copied into, for the function runner",
        entrypoint: "/home/nonroot/wrapper-server/wrapper-server",
        arguments: &[],
        folder: "/home/nonroot",
        ports: &[9446, 9464],
        layers: vec![base.clone(), wrapper?],
        for_tests: false,
    };
    let set_owner = Image {
        name: "set-owner",
        description: "An example of a KRM function: writes an owner into every resource",
        entrypoint: "/set-owner",
        arguments: &[],
        folder: "/",
        ports: &[],
        layers: vec![base.clone(), set_owner?],
        for_tests: false,
    };
    let mut images = vec![function_runner, wrapper_server, set_owner, function_runner_example];
    images.extend(for_tests(vec![base, test_function?]));
    Ok(images)
}

/// Functions of the cluster tests, which are no part of what we ship.
fn for_tests(layers: Vec<Arc<Packed>>) -> [Image; 3] {
    let function = Image {
        name: "test-function",
        description: "A KRM function for tests: behaves as it is told to",
        entrypoint: "/test-function",
        arguments: &[],
        folder: "/",
        ports: &[],
        layers,
        for_tests: true,
    };
    let layers = || function.layers.clone();
    let crashing = Image {
        name: "test-function-crashing",
        description: "A KRM function for tests: crashes at once",
        arguments: &["crash"],
        layers: layers(),
        ..function
    };
    let missing = Image {
        name: "test-function-missing",
        description: "An image for tests whose function is not in it",
        entrypoint: "/missing",
        layers: layers(),
        ..function
    };
    [function, crashing, missing]
}

/// Below all images: users, certificate authorities, a place for temporary files.
fn base(roots: Vec<u8>) -> Layer {
    Layer::new("users, certificate authorities, /tmp")
        .folder("home/nonroot", 0o755, NONROOT)
        .folder("tmp", 0o1777, Owner(0, 0))
        .file("etc/passwd", PASSWD.as_bytes())
        .file("etc/group", GROUP.as_bytes())
        .file("etc/ssl/certs/ca-certificates.crt", roots)
}

/// The service, and its built-in functions as executables where configurations look for them.
fn runner(base: &Layer, programs: &Programs) -> Layer {
    let service = &programs.function_runner.bytes;
    PLACES.iter().fold(base.above("the service"), |layer, place| {
        let layer = layer
            .program(&format!("{place}server"), service)
            .program(&format!("{place}grpc-health-probe"), &programs.wrapper_server.bytes)
            .file(&format!("{place}config.yaml"), NO_FUNCTIONS.as_bytes());
        FUNCTIONS
            .iter()
            .fold(layer, |layer, name| layer.program(&format!("{place}functions/{name}"), service))
    })
}

/// The example function as an executable of the service.
fn example(runner: &Layer, programs: &Programs) -> Layer {
    PLACES.iter().fold(runner.above("the example function"), |layer, place| {
        layer
            .program(&format!("{place}functions/set-owner"), &programs.set_owner.bytes)
            .file(&format!("{place}config.yaml"), EXAMPLE_FUNCTIONS.as_bytes())
    })
}

/// The folder that an init container copies into function pods, and its `cp`.
fn wrapper(base: &Layer, programs: &Programs) -> Layer {
    let program = &programs.wrapper_server.bytes;
    PLACES
        .iter()
        .fold(base.above("the wrapper"), |layer, place| {
            layer
                .program(&format!("{place}wrapper-server/wrapper-server"), program)
                .program(&format!("{place}wrapper-server/grpc-health-probe"), program)
        })
        .program("bin/cp", program)
}
