//! Aliases.

use super::config_map;

/// Aliases are values of their own: setting one changes no other place.
#[test]
fn what_aliases_stand_for() {
    let items = "\
- apiVersion: v1
  kind: ConfigMap
  metadata: &meta
    name: a
    labels: &labels {app: x}
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: b
    labels: *labels
  data: *labels
";
    let outcome = super::run("set-labels", &config_map(&[("app", "new")]), items);
    let expected = items.replace("{app: x}", "{app: new}").replace("data: *labels", "data: {app: x}");
    assert_eq!(super::items_of(&outcome), expected);
}
