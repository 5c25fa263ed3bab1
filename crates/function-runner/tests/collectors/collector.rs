//! Collectors as there are in the field: over HTTP and over gRPC, plain and encrypted.

use std::{
    io::Read as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use opentelemetry_proto::tonic::{
    collector::{
        metrics::v1::{
            ExportMetricsServiceRequest, ExportMetricsServiceResponse,
            metrics_service_server::{MetricsService, MetricsServiceServer},
        },
        trace::v1::{
            ExportTraceServiceRequest, ExportTraceServiceResponse,
            trace_service_server::{TraceService, TraceServiceServer},
        },
    },
    trace::v1::Span,
};
use prost::Message as _;
use testing::registry::certificates::{Authority, Server as Identity};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::ring::default_provider,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
        server::WebPkiClientVerifier,
    },
};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Request, Response, Status,
    codec::CompressionEncoding,
    transport::{Certificate, Identity as TonicIdentity, ServerTlsConfig},
};
use tower::Service as _;

/// What a collector was sent.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) spans: Vec<Span>,
    /// The names of all metrics.
    pub(crate) metrics: Vec<String>,
    /// The path, or the gRPC method, and the headers of each request.
    pub(crate) requests: Vec<(String, String)>,
}

/// How a collector proves who it is.
pub(crate) struct Encryption<'a> {
    pub(crate) identity: &'a Identity,
    /// Who must have signed the certificates of its clients.
    pub(crate) clients: Option<&'a Authority>,
}

/// A collector that keeps what it is sent.
#[derive(Clone)]
pub(crate) struct Collector {
    pub(crate) url: String,
    received: Arc<Mutex<Received>>,
    is_refusing: Arc<AtomicBool>,
}

impl Collector {
    pub(crate) fn received(&self) -> std::sync::MutexGuard<'_, Received> {
        self.received.lock().unwrap()
    }

    /// Whether it takes nothing, over HTTP, for the time being.
    pub(crate) fn refuse(&self, is_refusing: bool) {
        self.is_refusing.store(is_refusing, Ordering::Relaxed);
    }

    async fn listen(encryption: Option<&Encryption<'_>>) -> (Self, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if encryption.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://localhost:{}", listener.local_addr().unwrap().port());
        (Self { url, received: Arc::default(), is_refusing: Arc::default() }, listener)
    }

    /// One that speaks gRPC.
    pub(crate) async fn grpc(encryption: Option<&Encryption<'_>>) -> Self {
        let (collector, listener) = Self::listen(encryption).await;
        let mut server = tonic::transport::Server::builder();
        if let Some(Encryption { identity, clients }) = encryption {
            let tls = ServerTlsConfig::new()
                .identity(TonicIdentity::from_pem(&identity.certificate, &identity.key));
            let tls = match clients {
                Some(clients) => tls.client_ca_root(Certificate::from_pem(&clients.pem)),
                None => tls,
            };
            server = server.tls_config(tls).unwrap();
        }
        let gzip = CompressionEncoding::Gzip;
        let traces = TraceServiceServer::new(collector.clone()).accept_compressed(gzip);
        let metrics = MetricsServiceServer::new(collector.clone()).accept_compressed(gzip);
        let service = tower::service_fn(move |request: http::Request<tonic::body::Body>| {
            let (mut traces, mut metrics) = (traces.clone(), metrics.clone());
            async move {
                if request.uri().path().contains("TraceService") {
                    traces.call(request).await
                } else {
                    metrics.call(request).await
                }
            }
        });
        tokio::spawn(server.serve_with_incoming(service, TcpListenerStream::new(listener)));
        collector
    }

    /// One that speaks HTTP.
    pub(crate) async fn http(encryption: Option<&Encryption<'_>>) -> Self {
        let (collector, listener) = Self::listen(encryption).await;
        let acceptor = encryption.map(acceptor);
        let served = collector.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (served, acceptor) = (served.clone(), acceptor.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => served.answer(stream).await,
                        // Who does not trust us breaks off.
                        Some(acceptor) => match acceptor.accept(stream).await {
                            Ok(stream) => served.answer(stream).await,
                            Err(_) => None,
                        },
                    }
                });
            }
        });
        collector
    }

    /// Answers the requests of one connection, until it ends.
    async fn answer(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Option<()> {
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.ok()?);
            }
            let head = String::from_utf8(head).unwrap().to_lowercase();
            let length = head.split_once("content-length: ").unwrap().1.split("\r\n").next().unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            stream.read_exact(&mut body).await.ok()?;
            if self.is_refusing.load(Ordering::Relaxed) {
                stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await.ok()?;
                continue;
            }
            if head.contains("content-encoding: gzip") {
                let mut plain = Vec::new();
                flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut plain).unwrap();
                body = plain;
            }
            assert!(
                head.starts_with("post ") && head.contains("content-type: application/x-protobuf"),
                "{head}"
            );
            let path = head.split(' ').nth(1).unwrap().to_owned();
            if path.contains("metrics") {
                self.keep_metrics(ExportMetricsServiceRequest::decode(&body[..]).unwrap());
            } else {
                self.keep_spans(ExportTraceServiceRequest::decode(&body[..]).unwrap());
            }
            self.received().requests.push((path, head));
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.ok()?;
        }
    }

    fn keep_spans(&self, request: ExportTraceServiceRequest) {
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        self.received().spans.extend(scopes.flat_map(|scope| scope.spans));
    }

    fn keep_metrics(&self, request: ExportMetricsServiceRequest) {
        let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
        self.received().metrics.extend(scopes.flat_map(|scope| scope.metrics).map(|metric| metric.name));
    }

    fn keep_request<T>(&self, method: &str, request: &Request<T>) {
        self.received().requests.push((method.to_owned(), format!("{:?}", request.metadata())));
    }
}

fn acceptor(Encryption { identity, clients }: &Encryption<'_>) -> TlsAcceptor {
    let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
    let provider = Arc::new(default_provider());
    let config =
        ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let config = match clients {
        None => config.with_no_client_auth(),
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(clients.pem.as_bytes()).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            config.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    TlsAcceptor::from(Arc::new(config.with_single_cert(chain, key).unwrap()))
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.keep_request("traces", &request);
        self.keep_spans(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Collector {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.keep_request("metrics", &request);
        self.keep_metrics(request.into_inner());
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}
