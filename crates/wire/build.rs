//! Generates the gRPC code from the project's `proto` folder, without `protoc`.

use std::{env, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = "../../proto";
    println!("cargo::rerun-if-changed={folder}");
    let descriptors = protox::compile(["evaluator.proto", "pods.proto"], [folder])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors"), prost_bytes(&descriptors))?;
    // `Bytes` fields: a 6 MiB resource list is sliced out of the receive buffer, not copied.
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}

fn prost_bytes(descriptors: &impl protox::prost::Message) -> Vec<u8> {
    descriptors.encode_to_vec()
}
