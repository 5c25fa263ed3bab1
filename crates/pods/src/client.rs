//! The client of the Kubernetes API, with every request counted and none waited for without end.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
    config::{KubeConfigOptions, Kubeconfig},
};
use tower::{BoxError, Layer, Service};

/// How long a connection to the API server may take to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take to begin. Those that somebody waits for are given up sooner; this is for
/// lists and watches over a connection that is dead and does not say so.
const ANSWER: Duration = Duration::from_secs(30);
/// The namespace of a runner outside a cluster.
const NAMESPACE_OUTSIDE: &str = "porch-system";
/// The file that tells a container its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// How the cluster is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// By a kubeconfig file.
    Kubeconfig(PathBuf),
    /// By the account of the container we run in.
    InCluster,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach the cluster by {}: {cause}", place(access))]
pub struct AccessError {
    access: Access,
    cause: String,
}

/// A request to the API server, as it is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiRequest {
    /// The verb, as roles name it.
    pub verb: &'static str,
    /// The resource, as roles name it.
    pub resource: &'static str,
    /// The HTTP status; 0 when there was no answer.
    pub status: u16,
}

type Count = Arc<dyn Fn(&ApiRequest) + Send + Sync>;

impl Access {
    /// A client; `count` is told of every request.
    pub async fn client(&self, count: Count) -> Result<Client, AccessError> {
        let failed = |cause: String| AccessError { access: self.clone(), cause };
        let mut config = self.config().await.map_err(failed)?;
        config.connect_timeout = Some(CONNECT);
        let builder = ClientBuilder::try_from(config).map_err(|error| failed(error.to_string()))?;
        Ok(builder.with_layer(&Counting(count)).build())
    }

    async fn config(&self) -> Result<Config, String> {
        match self {
            Self::Kubeconfig(path) => {
                let file = Kubeconfig::read_from(path).map_err(|error| error.to_string())?;
                Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                    .await
                    .map_err(|error| error.to_string())
            }
            Self::InCluster => Config::incluster().map_err(|error| error.to_string()),
        }
    }
}

/// The namespace we run in.
pub fn own_namespace() -> String {
    read_namespace(Path::new(NAMESPACE_FILE)).unwrap_or_else(|| NAMESPACE_OUTSIDE.to_owned())
}

fn read_namespace(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

fn place(access: &Access) -> String {
    match access {
        Access::Kubeconfig(path) => format!("kubeconfig {}", path.display()),
        Access::InCluster => "the in-cluster account".to_owned(),
    }
}

struct Counting(Count);

impl<S> Layer<S> for Counting {
    type Service = CountingService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CountingService { inner, count: self.0.clone() }
    }
}

struct CountingService<S> {
    inner: S,
    count: Count,
}

impl<S, B> Service<Request<Body>> for CountingService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (verb, resource) = describe(request.method(), request.uri().path(), request.uri().query());
        let (count, answer) = (self.count.clone(), self.inner.call(request));
        Box::pin(async move {
            let answer = match tokio::time::timeout(ANSWER, answer).await {
                Ok(answer) => answer.map_err(Into::into),
                Err(_) => Err("it does not answer".into()),
            };
            let status = answer.as_ref().map_or(0, |response| response.status().as_u16());
            count(&ApiRequest { verb, resource, status });
            answer
        })
    }
}

/// What a request asks for, in the words of roles. Bounded: these are labels of a metric.
fn describe(method: &Method, path: &str, query: Option<&str>) -> (&'static str, &'static str) {
    const RESOURCES: [&str; 7] =
        ["pods", "services", "secrets", "configmaps", "podtemplates", "servicetemplates", "functionconfigs"];
    // /api/v1/namespaces/NAMESPACE/RESOURCE/NAME, or /apis/GROUP/VERSION/namespaces/…
    let mut parts = path.split('/').skip_while(|part| *part != "namespaces").skip(2);
    let resource = parts.next().and_then(|part| RESOURCES.into_iter().find(|known| *known == part));
    let has_name = parts.next().is_some_and(|name| !name.is_empty());
    let is_watch = query.unwrap_or_default().split('&').any(|pair| pair == "watch=true");
    let verb = match (method.as_str(), has_name) {
        ("GET", false) if is_watch => "watch",
        ("GET", false) => "list",
        ("GET", true) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", _) => "delete",
        _ => "other",
    };
    (verb, resource.unwrap_or("other"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_in_the_words_of_roles() {
        let pods = "/api/v1/namespaces/porch-fn-system/pods";
        assert_eq!(describe(&Method::GET, pods, Some("labelSelector=x&watch=true")), ("watch", "pods"));
        assert_eq!(describe(&Method::GET, pods, None), ("list", "pods"));
        assert_eq!(describe(&Method::GET, &format!("{pods}/a"), None), ("get", "pods"));
        assert_eq!(describe(&Method::POST, pods, None), ("create", "pods"));
        assert_eq!(describe(&Method::DELETE, &format!("{pods}/a"), None), ("delete", "pods"));
        let custom = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/n/servicetemplates/base";
        assert_eq!(describe(&Method::PATCH, custom, None), ("patch", "servicetemplates"));
        assert_eq!(describe(&Method::GET, "/version", None), ("list", "other"));
        assert_eq!(describe(&Method::GET, "/api/v1/namespaces/x/anything/y", None), ("get", "other"));
    }

    /// A connection that is dead and does not say so.
    struct Silent;

    impl Service<Request<Body>> for Silent {
        type Response = Response<Body>;
        type Error = BoxError;
        type Future = std::future::Pending<Result<Response<Body>, BoxError>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            std::future::pending()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_answer_is_waited_for_without_end() {
        let counted = Arc::new(std::sync::Mutex::new(Vec::new()));
        let count = counted.clone();
        let count: Count = Arc::new(move |request| count.lock().unwrap().push(request.clone()));
        let request = Request::get("/api/v1/namespaces/n/pods?watch=true").body(Body::empty()).unwrap();
        let answer = Counting(count).layer(Silent).call(request);
        let error = tokio::time::timeout(Duration::from_mins(1), answer).await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "it does not answer");
        let expected = ApiRequest { verb: "watch", resource: "pods", status: 0 };
        assert_eq!(*counted.lock().unwrap(), [expected]);
    }

    #[test]
    fn a_container_knows_its_namespace() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("namespace");
        assert_eq!(read_namespace(&file), None);
        std::fs::write(&file, "porch-system\n").unwrap();
        assert_eq!(read_namespace(&file).as_deref(), Some("porch-system"));
        std::fs::write(&file, " \n").unwrap();
        assert_eq!(read_namespace(&file), None);
    }

    #[tokio::test]
    async fn a_kubeconfig_that_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubeconfig");
        std::fs::write(&file, "{[").unwrap();
        let access = Access::Kubeconfig(file.clone());
        let error = access.client(Arc::new(|_| ())).await.err().unwrap().to_string();
        assert!(error.contains(file.to_str().unwrap()), "{error}");
    }
}
