//! Changes the fields that name resources which got another name.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use krm::{Kind, NodeId};

use super::Named;
use super::fields::{self, NameReference};
use crate::field_spec::{Found, identifier};
use crate::identity::{identity, text, text_at};
use crate::list::{Resource, ResourceList};

/// Resources that got another name, by the name they had and the namespace they are in.
type Renamed<'r> = HashMap<&'r str, Namespaces<'r>>;
type Namespaces<'r> = BTreeMap<&'r str, Vec<&'r Named>>;
type Group<'n, 'r> = (&'n &'r str, &'n Vec<&'r Named>);

pub(super) fn fix(list: &mut ResourceList<'_>, resources: &[Named]) -> Result<(), String> {
    let mut renamed = Renamed::new();
    for named in resources.iter().filter(|named| named.new_name.is_some()) {
        let namespaces = renamed.entry(&named.resource.name).or_default();
        namespaces.entry(&named.namespace).or_default().push(named);
    }
    if renamed.is_empty() {
        return Ok(());
    }
    let references = fields::all();
    for referrer in resources {
        let mut accounts = None;
        for reference in references.iter().filter(|reference| reference.field.matches(&referrer.resource)) {
            let accounts = accounts.get_or_insert_with(|| account_namespaces(list, referrer));
            Referral { renamed: &renamed, referrer, reference, accounts }.fix_all(list).map_err(
                |problem| {
                    let shown = identifier(&identity(list, referrer.item));
                    format!(
                        "updating name reference in '{}' field of '{shown}': {problem}",
                        reference.field.path
                    )
                },
            )?;
        }
    }
    Ok(())
}

/// A `RoleBinding` can refer to accounts in other namespaces: these.
fn account_namespaces(list: &ResourceList<'_>, referrer: &Named) -> BTreeSet<String> {
    if referrer.resource.kind != "RoleBinding" {
        return BTreeSet::new();
    }
    let subjects = list.get(referrer.item, "subjects");
    let subjects = subjects.into_iter().flat_map(|subjects| list.entries(subjects));
    subjects
        .filter(|&subject| text_at(list, subject, &["kind"]).as_deref() == Some("ServiceAccount"))
        .filter_map(|subject| text_at(list, subject, &["namespace"]))
        .collect()
}

/// A field that may name a resource which got another name.
struct Referral<'r> {
    renamed: &'r Renamed<'r>,
    referrer: &'r Named,
    reference: &'r NameReference,
    accounts: &'r BTreeSet<String>,
}

/// How a resource is named.
#[derive(Clone, Copy)]
enum Place<'n> {
    /// By a string alone.
    Name,
    /// By a name with or without a namespace beside it.
    Mapping(Option<&'n str>),
}

impl<'r> Referral<'r> {
    fn fix_all(&self, list: &mut ResourceList<'_>) -> Result<(), String> {
        for Found { node, .. } in self.reference.field.find(list, self.referrer.item, Kind::Scalar)? {
            let entries: Vec<NodeId> =
                if list.is_sequence(node) { list.entries(node).collect() } else { vec![node] };
            for entry in entries {
                match list.kind(entry) {
                    Kind::Scalar => self.fix_name(list, entry)?,
                    Kind::Mapping => self.fix_mapping(list, entry)?,
                    Kind::Sequence => {
                        return Err("a list is expected to be either a string or a map of string".to_owned());
                    }
                }
            }
        }
        Ok(())
    }

    fn fix_name(&self, list: &mut ResourceList<'_>, node: NodeId) -> Result<(), String> {
        let Some(name) = text(list, node) else { return Ok(()) };
        if let Some(new_name) =
            self.target(list, &name, Place::Name)?.and_then(|target| target.new_name.as_deref())
        {
            list.set(node, new_name)?;
        }
        Ok(())
    }

    fn fix_mapping(&self, list: &mut ResourceList<'_>, node: NodeId) -> Result<(), String> {
        let name = list.get(node, "name").ok_or("path config error; no 'name' field in node")?;
        let Some(old_name) = text(list, name) else { return Ok(()) };
        let namespace =
            list.get(node, "namespace").map(|namespace| text(list, namespace).unwrap_or_default());
        let Some(target) = self.target(list, &old_name, Place::Mapping(namespace.as_deref()))? else {
            return Ok(());
        };
        let Some(new_name) = &target.new_name else { return Ok(()) };
        list.set(name, &**new_name)?;
        let namespace = &*target.resource.namespace;
        if !namespace.is_empty() {
            list.set_field(node, "namespace", namespace)?;
        }
        Ok(())
    }

    /// The resource that had this name.
    fn target(
        &self,
        list: &ResourceList<'_>,
        name: &str,
        place: Place<'_>,
    ) -> Result<Option<&'r Named>, String> {
        let Some(namespaces) = self.renamed.get(name) else { return Ok(None) };
        let role = self.role(list);
        let is_meant = |candidate: &&Named| {
            self.reference.is_to(&candidate.resource)
                && role.as_ref().is_none_or(|(group, kind)| {
                    candidate.resource.group() == group && candidate.resource.kind == *kind
                })
        };
        let groups = self.in_reach(list, namespaces, place)?;
        let candidates = groups.into_iter().flat_map(|(namespace, group)| {
            let is_account = self.is_foreign(namespace);
            group.iter().copied().filter(move |named| !is_account || named.resource.kind == "ServiceAccount")
        });
        let candidates: Vec<&Named> = candidates.filter(|_| list.budget().step(4)).filter(is_meant).collect();
        list.budget().check()?;
        let Some((first, others)) = candidates.split_first() else { return Ok(None) };
        if others.is_empty() {
            return Ok(Some(first));
        }
        if self.referrer.new_name.is_none() {
            // Which of them is meant could only be told by the prefix or suffix that both got.
            return Ok(None);
        }
        let is_same = |other: &&Named| other.resource.namespace == first.resource.namespace;
        if matches!(place, Place::Name) || others.iter().all(is_same) {
            return Ok(Some(first));
        }
        let shown: Vec<String> = candidates
            .iter()
            .filter(|_| list.budget().memory(256).is_ok())
            .map(|candidate| {
                let name = candidate.new_name.clone().unwrap_or_default();
                identifier(&Resource { name, ..candidate.resource.clone() })
            })
            .collect();
        Err(format!("found multiple possible referrals: {}", shown.join(", ")))
    }

    /// The resources in namespaces that the referrer can refer to.
    fn in_reach<'n>(
        &self,
        list: &ResourceList<'_>,
        namespaces: &'n Namespaces<'r>,
        place: Place<'_>,
    ) -> Result<Vec<Group<'n, 'r>>, String> {
        let own = &*self.referrer.namespace;
        let wanted = match place {
            Place::Mapping(Some("")) => return Ok(Vec::new()),
            Place::Mapping(Some(namespace)) => vec![namespace],
            _ if !own.is_empty() && self.accounts.is_empty() => vec!["", own],
            _ => {
                list.budget().work(4 * namespaces.len())?;
                return Ok(namespaces.iter().filter(|(namespace, _)| self.reaches(namespace)).collect());
            }
        };
        let wanted = wanted.into_iter().filter(|namespace| self.reaches(namespace));
        Ok(wanted.filter_map(|namespace| namespaces.get_key_value(namespace)).collect())
    }

    fn reaches(&self, namespace: &str) -> bool {
        !self.is_foreign(namespace) || self.accounts.contains(namespace)
    }

    /// Whether at most the accounts in a namespace can be referred to.
    fn is_foreign(&self, namespace: &str) -> bool {
        let own = &*self.referrer.namespace;
        !own.is_empty() && !namespace.is_empty() && namespace != own
    }

    /// Group and kind of the role, if it is the name of one that is looked at.
    fn role(&self, list: &ResourceList<'_>) -> Option<(String, String)> {
        let path = self.reference.field.path.ends_with("roleRef/name").then_some("roleRef")?;
        let role = list.get(self.referrer.item, path)?;
        Some((text_at(list, role, &["apiGroup"])?, text_at(list, role, &["kind"])?))
    }
}
