//! The images that built-in functions answer where all of them are offered.

use std::sync::Arc;

use api::Versions;
use registry::Reference;

use super::{BuiltinFunction, Claim, Origin, Place, Table};
use crate::builtin;

/// Where the functions of the catalog were before they moved to the default prefix.
const FORMER_PREFIX: &str = "gcr.io/kpt-fn";

/// All versions of all built-in functions under the default prefix and the former one.
pub fn every_builtin(default_prefix: &str) -> Table<Arc<BuiltinFunction>> {
    let mut table = Table::default();
    for function in builtin::all() {
        let value = Arc::new(BuiltinFunction { function, origin: Origin::EveryBuiltin });
        for name in function.names() {
            let former = format!("{FORMER_PREFIX}/{name}");
            for text in [name, &former] {
                // A prefix that makes no reference is refused when the flags are read.
                let Ok(image) = Reference::parse_with_prefix(text, default_prefix) else { continue };
                let place = Place::Repository(image.full_name().to_owned());
                let entry = image.as_given().to_owned();
                // The two prefixes may be the same.
                let _ = table.add(&Claim { entry, place, versions: Versions::All }, value.clone());
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(table: &Table<Arc<BuiltinFunction>>, image: &str) -> Option<&'static str> {
        table.find(&Reference::parse(image).unwrap(), None).map(|found| found.value.function.name())
    }

    /// How many names the functions have.
    fn names() -> usize {
        builtin::all().iter().map(|function| function.names().count()).sum()
    }

    #[test]
    fn every_version_under_both_prefixes_is_answered_and_nothing_else() {
        let table = every_builtin("example.com/functions");
        assert_eq!(table.len(), 2 * names());
        let digest = format!("gcr.io/kpt-fn/set-namespace:v0.4@sha256:{}", "a".repeat(64));
        for (image, name) in [
            ("example.com/functions/set-namespace", Some("set-namespace")),
            ("example.com/functions/set-namespace:latest", Some("set-namespace")),
            ("example.com/functions/starlark:not-a-version", Some("starlark")),
            ("gcr.io/kpt-fn/set-labels:v0.2.0", Some("set-labels")),
            (&digest, Some("set-namespace")),
            ("example.com/functions/more/set-namespace:v1", None),
            ("example.com/set-namespace:v1", None),
            ("gcr.io/kpt-fn-contrib/set-namespace:v1", None),
            ("gcr.io/kpt-fn/gatekeeper:v1", None),
            ("gcr.io/set-namespace", None),
            ("set-namespace", None),
        ] {
            assert_eq!(found(&table, image), name, "{image}");
        }
    }

    #[test]
    fn whatever_the_default_prefix_is() {
        let table = every_builtin("");
        assert_eq!(found(&table, "set-namespace:v1"), Some("set-namespace"), "a bare name stays one");
        assert_eq!(found(&table, "gcr.io/kpt-fn/set-namespace"), Some("set-namespace"));
        let table = every_builtin(FORMER_PREFIX);
        assert_eq!(table.len(), names());
        assert_eq!(every_builtin("Not A Prefix").len(), names());
    }
}
