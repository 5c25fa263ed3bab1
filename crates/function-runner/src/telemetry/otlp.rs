//! Exporters that send to a collector.

use std::{
    error::Error,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig, WithTonicConfig,
    tonic_types::transport::{Certificate, ClientTlsConfig, Identity},
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    metrics::{Temporality, data::ResourceMetrics, exporter::PushMetricExporter},
    trace::{SpanData, SpanExporter as ExportSpans},
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tracing::{info, warn};

use crate::settings::{Collector, NamedFile, Protocol, TlsFiles};

/// What to look at when an exporter cannot be made.
const CHECK: &str = "check OTEL_EXPORTER_OTLP_*";

/// Sends spans to a collector.
pub(super) fn spans(collector: &Collector) -> anyhow::Result<Telling<SpanExporter>> {
    let builder = SpanExporter::builder();
    let cause = Cause::default();
    let exporter = match collector.protocol {
        Protocol::Grpc => over_grpc(builder.with_tonic(), collector)?.build(),
        Protocol::HttpProtobuf => over_http(builder.with_http(), collector, &cause)?.build(),
    };
    let exporter = exporter.with_context(|| format!("cannot send traces by OTLP; {CHECK}"))?;
    Ok(Telling { exporter, what: "traces", cause, is_away: AtomicBool::default() })
}

/// Sends metrics to a collector.
pub(super) fn metrics(collector: &Collector) -> anyhow::Result<Telling<MetricExporter>> {
    let builder = MetricExporter::builder();
    let cause = Cause::default();
    let exporter = match collector.protocol {
        Protocol::Grpc => over_grpc(builder.with_tonic(), collector)?.build(),
        Protocol::HttpProtobuf => over_http(builder.with_http(), collector, &cause)?.build(),
    };
    let exporter = exporter.with_context(|| format!("cannot send metrics by OTLP; {CHECK}"))?;
    Ok(Telling { exporter, what: "metrics", cause, is_away: AtomicBool::default() })
}

fn over_grpc<B: WithTonicConfig + WithExportConfig>(builder: B, collector: &Collector) -> anyhow::Result<B> {
    let builder = builder.with_timeout(collector.timeout);
    let Some(files) = &collector.tls else { return Ok(builder) };
    let trust = match &files.authorities {
        Some(authorities) => {
            let pem = read(authorities)?;
            // The library would say nothing of a file without certificates.
            certificates(authorities, &pem)?;
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem))
        }
        None => ClientTlsConfig::new().with_native_roots(),
    };
    // Read once for the library, and once to say what is wrong with it in our own words.
    identity(files)?;
    let tls = match &files.identity {
        Some((certificate, key)) => trust.identity(Identity::from_pem(read(certificate)?, read(key)?)),
        None => trust,
    };
    Ok(builder.with_tls_config(tls))
}

fn over_http<B: WithHttpConfig + WithExportConfig>(
    builder: B,
    collector: &Collector,
    cause: &Cause,
) -> anyhow::Result<B> {
    let (timeout, tls) = (collector.timeout, tls(collector.tls.as_ref())?);
    // The client has a runtime of its own, and must not be made within another.
    let client = std::thread::spawn(move || {
        reqwest::blocking::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .timeout(timeout)
            .build()
    });
    let client = client.join().map_err(|_| anyhow::anyhow!("the HTTP client broke down"))?;
    let client = client.context("cannot make an HTTP client")?;
    let client = Client { client, cause: cause.clone() };
    Ok(builder
        .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
        .with_timeout(timeout)
        .with_http_client(client))
}

/// Whom we trust and who we are; nobody where nothing is encrypted.
fn tls(files: Option<&TlsFiles>) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    match files {
        None => {}
        Some(TlsFiles { authorities: Some(authorities), .. }) => {
            for certificate in certificates(authorities, &read(authorities)?)? {
                roots.add(certificate).with_context(|| wrong(authorities))?;
            }
        }
        Some(_) => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    match files.map(identity).transpose()?.flatten() {
        None => Ok(config.with_no_client_auth()),
        Some((chain, key)) => {
            config.with_client_auth_cert(chain, key).context("our certificate and its key do not fit")
        }
    }
}

/// The certificate we show, and its key.
fn identity(
    files: &TlsFiles,
) -> anyhow::Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>> {
    let Some((certificate, key)) = &files.identity else { return Ok(None) };
    let chain = certificates(certificate, &read(certificate)?)?;
    let key = PrivateKeyDer::from_pem_slice(&read(key)?).with_context(|| wrong(key))?;
    Ok(Some((chain, key)))
}

fn read(file: &NamedFile) -> anyhow::Result<Vec<u8>> {
    let NamedFile { variable, path } = file;
    std::fs::read(path).with_context(|| format!("cannot read {}, which {variable} names", path.display()))
}

fn certificates(file: &NamedFile, pem: &[u8]) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.with_context(|| wrong(file))?;
    anyhow::ensure!(!found.is_empty(), "{}: it has no certificate in it", wrong(file));
    Ok(found)
}

fn wrong(NamedFile { variable, path }: &NamedFile) -> String {
    format!("{}, which {variable} names, is not what it should be", path.display())
}

/// Why a request was not answered, which the library keeps to itself.
type Cause = Arc<Mutex<Option<String>>>;

/// An HTTP client that notes why a request was not answered.
#[derive(Debug)]
struct Client {
    client: reqwest::blocking::Client,
    cause: Cause,
}

#[tonic::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.client.send_bytes(request).await;
        let cause = answer.as_ref().err().map(|error| {
            let mut innermost: &dyn Error = error.as_ref();
            while let Some(source) = innermost.source() {
                innermost = source;
            }
            innermost.to_string()
        });
        *self.cause.lock().unwrap_or_else(PoisonError::into_inner) = cause;
        answer
    }
}

/// An exporter that says once that its collector is away, and once that it is back.
#[derive(Debug)]
pub(super) struct Telling<E> {
    exporter: E,
    what: &'static str,
    cause: Cause,
    is_away: AtomicBool,
}

impl<E> Telling<E> {
    fn tell(&self, outcome: OTelSdkResult) -> OTelSdkResult {
        let was_away = self.is_away.swap(outcome.is_err(), Ordering::Relaxed);
        match &outcome {
            Err(error) if !was_away => {
                let cause = self.cause.lock().unwrap_or_else(PoisonError::into_inner).take();
                warn!(%error, cause, "{} do not reach the collector; {CHECK}. This is said once until they do", self.what);
            }
            Ok(()) if was_away => info!("{} reach the collector again", self.what),
            _ => {}
        }
        outcome
    }
}

impl<E: ExportSpans> ExportSpans for Telling<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.tell(self.exporter.export(batch).await)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: PushMetricExporter> PushMetricExporter for Telling<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.tell(self.exporter.export(metrics).await)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}
