//! Pods before anybody calls: the functions of `--pod-cache-config`, which
//! also says how their pods are to be kept.

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use files::Followed;
use pods::{Runtime, pod_cache};
use registry::Reference;
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};
use tracing::{info, warn};

use super::PodFunctions;
use crate::images::Images;

/// How often the file is looked at.
const INTERVAL: Duration = Duration::from_secs(1);
/// Larger files are refused: no sensible configuration comes near.
const LARGEST: u64 = 4 * 1024 * 1024;
/// Functions warmed up at once.
const AT_ONCE: usize = 4;

/// Follows the file. It is read only to be used where it can be: a missing or
/// malformed one is no failure of the service.
#[derive(Debug)]
pub(crate) struct PodCacheFollower {
    file: Followed,
    default_prefix: String,
    functions: PodFunctions,
}

impl PodCacheFollower {
    /// A follower of the file at `path`, which puts its settings in force in `functions`.
    pub(crate) fn new(path: PathBuf, default_prefix: String, functions: PodFunctions) -> Self {
        Self { file: Followed::new(path, LARGEST), default_prefix, functions }
    }

    /// Looks at the file once: the images it lists, if it changed and can be used.
    pub(crate) fn look(&mut self) -> Option<Vec<Reference>> {
        let path = self.file.path().to_owned();
        let text = match self.file.look()? {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                info!(path = %path.display(), "there is no pod cache file: no function is warmed up");
                self.functions.replace(HashMap::new());
                return None;
            }
            Err(cause) => {
                warn!(path = %path.display(), %cause, "cannot read the pod cache file");
                return None;
            }
        };
        let (entries, warnings) = match pod_cache::parse(&text) {
            Ok(parsed) => parsed,
            Err(cause) => {
                warn!(path = %path.display(), cause, "the pod cache file is malformed and not used");
                return None;
            }
        };
        for warning in warnings {
            warn!(path = %path.display(), "{warning}");
        }
        let mut settings = HashMap::new();
        let mut images = Vec::new();
        for entry in entries {
            match Reference::parse_with_prefix(&entry.image, &self.default_prefix) {
                Ok(image) => {
                    settings.entry(image.key()).or_insert_with(|| Arc::new(entry.settings));
                    images.push(image);
                }
                Err(cause) => warn!(path = %path.display(), %cause, "an image is not warmed up"),
            }
        }
        info!(path = %path.display(), functions = images.len(), "pod cache configured");
        self.functions.replace(settings);
        Some(images)
    }

    /// Looks at the file again and again, and warms up what it lists when it changed.
    pub(crate) async fn follow(mut self, runtime: Runtime, warm: Option<Warming>) {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut running = None;
        loop {
            ticks.tick().await;
            if let Some(images) = self.look() {
                runtime.settings_changed();
                if let Some(warming) = warm.clone() {
                    // Dropping the one before ends it: the newer list counts.
                    let warmed = warm_up(runtime.clone(), warming, images);
                    running = Some(tokio_util::task::AbortOnDropHandle::new(tokio::spawn(warmed)));
                }
            }
            running.take_if(|task| task.is_finished());
        }
    }
}

/// What warming up needs.
#[derive(Debug, Clone)]
pub(crate) struct Warming {
    /// Where images are looked up.
    pub(crate) images: Arc<Images>,
    /// Functions at most: more pods would only push each other out.
    pub(crate) most: Option<usize>,
    /// How long one function may take.
    pub(crate) ready_timeout: Duration,
}

/// Starts a pod for each image, a few at once, and tells the progress.
async fn warm_up(runtime: Runtime, warming: Warming, mut images: Vec<Reference>) {
    let listed = images.len();
    images.truncate(warming.most.unwrap_or(listed));
    if images.len() < listed {
        warn!(listed, warmed_up = images.len(), "not all functions are warmed up: --max-pods allows no more");
    }
    let total = images.len();
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let done = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for image in images {
        let (runtime, warming, places, done) =
            (runtime.clone(), warming.clone(), places.clone(), done.clone());
        tasks.spawn(async move {
            // The semaphore is never closed.
            let _place = places.acquire().await;
            let begun = Instant::now();
            let outcome = warm_up_one(&runtime, &warming, &image).await;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            match outcome {
                Ok(()) => {
                    info!(image = image.as_given(), took = ?begun.elapsed(), "warmed up {done} of {total}");
                }
                Err(cause) => {
                    warn!(image = image.as_given(), %cause, "cannot warm up ({done} of {total})");
                }
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

async fn warm_up_one(runtime: &Runtime, warming: &Warming, image: &Reference) -> Result<(), wire::Failure> {
    let deadline = Instant::now() + warming.ready_timeout;
    let metadata = warming.images.resolve(image, None, Some(deadline)).await?;
    runtime.warm_up(image, &metadata).await?;
    // A lease that nobody uses: it comes when the pod is ready, or tells why it is not.
    runtime.lease(image, &metadata, Some(deadline)).await.map(drop)
}
