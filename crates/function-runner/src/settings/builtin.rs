//! Which built-in functions are offered: as the flag says, or by what else is configured.

use std::num::NonZeroUsize;

use flags::Flags;

use super::{Cluster, ExecSettings, FunctionConfigSettings, Surroundings};
use crate::{args, builtin::Offered};

/// The built-in functions.
#[derive(Debug, Clone)]
pub struct BuiltinSettings {
    /// Which are offered.
    pub offered: Offered,
    /// Why, in words.
    pub reason: String,
    /// How many may run at once.
    pub cores: NonZeroUsize,
}

/// What is configured besides, as far as there is such a thing.
pub(crate) struct Besides<'a> {
    pub(crate) function_configs: &'a FunctionConfigSettings,
    pub(crate) exec: &'a ExecSettings,
    /// The file of the pod cache.
    pub(crate) pod_cache: Option<&'a std::path::Path>,
}

pub(crate) fn read(flags: &Flags, besides: &Besides<'_>, around: &dyn Surroundings) -> BuiltinSettings {
    let (offered, reason) = match flags.get(&args::BUILTIN_FUNCTIONS) {
        "off" => (Offered::Off, None),
        "configured" => (Offered::Configured, None),
        "all" => (Offered::All, None),
        // Who configures functions is to decide about each of them; who configures none wants to see some.
        _ => match besides.told(around) {
            Some(told) => (Offered::Configured, Some(told)),
            None => (Offered::All, Some("neither a cluster nor any configuration is given".to_owned())),
        },
    };
    let reason = reason.unwrap_or_else(|| "--builtin-functions says so".to_owned());
    BuiltinSettings { offered, reason, cores: around.cores() }
}

impl Besides<'_> {
    /// The first piece of configuration that is there.
    fn told(&self, around: &dyn Surroundings) -> Option<String> {
        let Self { function_configs, exec, pod_cache } = self;
        if function_configs.cluster != Cluster::None {
            return Some("a cluster is configured".to_owned());
        }
        if function_configs.folder.is_some() {
            return Some("--function-configs is given".to_owned());
        }
        if exec.config_required {
            return Some("--config is given".to_owned());
        }
        let files = [Some(exec.config.as_path()), *pod_cache];
        let there = files.into_iter().flatten().find(|path| around.exists(path))?;
        Some(format!("{} is there", there.display()))
    }
}
