//! Keeps the template in force known.

mod config_map;
mod objects;

use std::sync::Arc;

use kube::Client;
use tokio::sync::watch;
use tracing::{debug, info, warn};

use super::{PodSecurity, Problem, Template, TemplateError};
use crate::trouble::{Meaning, meaning, words};

pub use objects::{POD_TEMPLATE, SERVICE_TEMPLATE};

/// Where templates are looked for.
#[derive(Debug, Clone)]
pub struct TemplateSettings {
    /// Namespace and name of the ConfigMap with the template, if an operator named one.
    pub config_map: Option<(String, String)>,
    /// Where the pods are, and the objects with their templates.
    pub pod_namespace: String,
    /// The image that brings the wrapper server.
    pub wrapper_image: String,
    /// What pods may do where no template says so.
    pub security: PodSecurity,
}

/// What is known of the template.
#[derive(Debug, Clone)]
pub enum TemplateState {
    /// Nothing yet.
    Unknown,
    /// The template in force.
    Ready(Arc<Template>),
    /// There is none, and no pod can be made.
    Failed(Arc<TemplateError>),
}

/// The template in force, and the task that keeps it so until nobody wants to know any more.
///
/// A template that becomes unusable, or cannot be read any more, stays in force as it was.
pub fn follow(
    client: Client,
    settings: TemplateSettings,
) -> (watch::Receiver<TemplateState>, impl Future<Output = ()> + Send) {
    let (sender, receiver) = watch::channel(TemplateState::Unknown);
    let task = async move {
        let TemplateSettings { config_map, pod_namespace, wrapper_image, security } = settings;
        let inline = Template::inline(&wrapper_image, security);
        let publisher = Publisher { sender: sender.clone(), complaint: None };
        let source = async {
            match config_map {
                Some((namespace, name)) => config_map::follow(client, namespace, name, publisher).await,
                None => {
                    let objects = objects::follow(client, pod_namespace, wrapper_image, inline, publisher);
                    Box::pin(objects).await;
                }
            }
        };
        tokio::select! {
            () = source => {}
            () = sender.closed() => {}
        }
    };
    (receiver, task)
}

/// Tells what was found, and everything only once.
#[derive(Debug)]
struct Publisher {
    sender: watch::Sender<TemplateState>,
    complaint: Option<TemplateError>,
}

impl Publisher {
    /// Whether a template is in force.
    fn is_ready(&self) -> bool {
        matches!(&*self.sender.borrow(), TemplateState::Ready(_))
    }

    /// A template was found.
    fn put_in_force(&mut self, origin: &str, template: Template) {
        self.complaint = None;
        let is_known = matches!(&*self.sender.borrow(), TemplateState::Ready(known) if **known == template);
        if is_known {
            return;
        }
        info!(version = &*template.version, "function pods are made from {origin}");
        for warning in &template.warnings {
            warn!("the template for function pods in {origin}: {warning}");
        }
        self.sender.send_replace(TemplateState::Ready(Arc::new(template)));
    }

    /// No usable template was found.
    fn complain(&mut self, error: TemplateError) {
        if self.complaint.as_ref() == Some(&error) {
            debug!("still the same: {error}");
            return;
        }
        if self.is_ready() {
            warn!("{error}; the template that was read before stays in force");
        } else {
            warn!("{error}; no function pod can be made until that is mended");
            self.sender.send_replace(TemplateState::Failed(Arc::new(error.clone())));
        }
        self.complaint = Some(error);
    }
}

/// Why an object was not given to us.
fn problem(error: &kube::Error) -> Problem {
    match meaning(error) {
        Meaning::Missing => Problem::Missing,
        Meaning::Refused if matches!(error, kube::Error::Api(status) if status.code == 403) => {
            Problem::Forbidden(words(error))
        }
        _ => Problem::Unreachable(words(error)),
    }
}
