//! What the API server makes of a value under a schema: unknown fields go, defaults come, and what does not fit
//! is told. Unlike the API server it keeps the rest, so that one mistake does not take everything away.
//!
//! Values from a cluster fit already, unless its definition of the kind is not ours; those from files may be
//! anything.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Map, Value};

use crate::{
    definitions::QUANTITY,
    field::{FieldPath, Problem},
    quantity::is_quantity,
};

/// How much of a wrong text is repeated.
const SHOWN_CHARACTERS: usize = 60;

/// What did not fit.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) problems: Vec<Problem>,
    pub(crate) unknown: Vec<FieldPath>,
}

impl Findings {
    fn problem(&mut self, path: &FieldPath, cause: impl std::fmt::Display) {
        self.problems.push(path.problem(cause));
    }

    /// What of the value fits the schema.
    pub(crate) fn conform(
        &mut self,
        value: &Value,
        schema: &JSONSchemaProps,
        path: &FieldPath,
    ) -> Option<Value> {
        let conforming = match (value, schema.type_.as_deref()) {
            (Value::Object(fields), Some("object")) => self.object(fields, schema, path)?,
            (Value::Array(entries), Some("array")) => self.array(entries, schema, path)?,
            (Value::String(text), Some("string")) => {
                if text.is_empty() && schema.min_length.is_some_and(|least| least > 0) {
                    self.problem(path, "must not be empty");
                    return None;
                }
                value.clone()
            }
            (Value::Bool(_), Some("boolean")) => value.clone(),
            (Value::Number(_), Some("integer")) => self.integer(value, schema, path)?.into(),
            (Value::String(text), None) if schema.x_kubernetes_int_or_string == Some(true) => {
                if schema.pattern.as_deref() == Some(QUANTITY) && !is_quantity(text) {
                    let cause =
                        format!("{} is not a quantity; write it as 500m, 2, 64Mi or 1.5Gi", shown(text));
                    self.problem(path, cause);
                    return None;
                }
                value.clone()
            }
            (Value::Number(_), None) if schema.x_kubernetes_int_or_string == Some(true) => {
                self.integer(value, schema, path)?.into()
            }
            (_, wanted) => {
                let hint = if wanted == Some("string") && !value.is_object() && !value.is_array() {
                    "; put it in quotes"
                } else {
                    ""
                };
                self.problem(path, format!("must be {}, not {}{hint}", kind_wanted(wanted), kind(value)));
                return None;
            }
        };
        Some(conforming)
    }

    fn object(
        &mut self,
        fields: &Map<String, Value>,
        schema: &JSONSchemaProps,
        path: &FieldPath,
    ) -> Option<Value> {
        let mut conforming = Map::new();
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let known = schema.properties.as_ref().and_then(|properties| properties.get(name));
            let others = match &schema.additional_properties {
                Some(JSONSchemaPropsOrBool::Schema(values)) => Some(&**values),
                _ => None,
            };
            match known.or(others) {
                Some(schema) => {
                    let value = self.conform(value, schema, &path.field(name));
                    conforming.extend(value.map(|value| (name.clone(), value)));
                }
                None => self.unknown.push(path.field(name)),
            }
        }
        for (name, property) in schema.properties.iter().flatten() {
            if let (Some(default), None) = (&property.default, conforming.get(name)) {
                conforming.insert(name.clone(), default.0.clone());
            }
        }
        let mut is_complete = true;
        for name in schema.required.iter().flatten().filter(|name| !conforming.contains_key(*name)) {
            is_complete = false;
            // What was there has been told to be wrong already.
            if fields.get(name).is_none_or(Value::is_null) {
                self.problem(&path.field(name), "is missing");
            }
        }
        is_complete.then_some(Value::Object(conforming))
    }

    fn array(&mut self, entries: &[Value], schema: &JSONSchemaProps, path: &FieldPath) -> Option<Value> {
        if schema.min_items.is_some_and(|least| least > 0) && entries.is_empty() {
            self.problem(path, "must not be empty");
            return None;
        }
        let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items else { return None };
        let entries = entries.iter().enumerate();
        Some(entries.filter_map(|(place, entry)| self.conform(entry, items, &path.entry(place))).collect())
    }

    fn integer(&mut self, value: &Value, schema: &JSONSchemaProps, path: &FieldPath) -> Option<i64> {
        let Some(integer) = integer(value) else {
            self.problem(path, format!("must be a whole number, not {value}"));
            return None;
        };
        if schema.format.as_deref() == Some("int32") && i32::try_from(integer).is_err() {
            self.problem(path, format!("{integer} is out of range"));
            return None;
        }
        // The bounds of our schemas are small numbers.
        #[expect(clippy::cast_precision_loss)]
        if let Some(least) = schema.minimum
            && (integer as f64) < least
        {
            self.problem(path, format!("must be at least {least}, not {integer}"));
            return None;
        }
        Some(integer)
    }
}

/// Whole numbers may be written with a point, as in `2.0`.
fn integer(value: &Value) -> Option<i64> {
    /// From here on floating point leaves out whole numbers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation)]
    let from_float = |number: f64| (number.fract() == 0.0 && number.abs() < EXACT).then_some(number as i64);
    value.as_i64().or_else(|| value.as_f64().and_then(from_float))
}

fn kind_wanted(wanted: Option<&str>) -> &'static str {
    match wanted {
        Some("object") => "a map",
        Some("array") => "a list",
        Some("string") => "text",
        Some("boolean") => "true or false",
        Some("integer") => "a whole number",
        _ => "a whole number or text",
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Object(_) => "a map".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => format!("the text {}", shown(text)),
        Value::Null => "nothing".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Text fit for an error message: in quotes, without control characters, shortened.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{:?}", text.get(..end).unwrap_or_default().to_owned() + "…"),
        None => format!("{text:?}"),
    }
}
