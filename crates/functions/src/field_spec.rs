//! Fields named by the kind of a resource and a path, as kustomize names them.

use krm::{Kind, NodeId, Tag, Value};

use crate::list::{Resource, ResourceList};

/// Where in which resources a value is. What is empty matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSpec {
    /// Such as `apps`.
    pub group: String,
    /// Such as `v1`.
    pub version: String,
    /// Such as `Deployment`.
    pub kind: String,
    /// Keys with slashes between them, such as `spec/template/metadata/annotations`; `\/` is a slash in a
    /// key. A list on the way means each of its entries; `key[]` says that there is one.
    pub path: String,
    /// Whether to make what is missing of the path; never where it says that there is a list.
    pub create: bool,
    /// The keys of the path.
    keys: Vec<String>,
}

impl FieldSpec {
    /// A field of all resources of a kind.
    pub fn new(group: &str, version: &str, kind: &str, path: &str, create: bool) -> Self {
        let [group, version, kind, path] = [group, version, kind, path].map(str::to_owned);
        let keys = split_path(&path);
        Self { group, version, kind, path, create, keys }
    }

    /// A list of field specs as configurations write it.
    pub fn list_from(value: &Value) -> Result<Vec<Self>, String> {
        let Value::Sequence(entries) = value else { return Err("must be a list".to_owned()) };
        entries.iter().map(Self::from_value).collect()
    }

    fn from_value(value: &Value) -> Result<Self, String> {
        let text = |key: &str| match value.get(key) {
            None | Some(Value::Scalar(_, Tag::Null)) => Ok(String::new()),
            Some(Value::Scalar(text, _)) => Ok(text.clone()),
            Some(_) => Err(format!("{key} must be a text")),
        };
        if !matches!(value, Value::Mapping(_)) {
            return Err("each entry must be a mapping".to_owned());
        }
        let create = match value.get("create") {
            None | Some(Value::Scalar(_, Tag::Null)) => false,
            Some(Value::Scalar(text, Tag::Boolean)) => text.eq_ignore_ascii_case("true"),
            // What Kubernetes' own YAML library still takes for booleans.
            Some(Value::Scalar(text, Tag::String)) if matches!(&**text, "yes" | "on" | "y") => true,
            Some(Value::Scalar(text, Tag::String)) if matches!(&**text, "no" | "off" | "n") => false,
            Some(_) => return Err("create must be true or false".to_owned()),
        };
        Ok(Self::new(&text("group")?, &text("version")?, &text("kind")?, &text("path")?, create))
    }

    /// Whether it is about this resource.
    pub fn matches(&self, resource: &Resource) -> bool {
        let same = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        same(&self.kind, &resource.kind)
            && same(&self.group, resource.group())
            && same(&self.version, resource.version())
    }

    /// The nodes at the end of the path in a resource, each with its own path. What is missing is made of
    /// the given kind, if it is to be made.
    pub fn find(&self, list: &mut ResourceList<'_>, item: NodeId, kind: Kind) -> Result<Vec<Found>, String> {
        let mut found = Vec::new();
        match self.walk(list, item, &self.keys, kind, &mut Vec::new(), &mut found) {
            Ok(()) => Ok(found),
            Err(problem) => {
                list.budget().read_text(4 * (self.path.len() + problem.len()))?;
                let resource = list.resource(item);
                let shown = identifier(&resource);
                Err(format!("considering field '{}' of object {shown}: {problem}", self.path))
            }
        }
    }

    fn walk(
        &self,
        list: &mut ResourceList<'_>,
        node: NodeId,
        keys: &[String],
        kind: Kind,
        path: &mut Vec<String>,
        found: &mut Vec<Found>,
    ) -> Result<(), String> {
        let Some((key, rest)) = keys.split_first() else {
            let path = path.join(".");
            list.budget().memory(size_of::<Found>() + path.len())?;
            found.push(Found { node, path });
            return Ok(());
        };
        if list.is_null(node) {
            return Ok(());
        }
        match list.kind(node) {
            Kind::Scalar => Err("expected sequence or mapping node".to_owned()),
            Kind::Sequence => {
                let entries: Vec<NodeId> = list.entries(node).collect();
                for entry in entries {
                    if let Err(problem) = self.walk(list, entry, keys, kind, path, found) {
                        // It is told anew for each list on the way.
                        list.budget().read_text(4 * (self.path.len() + problem.len()))?;
                        return Err(format!("visit traversal on path: [{}]: {problem}", keys.join(" ")));
                    }
                }
                Ok(())
            }
            Kind::Mapping => {
                let (name, is_list) = key.strip_suffix("[]").map_or((&**key, false), |name| (name, true));
                if name.is_empty() {
                    return Err("cannot set or create an empty field name".to_owned());
                }
                let wanted = if rest.is_empty() { kind } else { Kind::Mapping };
                let create = self.create && !is_list;
                let Some(field) = step(list, node, name, create.then_some(wanted))? else { return Ok(()) };
                if is_list && list.is_null(field) {
                    list.set(field, Value::Sequence(Vec::new()))?;
                }
                path.push(name.to_owned());
                let result = self.walk(list, field, rest, kind, path, found);
                path.pop();
                result
            }
        }
    }
}

/// The value of a field, which is made if it is missing or null and a kind is given.
fn step(
    list: &mut ResourceList<'_>,
    mapping: NodeId,
    name: &str,
    create: Option<Kind>,
) -> Result<Option<NodeId>, String> {
    let field = list.get(mapping, name);
    let Some(kind) = create else { return Ok(field) };
    let empty = match kind {
        Kind::Mapping => Value::mapping(),
        Kind::Sequence => Value::Sequence(Vec::new()),
        Kind::Scalar => Value::Scalar(String::new(), Tag::String),
    };
    match field {
        Some(field) => {
            if list.is_null(field) {
                list.set(field, empty)?;
            }
            Ok(Some(field))
        }
        None => Ok(Some(list.set_field(mapping, name, empty)?)),
    }
}

/// A node at the end of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The value.
    pub node: NodeId,
    /// Its keys with dots between them; entries of lists have none.
    pub path: String,
}

/// The keys of a path with slashes between them, of which those behind a backslash are part of a key.
pub fn split_path(path: &str) -> Vec<String> {
    let mut parts = path.strip_prefix('/').unwrap_or(path).split('/');
    let mut keys = vec![parts.next().unwrap_or_default().to_owned()];
    for part in parts {
        match keys.last_mut().filter(|last| last.ends_with('\\')) {
            Some(last) => {
                last.pop();
                last.push('/');
                last.push_str(part);
            }
            None => keys.push(part.to_owned()),
        }
    }
    keys
}

/// A resource as kustomize names it.
pub(crate) fn identifier(resource: &Resource) -> String {
    let or = |part: &str, other: &str| if part.is_empty() { other.to_owned() } else { part.to_owned() };
    let gvk =
        [or(&resource.kind, "[noKind]"), or(resource.version(), "[noVer]"), or(resource.group(), "[noGrp]")]
            .join(".");
    format!("{gvk}/{}.{}", or(&resource.name, "[noName]"), or(&resource.namespace, "[noNs]"))
}
