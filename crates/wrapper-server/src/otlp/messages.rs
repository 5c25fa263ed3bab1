//! The messages of OTLP, as far as they are sent from here.

use prost::Message;

/// The kind of a span that answers a call.
pub(super) const SERVER: i32 = 2;
/// The status of a span that failed.
pub(super) const ERROR: i32 = 2;
/// Counts since the start, not since the last time they were sent.
pub(crate) const CUMULATIVE: i32 = 2;

/// `ExportTraceServiceRequest` or `ExportMetricsServiceRequest`: they differ in their innermost items only, which
/// are encoded already.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Envelope {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<OfResource>,
}

#[derive(Clone, PartialEq, Message)]
struct OfResource {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<OfScope>,
}

#[derive(Clone, PartialEq, Message)]
struct OfScope {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    items: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

/// A text or a number.
#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
    #[prost(int64, optional, tag = "3")]
    int: Option<i64>,
}

/// An attribute that is a text.
pub(crate) fn text(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { text: Some(value.to_owned()), int: None };
    KeyValue { key: key.to_owned(), value: Some(value) }
}

/// An attribute that is a number.
pub(crate) fn int(key: &str, value: i64) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { text: None, int: Some(value) }) }
}

#[allow(clippy::struct_field_names, reason = "the names are those of the protocol")]
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    pub(super) trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(int32, tag = "6")]
    pub(super) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub(super) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<SpanStatus>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SpanStatus {
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(int32, tag = "3")]
    pub(super) code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Metric {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) description: String,
    #[prost(string, tag = "3")]
    pub(crate) unit: String,
    #[prost(message, optional, tag = "9")]
    pub(crate) histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Histogram {
    #[prost(message, repeated, tag = "1")]
    pub(crate) data_points: Vec<HistogramPoint>,
    #[prost(int32, tag = "2")]
    pub(crate) aggregation_temporality: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HistogramPoint {
    #[prost(fixed64, tag = "2")]
    pub(crate) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    pub(crate) time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    pub(crate) count: u64,
    #[prost(double, optional, tag = "5")]
    pub(crate) sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")]
    pub(crate) bucket_counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    pub(crate) explicit_bounds: Vec<f64>,
    #[prost(message, repeated, tag = "9")]
    pub(crate) attributes: Vec<KeyValue>,
}

impl Envelope {
    /// The request that sends these spans or metrics of ours.
    pub(super) fn of(items: Vec<Vec<u8>>) -> Vec<u8> {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let given = variable("OTEL_RESOURCE_ATTRIBUTES");
        let mut attributes: Vec<_> = given
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| text(key.trim(), value.trim()))
            .collect();
        let service = variable("OTEL_SERVICE_NAME");
        if !service.is_empty() {
            attributes.retain(|attribute| attribute.key != "service.name");
            attributes.push(text("service.name", &service));
        } else if !attributes.iter().any(|attribute| attribute.key == "service.name") {
            attributes.push(text("service.name", env!("CARGO_PKG_NAME")));
        }
        let (name, version) = (env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let scopes = vec![OfScope { scope: Some(Scope { name, version }), items }];
        let resource = Some(Resource { attributes });
        Self { resources: vec![OfResource { resource, scopes }] }.encode_to_vec()
    }
}
