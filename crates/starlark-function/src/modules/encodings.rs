//! `encoding/yaml.star`, `encoding/base64.star` and `hash.star`: texts of other forms.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use krm::Document;
use sha2::Digest as _;
use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::tuple::UnpackTuple;
use starlark::values::{Heap, Value};

use super::problem;
use crate::convert::{sorted, to_starlark};

fn read<'v>(text: &str, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
    if text.trim().is_empty() {
        return Ok(Value::new_none());
    }
    let document = Document::parse(text).map_err(|error| problem(error.to_string()))?;
    Ok(to_starlark(&document.value(document.root()), heap))
}

#[starlark_module]
fn yaml_members(builder: &mut GlobalsBuilder) {
    fn loads<'v>(source: &str, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        read(source, heap)
    }

    /// The values as documents of one text.
    fn dumps<'v>(#[starlark(args)] values: UnpackTuple<Value<'v>>) -> starlark::Result<String> {
        let mut documents = Vec::new();
        for value in values.items {
            let mut document = Document::parse("a: b\n").map_err(|error| problem(error.to_string()))?;
            let value = sorted(value).map_err(|refusal| problem(refusal.to_string()))?;
            let text = document.set(document.root(), value).and_then(|()| document.to_text());
            documents.push(text.map_err(|over| problem(over.to_string()))?);
        }
        Ok(documents.join("---\n"))
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
