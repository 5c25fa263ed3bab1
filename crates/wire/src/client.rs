//! A client of the evaluator service, with the limits the service needs.

use std::time::Duration;

use bytes::Bytes;
use tonic::{
    Request, Status,
    transport::{Channel, Endpoint},
};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{
    TraceContext,
    proto::{
        EvaluateFunctionRequest, EvaluateFunctionResponse, function_evaluator_client::FunctionEvaluatorClient,
    },
};

/// Room for a status message at its largest; the library's default of 16 KiB
/// would turn a long error into an unreadable one.
const HEADER_LIST: u32 = 128 * 1024;
/// Large answers arrive in few pieces.
const STREAM_WINDOW: u32 = 2 * 1024 * 1024;

/// How to reach `address`, given as `host:port`, as `:port` of this machine or
/// as a URL.
pub fn endpoint(address: &str) -> Result<Endpoint, tonic::transport::Error> {
    let url = if address.contains("://") {
        address.to_owned()
    } else {
        let host = if address.starts_with(':') { "localhost" } else { "" };
        format!("http://{host}{address}")
    };
    Ok(Endpoint::from_shared(url)?
        .http2_max_header_list_size(HEADER_LIST)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(4 * STREAM_WINDOW)
        .tcp_nodelay(true))
}

/// Calls one evaluator service over one connection.
#[derive(Debug, Clone)]
pub struct Client {
    inner: FunctionEvaluatorClient<Channel>,
    health: HealthClient<Channel>,
}

/// What may accompany a call.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// How long the caller waits.
    pub timeout: Option<Duration>,
    /// The trace the call belongs to.
    pub trace: Option<TraceContext>,
}

impl Client {
    /// A client over `channel` that sends and takes at most `limit` bytes.
    pub fn new(channel: Channel, limit: usize) -> Self {
        let health = HealthClient::new(channel.clone());
        let inner = FunctionEvaluatorClient::new(channel)
            .max_encoding_message_size(limit)
            .max_decoding_message_size(limit);
        Self { inner, health }
    }

    /// Whether the service says that it wants calls.
    pub async fn is_serving(&self) -> Result<bool, Status> {
        let question = HealthCheckRequest { service: String::new() };
        let answer = self.health.clone().check(question).await?;
        Ok(answer.into_inner().status() == ServingStatus::Serving)
    }

    /// Runs the function `image` over `resource_list`.
    pub async fn evaluate(
        &self,
        image: &str,
        resource_list: Bytes,
        options: CallOptions,
    ) -> Result<EvaluateFunctionResponse, Status> {
        let mut request = Request::new(EvaluateFunctionRequest {
            resource_list,
            image: image.to_owned(),
            tag: String::new(),
        });
        if let Some(timeout) = options.timeout {
            request.set_timeout(timeout);
        }
        if let Some(trace) = options.trace {
            for (name, value) in trace.headers() {
                if let Ok(value) = value.parse() {
                    request.metadata_mut().insert(name, value);
                }
            }
        }
        self.inner.clone().evaluate_function(request).await.map(tonic::Response::into_inner)
    }
}
