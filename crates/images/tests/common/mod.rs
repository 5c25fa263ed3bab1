//! Programs that are none, and the images made of them.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use images::{Order, layout::Written, time::Timestamp};

/// The root of the checkout.
pub(crate) fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder with a stand-in for each program, and the order to build images of them.
pub(crate) fn stand_ins(folder: &Path) -> Order {
    let programs = folder.join("programs");
    fs::create_dir_all(&programs).unwrap();
    for name in ["function-runner", "wrapper-server", "set-owner", "test-function"] {
        fs::write(programs.join(name), stand_in(name)).unwrap();
    }
    let roots = folder.join("roots.pem");
    fs::write(&roots, "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n").unwrap();
    Order {
        programs,
        roots,
        out: folder.join("images"),
        rootfs: Some(folder.join("rootfs")),
        revision: Some("0123456789abcdef".to_owned()),
        time: Timestamp::default(),
    }
}

/// The head of a static program for amd64, and some text.
pub(crate) fn stand_in(text: &str) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18] = 62;
    bytes.extend(text.as_bytes());
    bytes
}

/// Name and digest of what was written.
pub(crate) fn digests(written: &[Written]) -> Vec<(&'static str, String)> {
    written.iter().map(|image| (image.name, image.digest.clone())).collect()
}
