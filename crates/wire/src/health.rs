//! `grpc.health.v1.Health`: the true state of the service. It has one state,
//! so every name is answered with it, as the original does.

use std::pin::Pin;

use tokio::sync::watch;
use tokio_stream::{Stream, StreamExt, wrappers::WatchStream};
use tonic::{Request, Response, Status};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse,
    health_check_response::ServingStatus,
    health_server::{self, HealthServer},
};

/// Whether the service wants calls; shared by all that tell or ask.
#[derive(Debug, Clone)]
pub struct Health {
    state: watch::Sender<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Serving,
    NotServing,
    /// No longer serving, and watchers are sent home: an open stream would
    /// keep the server from ending.
    Closed,
}

impl Health {
    /// A service that does not want calls yet.
    pub fn new() -> Self {
        Self { state: watch::Sender::new(State::NotServing) }
    }

    /// Tells whether the service wants calls from now on.
    pub fn set_serving(&self, serving: bool) {
        self.state.send_replace(if serving { State::Serving } else { State::NotServing });
    }

    /// Ends every open watch.
    pub fn close(&self) {
        self.state.send_replace(State::Closed);
    }

    /// Whether the service wants calls.
    pub fn is_serving(&self) -> bool {
        *self.state.borrow() == State::Serving
    }

    /// The gRPC service.
    pub fn service(&self) -> HealthServer<Self> {
        HealthServer::new(self.clone())
    }
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

fn response(serving: bool) -> HealthCheckResponse {
    let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(response(self.is_serving())))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let states = WatchStream::new(self.state.subscribe()).take_while(|state| *state != State::Closed);
        Ok(Response::new(Box::pin(states.map(|state| Ok(response(state == State::Serving))))))
    }
}
