//! The certificate authorities that the programs trust.

use std::{fs, path::Path};

use anyhow::Context as _;

/// Reads all certificates of a file, or of the `.crt` and `.pem` files of a
/// folder in the order of their names. Debian's own folder is better than the
/// machine's bundle: that one may hold authorities that only this machine trusts.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bundle = if path.is_dir() { read_folder(path) } else { fs::read_to_string(path).map_err(Into::into) }
        .with_context(|| {
            format!(
                "cannot read the certificate authorities {}; they come with the package ca-certificates, \
                 or name others with --ca-roots",
                path.display()
            )
        })?;
    let certificates = bundle.matches("-----BEGIN CERTIFICATE-----").count();
    anyhow::ensure!(certificates > 0, "there are no certificates in {}", path.display());
    anyhow::ensure!(!bundle.contains("PRIVATE KEY"), "there is a private key in {}", path.display());
    Ok(bundle.into_bytes())
}

fn read_folder(folder: &Path) -> anyhow::Result<String> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "crt" || extension == "pem") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut bundle = String::new();
    for path in paths {
        bundle.push_str(fs::read_to_string(&path).with_context(|| path.display().to_string())?.trim_end());
        bundle.push('\n');
    }
    Ok(bundle)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----";

    #[test]
    fn a_folder_is_read_in_the_order_of_names() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("b.crt", "second\n\n"), ("a.pem", CERTIFICATE), ("c.txt", "not this")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let bundle = String::from_utf8(read(folder.path()).unwrap()).unwrap();
        assert_eq!(bundle, format!("{CERTIFICATE}\nsecond\n"));
        assert_eq!(read(&folder.path().join("a.pem")).unwrap(), CERTIFICATE.as_bytes());
    }

    #[test]
    fn what_holds_no_certificate_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("no certificates"));
        let missing = read(&folder.path().join("none")).unwrap_err().to_string();
        assert!(missing.contains("--ca-roots"), "{missing}");
        let key = format!("{CERTIFICATE}\n-----BEGIN PRIVATE KEY-----\n");
        fs::write(folder.path().join("a.pem"), key).unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("private key"));
    }
}
