//! Sets images.

use krm::{Budget, Kind, NodeId, Tag, Value};

use super::Function;
use crate::config::FunctionConfig;
use crate::field_spec::{FieldSpec, Found, identifier};
use crate::list::{Resource, ResourceList};
use crate::regexp::Expression;
use crate::report::{Finding, Report, Severity};

pub(super) const FUNCTION: Function = Function {
    name: "set-image",
    aliases: &[],
    summary: "Gives images of a name another name, tag or digest.",
    usage: "\
The functionConfig is one of
- a ConfigMap whose data says which image is meant and what becomes of it,
- a SetImage (fn.kpt.dev/v1alpha1) that says so in image, and names more fields with images in
  additionalImageFields: a list of path (such as spec/manifest/images[]/image, where [] says that
  there is a list), and which resources it is about: group, version, kind (all, if missing).

An image is meant by

  name       its name without tag and digest, as a regular expression

and gets

  newName    another name
  newTag     another tag, in the place of its tag and digest
  digest     another digest, in the place of its tag and digest; with newTag, both
  tagSuffix  more at the end of its tag, if there is neither newTag nor digest (SetImage only)

of which newName, newTag or digest must be given.

Images are set in the containers and init containers of Pods and of the pod templates in Deployments,
StatefulSets, ReplicaSets and DaemonSets. The result tells how many fields have the image.
",
    example: "\
apiVersion: fn.kpt.dev/v1alpha1
kind: SetImage
metadata:
  name: example
image:
  name: nginx
  newName: bitnami/nginx
  newTag: 1.21.4
additionalImageFields:
- group: dev.example.com
  version: v1
  kind: MyKind
  path: spec/manifest/images[]/image
",
    body: run,
};

/// Which image is meant and what becomes of it. What is empty was not given.
#[derive(Debug, Default)]
struct Image {
    name: String,
    new_name: String,
    new_tag: String,
    tag_suffix: String,
    digest: String,
}

/// What the configuration says.
#[derive(Debug, Default)]
struct Wanted {
    image: Image,
    fields: Vec<FieldSpec>,
    /// Keys of `data` that mean nothing.
    unknown: Vec<String>,
}

fn run(list: &mut ResourceList<'_>, config: &FunctionConfig) -> Report {
    let mut report = Report::new();
    let mut wanted = Wanted::default();
    if config.is_empty() || is_placeholder(config) {
        report.info("`FunctionConfig` is not given");
    } else {
        match read(config) {
            Ok(read) => wanted = read,
            Err(message) => {
                report.error(message);
                return report.fail();
            }
        }
    }
    for key in &wanted.unknown {
        report.error(format!("ConfigMap has wrong field name {key}"));
    }
    list.budget().follow("image");
    let expression =
        wanted.image.expression(list.budget()).map_err(|cause| format!("invalid FunctionConfig: {cause}"));
    let mut count = 0;
    match expression {
        Err(message) => report.error(message),
        Ok(_) if report.has_errors() => {}
        Ok(expression) => {
            let mut setter = Setter { list, image: &wanted.image, expression, count: 0, errors: Vec::new() };
            setter.set(&default_fields());
            setter.list.budget().follow("additionalImageFields");
            setter.set(&wanted.fields);
            count = setter.count;
            report.results.extend(setter.errors);
        }
    }
    report.info(format!("summary: updated a total of {count} image(s)"));
    if report.has_errors() { report.fail() } else { report }
}

/// What kpt gives where there is nothing to give.
fn is_placeholder(config: &FunctionConfig) -> bool {
    let empty = matches!(config.at(&["data"]), Some(Value::Mapping(fields)) if fields.is_empty());
    config.kind() == "ConfigMap" && config.name() == "function-input" && empty
}

fn read(config: &FunctionConfig) -> Result<Wanted, String> {
    let resource = config.resource();
    let mut wanted = Wanted::default();
    match (resource.group(), &*resource.kind) {
        ("", "ConfigMap") => {}
        ("fn.kpt.dev", "SetImage") => {
            let unreadable = |cause: String| format!("failed to parse FunctionConfig as SetImage: {cause}");
            read_image(config, &mut wanted.image).map_err(unreadable)?;
            let fields = config.at(&["additionalImageFields"]).filter(|value| !is_null(value));
            wanted.fields = fields
                .map_or(Ok(Vec::new()), FieldSpec::list_from)
                .map_err(|cause| unreadable(format!("additionalImageFields: {cause}")))?;
            for field in &mut wanted.fields {
                // A field that is missing has no image of any name.
                field.create = false;
            }
        }
        (group, kind) => {
            let dot = if group.is_empty() { "" } else { "." };
            return Err(format!(
                "unknown FunctionConfig `{kind}{dot}{group}`, expect `SetImage.fn.kpt.dev` or `ConfigMap.v1`"
            ));
        }
    }
    let data = config
        .texts(&["data"])
        .ok_or("failed to parse FunctionConfig as ConfigMap: all values of `data` must be texts")?;
    for (key, value) in data {
        match (&*key, wanted.image.field(&key)) {
            (_, None) | ("tagSuffix", _) => wanted.unknown.push(key),
            (_, Some(field)) => *field = value,
        }
    }
    Ok(wanted)
}

fn read_image(config: &FunctionConfig, image: &mut Image) -> Result<(), String> {
    let fields = match config.at(&["image"]) {
        None => return Ok(()),
        Some(value) if is_null(value) => return Ok(()),
        Some(Value::Mapping(fields)) => fields,
        Some(_) => return Err("`image` must be a mapping".to_owned()),
    };
    for (key, value) in fields {
        let Some(field) = image.field(key) else { continue };
        *field = match value {
            Value::Scalar(_, Tag::Null) => String::new(),
            Value::Scalar(text, _) => text.clone(),
            _ => return Err(format!("`image.{key}` must be a text")),
        };
    }
    Ok(())
}

fn is_null(value: &Value) -> bool {
    matches!(value, Value::Scalar(_, Tag::Null))
}

/// Where Kubernetes' own kinds have images.
fn default_fields() -> Vec<FieldSpec> {
    let field = |group: &str, kind: &str, path: String| FieldSpec::new(group, "v1", kind, &path, false);
    let mut fields = Vec::new();
    for containers in ["containers", "initContainers"] {
        fields.push(field("", "Pod", format!("spec/{containers}[]/image")));
        for kind in ["Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"] {
            fields.push(field("apps", kind, format!("spec/template/spec/{containers}[]/image")));
        }
    }
    fields
}

impl Image {
    /// The field that has this key in a configuration.
    fn field(&mut self, key: &str) -> Option<&mut String> {
        match key {
            "name" => Some(&mut self.name),
            "newName" => Some(&mut self.new_name),
            "newTag" => Some(&mut self.new_tag),
            "tagSuffix" => Some(&mut self.tag_suffix),
            "digest" => Some(&mut self.digest),
            _ => None,
        }
    }

    /// Matches the images that are meant.
    fn expression(&self, budget: &Budget) -> Result<Expression, String> {
        if self.name.is_empty() {
            return Err("must specify `name`".to_owned());
        }
        if self.new_name.is_empty() && self.new_tag.is_empty() && self.digest.is_empty() {
            return Err("must specify one of `newName`, `newTag`, or `digest`".to_owned());
        }
        // Some tools have patterns in braces in the place of tags.
        let images = format!("^{}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$", self.name);
        Expression::in_go(&images, budget).map_err(|cause| format!("`name`: {cause}"))
    }

    /// What becomes of an image.
    fn replace(&self, image: &str) -> String {
        let (name, tag, digest) = split(image);
        let name = if self.new_name.is_empty() { name } else { &self.new_name };
        let (tag, digest) = match (&*self.new_tag, &*self.digest) {
            ("", "") if self.tag_suffix.is_empty() => (tag.to_owned(), digest),
            ("", "") => (format!("{tag}{}", self.tag_suffix), ""),
            (new_tag, new_digest) => (new_tag.to_owned(), new_digest),
        };
        let mut new = name.to_owned();
        if !tag.is_empty() {
            new.extend([":", &tag]);
        }
        if !digest.is_empty() {
            new.extend(["@", digest]);
        }
        new
    }
}

/// The name, tag and digest of an image. A colon before the first slash is that of a host's port.
fn split(image: &str) -> (&str, &str, &str) {
    let (named, digest) = image.split_once('@').unwrap_or((image, ""));
    let path = named.find('/').unwrap_or(0);
    match named.get(path..).and_then(|rest| rest.find(':')) {
        Some(colon) => {
            let (name, tag) = named.split_at(path + colon);
            (name, tag.trim_start_matches(':'), digest)
        }
        None => (named, "", digest),
    }
}

struct Setter<'l, 'a> {
    list: &'l mut ResourceList<'a>,
    image: &'l Image,
    expression: Expression,
    /// Fields that have the image, changed or not: so the catalog's function counts them.
    count: usize,
    errors: Vec<Finding>,
}

impl Setter<'_, '_> {
    /// Sets the image in some fields of all resources.
    fn set(&mut self, fields: &[FieldSpec]) {
        for item in self.list.items() {
            let resource = self.list.resource(item);
            // In these, what looks like an image is its description.
            if resource.kind == "CustomResourceDefinition" {
                continue;
            }
            if let Err(message) = self.set_fields(item, &resource, fields) {
                let finding = Finding::new(Severity::Error, message);
                // Beyond the budget, nobody will read it.
                if self.list.afford(&finding).is_err() {
                    return;
                }
                self.errors.push(finding);
            }
        }
    }

    fn set_fields(&mut self, item: NodeId, resource: &Resource, fields: &[FieldSpec]) -> Result<(), String> {
        for field in fields {
            self.list.budget().work(1)?;
            if field.matches(resource) {
                self.set_field(item, resource, field)?;
            }
        }
        Ok(())
    }

    fn set_field(&mut self, item: NodeId, resource: &Resource, field: &FieldSpec) -> Result<(), String> {
        for Found { node, .. } in field.find(self.list, item, Kind::Scalar)? {
            self.list.expect(node, Kind::Scalar).map_err(|error| {
                format!("considering field '{}' of object {}: {error}", field.path, identifier(resource))
            })?;
            let image = self.list.text(node).unwrap_or_default();
            if !self.expression.is_match(&image)? {
                continue;
            }
            let new = self.image.replace(&image);
            self.list.set(node, new)?;
            self.count += 1;
        }
        Ok(())
    }
}
