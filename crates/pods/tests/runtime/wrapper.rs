//! The wrapper server of a pod that can be killed.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{net::TcpStream, sync::Notify, task::JoinSet};
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Response, Status};
use wire::{
    FinishedRpc, Front, Health, Observer, ServeOptions,
    proto::{
        EvaluateFunctionRequest, EvaluateFunctionResponse,
        function_evaluator_server::{FunctionEvaluator, FunctionEvaluatorServer},
    },
};

const PORT: u16 = 9446;

/// A wrapper server at an address of its own.
pub(crate) struct Wrapper {
    pub(crate) address: IpAddr,
    runtime: Option<tokio::runtime::Runtime>,
    function: Function,
}

/// A function that runs until it is told to end.
#[derive(Clone, Default)]
struct Function {
    begun: Arc<AtomicUsize>,
    end: Arc<Notify>,
}

#[tonic::async_trait]
impl FunctionEvaluator for Function {
    async fn evaluate_function(
        &self,
        request: Request<EvaluateFunctionRequest>,
    ) -> Result<Response<EvaluateFunctionResponse>, Status> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.end.notified().await;
        let resource_list = request.into_inner().resource_list;
        Ok(Response::new(EvaluateFunctionResponse { resource_list, ..EvaluateFunctionResponse::default() }))
    }
}

struct Unobserved;

impl Observer for Unobserved {
    fn finished(&self, _: &FinishedRpc) {}
}

/// The port is the same for all pods, so each has an address of its own, in each run of the tests.
fn own_address(last: u8) -> IpAddr {
    let [.., high, low] = std::process::id().to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, high | 0x80, low, last))
}

impl Wrapper {
    pub(crate) fn start(last: u8) -> Self {
        let address = own_address(last);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let function = Function::default();
        let (health, service) = (Health::new(), FunctionEvaluatorServer::new(function.clone()));
        health.set_serving(true);
        let front = Front::new(6 * 1024 * 1024, wire::Memory::unlimited(), Arc::new(Unobserved))
            .mount(service, &["EvaluateFunction"])
            .mount(health.service(), &["Check", "Watch"]);
        let listener = {
            let _inside = runtime.enter();
            wire::listen(Some(address), PORT).unwrap()
        };
        runtime.spawn(wire::serve(listener, front, ServeOptions::default(), std::future::pending()));
        Self { address, runtime: Some(runtime), function }
    }

    /// How many calls have begun.
    pub(crate) fn begun(&self) -> usize {
        self.function.begun.load(Ordering::SeqCst)
    }

    /// Lets one call end.
    pub(crate) fn finish_one(&self) {
        self.function.end.notify_one();
    }

    /// Nothing answers any more, and all connections break.
    pub(crate) fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A way to a wrapper server that can be cut, and taken again at once.
pub(crate) struct Way {
    pub(crate) address: IpAddr,
    connections: Arc<Mutex<JoinSet<()>>>,
    _listens: AbortOnDropHandle<()>,
}

impl Way {
    pub(crate) fn to(wrapper: &Wrapper, last: u8) -> Self {
        let (address, behind) = (own_address(last), wrapper.address);
        let listener = wire::listen(Some(address), PORT).unwrap();
        let connections = Arc::<Mutex<JoinSet<()>>>::default();
        let open = connections.clone();
        let listens = tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                open.lock().unwrap().spawn(async move {
                    let mut to = TcpStream::connect((behind, PORT)).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
                });
            }
        });
        Self { address, connections, _listens: AbortOnDropHandle::new(listens) }
    }

    /// Breaks all connections.
    pub(crate) fn cut(&self) {
        self.connections.lock().unwrap().abort_all();
    }
}

impl Drop for Wrapper {
    fn drop(&mut self) {
        self.kill();
    }
}
