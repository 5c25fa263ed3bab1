//! A static program: its bytes, and the machine it is for.

use std::{fs, path::Path, sync::Arc};

use anyhow::Context as _;

/// A program that runs in an empty image.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// The machine it is for, as images name it.
    pub architecture: &'static str,
}

impl Program {
    /// Reads the file and makes sure that an empty image can run it.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = fs::read(path)
            .with_context(|| format!("cannot read {}; `make build` makes it", path.display()))?;
        let architecture =
            inspect(&bytes).with_context(|| format!("{} cannot be put into an image", path.display()))?;
        Ok(Self { bytes: bytes.into(), architecture })
    }
}

/// The machines we know, by their number in the ELF header.
const MACHINES: &[(u16, &str)] = &[(62, "amd64"), (183, "arm64"), (243, "riscv64")];
/// The kind of a program header that names a loader.
const INTERPRETER: u32 = 3;

/// The architecture of a 64-bit little-endian ELF file that needs no loader.
fn inspect(bytes: &[u8]) -> anyhow::Result<&'static str> {
    const TOO_SHORT: &str = "the file is cut short";
    anyhow::ensure!(bytes.starts_with(b"\x7fELF\x02\x01"), "it is no 64-bit program for Linux");
    let machine = u16::from_le_bytes(field(bytes, 18).context(TOO_SHORT)?);
    let architecture = MACHINES
        .iter()
        .find_map(|(number, name)| (*number == machine).then_some(*name))
        .with_context(|| format!("it is for a machine we do not know, number {machine}"))?;
    let start = u64::from_le_bytes(field(bytes, 32).context(TOO_SHORT)?);
    let size = u64::from(u16::from_le_bytes(field(bytes, 54).context(TOO_SHORT)?));
    let count = u64::from(u16::from_le_bytes(field(bytes, 56).context(TOO_SHORT)?));
    for number in 0..count {
        let at = size.checked_mul(number).and_then(|offset| start.checked_add(offset));
        let at = at.and_then(|at| usize::try_from(at).ok()).context(TOO_SHORT)?;
        let kind = u32::from_le_bytes(field(bytes, at).context(TOO_SHORT)?);
        anyhow::ensure!(kind != INTERPRETER, "it is not static: it needs a loader, which the image has not");
    }
    Ok(architecture)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with the given program headers' kinds.
    fn program(machine: u16, kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = u8::try_from(kinds.len()).unwrap();
        for kind in kinds {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn the_machine_is_read_from_the_program() {
        assert_eq!(inspect(&program(62, &[1, 2])).unwrap(), "amd64");
        assert_eq!(inspect(&program(183, &[])).unwrap(), "arm64");
    }

    #[test]
    fn what_cannot_run_in_an_empty_image_is_refused() {
        for (bytes, reason) in [
            (b"#!/bin/sh\n".to_vec(), "no 64-bit program"),
            (program(8, &[1]), "number 8"),
            (program(62, &[1, INTERPRETER]), "not static"),
            (program(62, &[1])[..70].to_vec(), ""),
            (program(62, &[1])[..64].to_vec(), "cut short"),
            (program(62, &[1])[..20].to_vec(), "cut short"),
        ] {
            match inspect(&bytes) {
                Ok(_) => assert_eq!(reason, ""),
                Err(error) => assert!(error.to_string().contains(reason), "{error}"),
            }
        }
    }
}
