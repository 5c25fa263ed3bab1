//! `encoding/yaml.star`, `encoding/base64.star` and `hash.star`: texts of other forms.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use krm::{Document, Kind, NodeId, Style, Tag, Value as Yaml};
use sha2::Digest as _;
use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::{Heap, Value};

use super::problem;
use crate::convert::{sorted, to_starlark};

fn read<'v>(text: &str, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
    if text.trim().is_empty() {
        return Ok(Value::new_none());
    }
    let document = Document::parse(text).map_err(|error| problem(error.to_string()))?;
    Ok(to_starlark(&value(&document, document.root()), heap))
}

/// The words of YAML 1.1 for truth, and whether they say yes.
fn truth(word: &str) -> Option<bool> {
    match word {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// A value as the YAML library of the catalog's function reads it: by version 1.1 of YAML.
fn value(document: &Document<'_>, node: NodeId) -> Yaml {
    match document.kind(node) {
        Kind::Scalar => {
            let plain = document.style(node) == Style::Plain && document.tag(node) == Some(Tag::String);
            let word = document.text(node).filter(|_| plain).and_then(|text| truth(&text));
            word.map_or_else(|| document.value(node), Yaml::from)
        }
        Kind::Sequence => {
            Yaml::Sequence(document.entries(node).map(|entry| value(document, entry)).collect())
        }
        Kind::Mapping => Yaml::Mapping(
            document.fields(node).map(|(key, field)| (key.into_owned(), value(document, field))).collect(),
        ),
    }
}

#[starlark_module]
fn yaml_members(builder: &mut GlobalsBuilder) {
    fn loads<'v>(source: &str, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        read(source, heap)
    }

    fn dumps<'v>(source: Value<'v>) -> starlark::Result<String> {
        // Lists are as deep as those that are there.
        let mut document = Document::parse("like:\n- this\n").map_err(|error| problem(error.to_string()))?;
        let value = sorted(source).map_err(|refusal| problem(refusal.to_string()))?;
        let node = document.set_field(document.root(), "value", value);
        let node = node.map_err(|error| problem(error.to_string()))?;
        Ok(document.text_of(node))
    }
}

pub(super) fn yaml(builder: &mut GlobalsBuilder) {
    builder.namespace("yaml", yaml_members);
}

fn engine(encoding: &str) -> starlark::Result<&'static GeneralPurpose> {
    match encoding {
        "" | "standard" => Ok(&STANDARD),
        "standard_raw" => Ok(&STANDARD_NO_PAD),
        "url" => Ok(&URL_SAFE),
        "url_raw" => Ok(&URL_SAFE_NO_PAD),
        other => Err(problem(format!("unsupported encoding format: {other}"))),
    }
}

#[starlark_module]
fn base64_members(builder: &mut GlobalsBuilder) {
    fn encode(data: &str, #[starlark(default = "")] encoding: &str) -> starlark::Result<String> {
        Ok(engine(encoding)?.encode(data))
    }

    fn decode(data: &str, #[starlark(default = "")] encoding: &str) -> starlark::Result<String> {
        let bytes = engine(encoding)?.decode(data).map_err(|error| problem(error.to_string()))?;
        String::from_utf8(bytes).map_err(|_| problem("the decoded data is not a text in UTF-8"))
    }
}

pub(super) fn base64(builder: &mut GlobalsBuilder) {
    builder.namespace("base64", base64_members);
}

/// The digits of a hash.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[starlark_module]
fn hash_members(builder: &mut GlobalsBuilder) {
    fn md5(#[starlark(require = pos)] text: &str) -> starlark::Result<String> {
        Ok(hexadecimal(&md5::Md5::digest(text)))
    }

    fn sha1(#[starlark(require = pos)] text: &str) -> starlark::Result<String> {
        Ok(hexadecimal(&sha1::Sha1::digest(text)))
    }

    fn sha256(#[starlark(require = pos)] text: &str) -> starlark::Result<String> {
        Ok(hexadecimal(&sha2::Sha256::digest(text)))
    }
}

pub(super) fn hash(builder: &mut GlobalsBuilder) {
    builder.namespace("hash", hash_members);
}
