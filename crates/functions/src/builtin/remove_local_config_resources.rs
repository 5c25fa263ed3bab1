//! Removes what is not meant for a cluster.

use super::Function;
use crate::config::FunctionConfig;
use crate::identity::text_at;
use crate::list::ResourceList;
use crate::report::{File, Finding, Report, Severity};

pub(super) const FUNCTION: Function = Function {
    name: "remove-local-config-resources",
    aliases: &[],
    summary: "Removes resources that are for local use only.",
    usage: "\
The function takes no functionConfig; one that is given is not looked at.

Removed are all resources with the annotation config.kubernetes.io/local-config: \"true\", in upper or
lower case. The results name them.
",
    example: "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: not-needed
",
    body: run,
};

const LOCAL: &str = "config.kubernetes.io/local-config";

fn run(list: &mut ResourceList<'_>, _: &FunctionConfig) -> Report {
    let mut removed = Vec::new();
    for item in list.items() {
        let local = text_at(list, item, &["metadata", "annotations", LOCAL]);
        if list.is_empty(item) {
            list.remove(item);
        } else if local.is_some_and(|local| local.eq_ignore_ascii_case("true")) {
            let name = text_at(list, item, &["metadata", "name"]).unwrap_or_default();
            let path = list.file(item).0.unwrap_or_default();
            let finding = Finding {
                file: Some(File { path, index: 0 }).filter(|file| !file.path.is_empty()),
                ..Finding::new(Severity::Info, format!("Resource name: [{name}]"))
            };
            // Beyond the budget, nobody will read it.
            if list.afford(&finding).is_err() {
                break;
            }
            removed.push(finding);
            list.remove(item);
        }
    }
    let mut report = Report::new();
    if removed.is_empty() {
        report.warning("Found no resources to prune with the local config annotation");
    } else {
        report.info(format!("Number of resources pruned: {}", removed.len()));
    }
    report.results.extend(removed);
    report
}
