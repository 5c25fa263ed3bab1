//! `krmfn.star`: questions about resources.

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::Value;
use starlark::values::dict::DictRef;

/// The string at the end of a path of keys.
fn text<'v>(resource: Value<'v>, path: &[&str]) -> &'v str {
    let end = path.iter().try_fold(resource, |value, key| DictRef::from_value(value)?.get_str(key));
    end.and_then(Value::unpack_str).unwrap_or_default()
}

#[starlark_module]
fn members(builder: &mut GlobalsBuilder) {
    /// Whether a resource is of an API version, or of a version in any group, and of a kind. What is empty
    /// matches all.
    fn match_gvk<'v>(
        #[starlark(require = pos)] resource: Value<'v>,
        #[starlark(require = pos)] api_version: &str,
        #[starlark(require = pos)] kind: &str,
    ) -> starlark::Result<bool> {
        let same = |wanted: &str, found: &str| wanted.is_empty() || found.is_empty() || wanted == found;
        let found = text(resource, &["apiVersion"]);
        let version = found.rsplit('/').next().unwrap_or_default();
        let is_version = same(api_version, found) || same(api_version, version);
        Ok(is_version && same(kind, text(resource, &["kind"])))
    }

    /// Whether a resource has a name.
    fn match_name<'v>(
        #[starlark(require = pos)] resource: Value<'v>,
        #[starlark(require = pos)] name: &str,
    ) -> starlark::Result<bool> {
        Ok(text(resource, &["metadata", "name"]) == name)
    }

    /// Whether a resource is in a namespace.
    fn match_namespace<'v>(
        #[starlark(require = pos)] resource: Value<'v>,
        #[starlark(require = pos)] namespace: &str,
    ) -> starlark::Result<bool> {
        Ok(text(resource, &["metadata", "namespace"]) == namespace)
    }
}

pub(super) fn krmfn(builder: &mut GlobalsBuilder) {
    builder.namespace("krmfn", members);
}
