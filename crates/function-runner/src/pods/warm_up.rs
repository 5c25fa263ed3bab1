//! Pods before anybody calls: of the functions that the configuration names.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pods::Runtime;
use tokio::{
    sync::{Semaphore, watch},
    time::{Instant, sleep},
};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use crate::{
    evaluate::Asked,
    images::Images,
    routing::{Built, WarmUp},
};

/// Functions warmed up at once.
const AT_ONCE: usize = 4;
/// How long after a failure pods that are to be kept are tried again.
const PAUSE: Duration = Duration::from_mins(1);

/// What warming up needs.
#[derive(Debug, Clone)]
pub(crate) struct Warming {
    /// Where images are looked up.
    pub(crate) images: Arc<Images>,
    /// Whether functions have a pod beforehand that do not keep pods for ever.
    pub(crate) is_wanted: bool,
    /// Functions at most: more pods would only push each other out.
    pub(crate) most: Option<usize>,
    /// How long one function may take.
    pub(crate) ready_timeout: Duration,
}

/// Lets the runtime know of every change of the configuration, and warms up what it names, those named later
/// too. Each function is warmed up once, as long as it is named.
pub(crate) async fn keep_warm(runtime: Runtime, warming: Warming, mut built: watch::Receiver<Arc<Built>>) {
    let progress = Arc::new(Progress {
        places: Semaphore::new(AT_ONCE),
        begun: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
    });
    // A function that is not named any more needs no pod: its task ends where it is.
    let mut tasks: HashMap<(String, bool), AbortOnDropHandle<()>> = HashMap::new();
    let mut has_told_limit = false;
    loop {
        let index = built.borrow_and_update().index.clone();
        runtime.settings_changed();
        let is_wanted = |warm_up: &&WarmUp| warming.is_wanted || warm_up.is_kept;
        let listed: Vec<&WarmUp> = index.warm_ups.iter().filter(is_wanted).collect();
        let most = warming.most.unwrap_or(usize::MAX);
        if listed.len() > most && !std::mem::replace(&mut has_told_limit, true) {
            warn!(
                listed = listed.len(),
                warmed_up = most,
                "not all functions are warmed up: --max-pods allows no more"
            );
        }
        let mut before = std::mem::take(&mut tasks);
        for warm_up in listed.into_iter().take(most) {
            // One that is to be kept from now on may have lost its pod meanwhile.
            let key = (warm_up.asked.to_string(), warm_up.is_kept);
            let task = before.remove(&key).unwrap_or_else(|| {
                progress.begun.fetch_add(1, Ordering::Relaxed);
                let task = warm_up_one(runtime.clone(), warming.clone(), progress.clone(), warm_up.clone());
                AbortOnDropHandle::new(tokio::spawn(task))
            });
            tasks.insert(key, task);
        }
        drop(before);
        if built.changed().await.is_err() {
            return;
        }
    }
}

/// How far we are.
#[derive(Debug)]
struct Progress {
    places: Semaphore,
    begun: AtomicUsize,
    done: AtomicUsize,
}

impl Progress {
    fn step(&self) -> String {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{done} of {}", self.begun.load(Ordering::Relaxed))
    }
}

/// Starts pods for one function, and tells how that went.
async fn warm_up_one(runtime: Runtime, warming: Warming, progress: Arc<Progress>, warm_up: WarmUp) {
    let WarmUp { asked, is_kept } = warm_up;
    let mut has_told = false;
    loop {
        // The semaphore is never closed.
        let place = progress.places.acquire().await;
        let begun = Instant::now();
        match try_once(&runtime, &warming, &asked).await {
            Ok(()) => {
                let took = begun.elapsed();
                if has_told {
                    info!(image = %asked, ?took, "warmed up at last");
                } else {
                    info!(image = %asked, ?took, "warmed up {}", progress.step());
                }
                return;
            }
            Err(cause) if !std::mem::replace(&mut has_told, true) => {
                let next = if is_kept { "it is tried again" } else { "its first call will try" };
                warn!(image = %asked, %cause, "cannot warm up ({}); {next}", progress.step());
            }
            Err(_) => {}
        }
        drop(place);
        if !is_kept {
            return;
        }
        sleep(PAUSE).await;
    }
}

async fn try_once(runtime: &Runtime, warming: &Warming, asked: &Asked) -> Result<(), wire::Failure> {
    let deadline = Instant::now() + warming.ready_timeout;
    let metadata = warming.images.resolve(&asked.image, asked.constraint.as_ref(), Some(deadline)).await?;
    let image = &metadata.reference;
    runtime.warm_up(image, &metadata).await?;
    // A lease that nobody uses: it comes when the pod is ready, or tells why it is not.
    runtime.lease(image, &metadata, Instant::now(), Some(deadline)).await.map(drop)
}
