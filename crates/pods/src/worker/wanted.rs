//! What functions and their pods are to be.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use pool::{Event, Observed, Spec};
use registry::Reference;

use super::Worker;
use crate::{
    cluster::{Titles, revision},
    observe::Sighting,
    template::source::TemplateState,
};

/// No pod is kept longer than to this second, whatever is written on it (the year 9999).
const LATEST: u64 = 253_402_300_799;
/// The revision of pods whose Service is missing: no function's pods are to be like that.
const WITHOUT_SERVICE: &str = "without its Service";

impl Worker {
    pub(super) fn observed(&self, sighting: &Sighting) -> Option<Observed> {
        let image = Reference::parse(&sighting.function).ok()?;
        let state = self.cluster.template.borrow().clone();
        let settings = self.cluster.world.settings(&image);
        let own_version = sighting.template_version.as_deref().unwrap_or_default();
        let revision = if self.is_without_service(sighting) {
            WITHOUT_SERVICE.into()
        } else {
            revision(own_version, sighting.settings_version.as_deref().unwrap_or_default())
        };
        let version = match &state {
            TemplateState::Ready(template) => &*template.version,
            // Until the template is known, what is there is right.
            TemplateState::Unknown | TemplateState::Failed(_) => own_version,
        };
        let digest = sighting.digest.as_deref();
        let titles = Titles {
            stem: sighting.stem.clone(),
            image: digest.map_or_else(|| "".into(), |digest| Titles::image(&image, digest)),
        };
        let spec = self.cluster.spec(titles, version, &settings);
        Some(Observed {
            uid: sighting.uid.clone(),
            function: sighting.function.clone(),
            spec: Arc::new(spec),
            stem: sighting.stem.clone(),
            slot: sighting.slot,
            revision,
            phase: sighting.phase,
            created: self.clock.moment(sighting.created),
            keep_until: sighting
                .reclaim_after
                .map(|unix| self.clock.moment(UNIX_EPOCH + Duration::from_secs(unix.min(LATEST)))),
            is_shortened: self.is_shortened(sighting),
        })
    }

    /// Whether less time is recorded on a pod than when it was seen last. No runner does that, so somebody did by hand.
    fn is_shortened(&self, sighting: &Sighting) -> bool {
        let before = self.sightings.get(&sighting.uid).and_then(|before| before.reclaim_after);
        sighting.reclaim_after.is_some_and(|until| before.is_some_and(|before| until < before))
    }

    pub(super) fn want(&mut self, image: &Reference, titles: Titles, warm: bool) {
        let TemplateState::Ready(template) = self.cluster.template.borrow().clone() else { return };
        let settings = self.cluster.world.settings(image);
        let function: Arc<str> = image.as_given().into();
        let spec = Arc::new(self.cluster.spec(titles, &template.version, &settings));
        if warm {
            self.warm.insert(function.clone());
        }
        self.apply(Event::Wanted { function: function.clone(), spec, warm });
        // Only a pod that is started right now gets that name.
        self.warm.remove(&function);
    }

    /// The template or settings changed: every function learns what its pods are to be now, those too
    /// whose pods do not come up.
    pub(super) fn respecify(&mut self) {
        let titles = |spec: &Spec| Titles { stem: spec.stem.clone(), image: spec.image.clone() };
        let functions = self.pool.functions().map(|(function, spec)| (function.clone(), titles(spec)));
        for (function, titles) in functions.collect::<Vec<_>>() {
            if let Ok(image) = Reference::parse(&function) {
                self.want(&image, titles, false);
            }
        }
    }
}
