//! What keeps a file from being started, in words that say more than the kernel's: "no such file" is also what it
//! says of a script whose interpreter is missing.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Where scripts name their interpreter and programs their loader.
const BEGINNING: u64 = 16 << 10;
/// The kind of a program header that names a loader.
const INTERPRETER: u32 = 3;

/// Why a file cannot be executed by anybody, as far as can be seen: `is missing`, `is not a file`. `None` does not
/// mean that it can: the kernel has the last word.
pub fn obstacle(path: &Path) -> Option<String> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some("is missing".to_owned()),
        Err(error) => return Some(format!("cannot be inspected ({error})")),
    };
    if !metadata.is_file() {
        return Some("is not a file".to_owned());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Some("is not executable (chmod +x is missing)".to_owned());
    }
    let mut beginning = Vec::new();
    // What may only be executed tells nothing.
    File::open(path).ok()?.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    if beginning.is_empty() {
        return Some("is empty".to_owned());
    }
    match beginning.strip_prefix(b"#!") {
        Some(script) => interpreter_obstacle(script),
        None => loader_obstacle(&beginning),
    }
}

fn interpreter_obstacle(script: &[u8]) -> Option<String> {
    let line = script.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let interpreter = line.trim_matches([' ', '\t']).split([' ', '\t']).next()?;
    if interpreter.is_empty() {
        return Some("names no interpreter behind #! in its first line".to_owned());
    }
    if Path::new(interpreter).exists() {
        return None;
    }
    let is_text_of_windows = line.ends_with('\r');
    Some(if is_text_of_windows {
        "has lines that end in CRLF, of which the CR is taken for a part of the interpreter's name; save it with LF \
         alone"
            .to_owned()
    } else {
        format!("names the interpreter {interpreter:?} in its first line, which is missing")
    })
}

fn loader_obstacle(program: &[u8]) -> Option<String> {
    let loader = loader(program)?;
    (!Path::new(&loader).exists()).then(|| {
        format!("needs the loader {loader:?}, which is missing; link it statically, or add the C library it was built for")
    })
}

/// The loader that a 64-bit little-endian program names.
fn loader(program: &[u8]) -> Option<String> {
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = |at: usize, size: usize| {
        let bytes = program.get(at..at.checked_add(size)?)?;
        usize::try_from(bytes.iter().rev().fold(0_u64, |all, byte| all << 8 | u64::from(*byte))).ok()
    };
    let (headers, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for index in 0..count {
        let header = headers.checked_add(index * size)?;
        if number(header, 4)? == INTERPRETER as usize {
            let (from, length) = (number(header.checked_add(8)?, 8)?, number(header.checked_add(32)?, 8)?);
            let name = program.get(from..from.checked_add(length)?)?;
            return Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, content: &[u8], mode: u32) -> Option<String> {
        let path = folder.join("file");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        obstacle(&path)
    }

    /// A program that names a loader.
    fn linked(loader: &str) -> Vec<u8> {
        let mut program = vec![0; 64 + 2 * 56];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (program[32], program[54], program[56]) = (64, 56, 2);
        let header = 64 + 56;
        (program[header], program[header + 8], program[header + 32]) =
            (3, u8::try_from(64 + 2 * 56).unwrap(), u8::try_from(loader.len() + 1).unwrap());
        program.extend(loader.as_bytes());
        program.push(0);
        program
    }

    #[test]
    fn what_is_in_the_way_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let told = |content: &[u8]| file(folder, content, 0o755).unwrap_or_default();
        assert_eq!(obstacle(&folder.join("none")).unwrap(), "is missing");
        assert_eq!(obstacle(folder).unwrap(), "is not a file");
        assert_eq!(file(folder, b"#!/bin/sh\n", 0o644).unwrap(), "is not executable (chmod +x is missing)");
        assert_eq!(told(b""), "is empty");
        assert_eq!(told(b"#! \n"), "names no interpreter behind #! in its first line");
        assert!(told(b"#!/bin/sh\r\necho\r\n").contains("CRLF"));
        assert!(told(b"#!/no/such -x\n").contains("the interpreter \"/no/such\""));
        assert!(told(&linked("/no/ld.so.1")).contains("the loader \"/no/ld.so.1\""));
    }

    #[test]
    fn what_may_start_has_no_obstacle_and_odd_files_are_left_to_the_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let header_outside = {
            let mut program = linked("/no/ld.so.1");
            program[32..40].fill(0xFF);
            program
        };
        let name_outside = {
            let mut program = linked("/no/ld.so.1");
            program[64 + 56 + 32..64 + 56 + 40].fill(0xFF);
            program
        };
        for content in [
            &b"#!/bin/sh\n"[..],
            b"#!  /bin/sh -e\r\n",
            b"#!/bin/sh",
            b"text",
            b"\x7fELF",
            b"\x7fELF\x02\x01",
            &linked("/bin/sh"),
            &linked("/no/ld.so.1")[..100],
            &header_outside,
            &name_outside,
            &vec![0xFF; 100_000],
        ] {
            assert_eq!(file(folder.path(), content, 0o755), None, "{:?}", &content[..content.len().min(20)]);
        }
        assert_eq!(obstacle(&std::env::current_exe().unwrap()), None);
    }
}
