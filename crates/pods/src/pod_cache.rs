//! The file of `--pod-cache-config`: functions that are to have a pod before anybody calls, and what
//! their pods are to be.
//!
//! Older releases write a map, newer ones a list:
//!
//! ```yaml
//! example.com/set-labels:v0.1.5: 30m
//! ```
//! ```yaml
//! - name: example.com/set-labels:v0.1.5
//!   timeToLive: 30m
//!   maxWaitlistLength: 2
//!   maxParallelPodsPerFunction: 2
//!   resources: {requests: {cpu: 100m}, limits: {memory: 1Gi}}
//! ```
//!
//! The file must parse as a whole. A value that cannot be used is left to the flags, with a warning.

mod tree;

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use flags::GoDuration;
use k8s_openapi::{api::core::v1::ResourceRequirements, apimachinery::pkg::api::resource::Quantity};
use registry::Reference;

use crate::settings::FunctionSettings;
use tree::{Node, Value};

/// Larger files are refused: no sensible one comes near.
const LARGEST: usize = 4 << 20;
/// Longer texts are cut in warnings.
const LONGEST_SHOWN: usize = 60;

/// One function of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its image, as written.
    pub image: String,
    /// What the file says about its pods.
    pub settings: FunctionSettings,
}

/// Reads the file: its functions, and what an operator should know about them.
pub fn parse(text: &[u8]) -> Result<(Vec<Entry>, Vec<String>), String> {
    if text.len() > LARGEST {
        return Err(format!("it has {} bytes, more than {LARGEST}", text.len()));
    }
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let mut reader = Reader::default();
    match tree::parse(text)? {
        Value::Nothing => {}
        Value::Map(entries) => entries.into_iter().for_each(|(image, node)| reader.mapped(image, &node)),
        Value::List(entries) => entries.into_iter().for_each(|node| reader.listed(node)),
        Value::Scalar(_) => {
            return Err("it is neither a list of functions nor a map of images to times".to_owned());
        }
    }
    Ok((reader.entries, reader.warnings))
}

#[derive(Debug, Default)]
struct Reader {
    entries: Vec<Entry>,
    images: HashSet<String>,
    warnings: Vec<String>,
}

/// Where in the file something is.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    entry: &'a str,
    field: &'a str,
}

impl Reader {
    /// An entry of the map: its image and how long its pods are kept.
    fn mapped(&mut self, image: String, node: &Node) {
        if self.is_usable(&image, node.line) {
            let time_to_live = self.duration(Place { entry: &image, field: "the time to live" }, node);
            self.entries
                .push(Entry { image, settings: FunctionSettings { time_to_live, ..Default::default() } });
        }
    }

    /// An entry of the list.
    fn listed(&mut self, node: Node) {
        let line = node.line;
        let Value::Map(fields) = node.value else {
            self.warn(
                line,
                "an entry",
                &format!("it is {}, not a map with a name, and left out", node.value.kind()),
            );
            return;
        };
        let name = fields.iter().find_map(|(field, node)| match &node.value {
            Value::Scalar(image) if field == "name" => Some(image.clone()),
            _ => None,
        });
        let Some(image) = name else {
            self.warn(line, "an entry", "it has no name and is left out");
            return;
        };
        if !self.is_usable(&image, line) {
            return;
        }
        let mut settings = FunctionSettings::default();
        for (field, node) in &fields {
            let place = Place { entry: &image, field };
            match field.as_str() {
                "name" => {}
                "timeToLive" => settings.time_to_live = self.duration(place, node),
                "maxWaitlistLength" => settings.max_queue = self.count(place, node),
                "maxParallelPodsPerFunction" => settings.max_pods = self.count(place, node),
                "resources" => settings.overrides.container.resources = self.resources(place, node),
                _ => self.unknown(place, node),
            }
        }
        self.entries.push(Entry { image, settings });
    }

    fn is_usable(&mut self, image: &str, line: u64) -> bool {
        if let Err(error) = Reference::parse(image) {
            self.warn(line, "an entry is left out", &error.to_string());
            return false;
        }
        let is_new = self.images.insert(image.to_owned());
        if !is_new {
            self.warn(line, image, "it has an entry already, and this one is left out");
        }
        is_new
    }

    fn duration(&mut self, place: Place<'_>, node: &Node) -> Option<Duration> {
        let text = self.scalar(place, node)?;
        match text.parse::<GoDuration>() {
            Ok(duration) if duration.positive().is_some() => duration.positive(),
            Ok(_) => self.left_to_flags(place, node, text, "not above zero"),
            Err(error) => self.left_to_flags(place, node, text, &error.to_string()),
        }
    }

    fn count(&mut self, place: Place<'_>, node: &Node) -> Option<usize> {
        let text = self.scalar(place, node)?;
        match text.parse::<i64>() {
            Ok(count) if count > 0 => usize::try_from(count).ok(),
            Ok(_) => self.left_to_flags(place, node, text, "not above zero"),
            Err(_) => self.left_to_flags(place, node, text, "not a whole number"),
        }
    }

    fn resources(&mut self, place: Place<'_>, node: &Node) -> Option<ResourceRequirements> {
        let mut resources = ResourceRequirements::default();
        for (field, node) in self.map(place, node)? {
            match field.as_str() {
                "requests" => resources.requests = self.quantities(Place { field, ..place }, node),
                "limits" => resources.limits = self.quantities(Place { field, ..place }, node),
                _ => self.unknown(Place { field, ..place }, node),
            }
        }
        Some(resources).filter(|resources| *resources != ResourceRequirements::default())
    }

    fn quantities(&mut self, place: Place<'_>, node: &Node) -> Option<BTreeMap<String, Quantity>> {
        let mut quantities = BTreeMap::new();
        for (resource, node) in self.map(place, node)? {
            let field = format!("{} of {}", place.field, shown(resource));
            let place = Place { field: &field, ..place };
            let Some(text) = self.scalar(place, node) else { continue };
            if is_quantity(text) {
                quantities.insert(resource.clone(), Quantity(text.to_owned()));
            } else {
                let what =
                    format!("{} {} is not a quantity such as 100m or 64Mi, and left out", field, shown(text));
                self.warn(node.line, place.entry, &what);
            }
        }
        Some(quantities).filter(|quantities| !quantities.is_empty())
    }

    /// The text of a value, if there is one.
    fn scalar<'a>(&mut self, place: Place<'_>, node: &'a Node) -> Option<&'a str> {
        match &node.value {
            Value::Scalar(text) => Some(text),
            Value::Nothing => None,
            value => {
                let what = format!("{} is {}, not a value, and left to the flags", place.field, value.kind());
                self.warn(node.line, place.entry, &what);
                None
            }
        }
    }

    fn map<'a>(&mut self, place: Place<'_>, node: &'a Node) -> Option<&'a [(String, Node)]> {
        match &node.value {
            Value::Map(fields) => Some(fields),
            Value::Nothing => None,
            value => {
                let what = format!("{} is {}, not a map, and passed over", place.field, value.kind());
                self.warn(node.line, place.entry, &what);
                None
            }
        }
    }

    fn left_to_flags<T>(&mut self, place: Place<'_>, node: &Node, text: &str, cause: &str) -> Option<T> {
        let what = format!("{} {} is left to the flags: {cause}", place.field, shown(text));
        self.warn(node.line, place.entry, &what);
        None
    }

    fn unknown(&mut self, place: Place<'_>, node: &Node) {
        self.warn(node.line, place.entry, &format!("{} is not known and passed over", shown(place.field)));
    }

    fn warn(&mut self, line: u64, entry: &str, what: &str) {
        self.warnings.push(format!("line {line}, {entry}: {what}"));
    }
}

/// Whether Kubernetes reads a text as an amount of something, which is not below zero.
fn is_quantity(text: &str) -> bool {
    const UNITS: [&str; 16] =
        ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, unit) = unsigned.split_at(end);
    let has_digits = number.bytes().any(|byte| byte.is_ascii_digit());
    let is_exponent = |unit: &str| {
        let digits = unit.strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
        digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    has_digits
        && number.bytes().filter(|byte| *byte == b'.').count() <= 1
        && (UNITS.contains(&unit) || is_exponent(unit))
}

/// In quotes, and not too long.
fn shown(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{:?}", format!("{}…", text.get(..end).unwrap_or_default())),
        None => format!("{text:?}"),
    }
}
