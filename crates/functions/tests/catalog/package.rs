//! A package: its files, its pipeline, and how its resources travel to a function and back.

use std::collections::BTreeMap;
use std::path::Path;

use krm::{Document, Value};

use crate::patch;

const PATH: &str = "internal.config.kubernetes.io/path";
const INDEX: &str = "internal.config.kubernetes.io/index";

#[derive(Debug, Clone)]
pub(crate) struct Package {
    /// The text of each file, by its path.
    pub(crate) files: BTreeMap<String, String>,
}

/// One function of a pipeline.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) function: String,
    /// The text of the functionConfig.
    config: Option<String>,
    selectors: Vec<Value>,
}

impl Package {
    pub(crate) fn read(folder: &Path) -> Self {
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name == "Kptfile" || path.extension().is_some_and(|extension| extension == "yaml") {
                files.insert(name, std::fs::read_to_string(path).unwrap());
            }
        }
        Self { files }
    }

    pub(crate) fn steps(&self, folder: &Path) -> Vec<Step> {
        let config = std::fs::read_to_string(folder.join(".expected/config.yaml")).unwrap_or_default();
        if let Ok(config) = Document::parse(&config)
            && config.string_at(config.root(), &["testType"]).as_deref() == Some("eval")
        {
            return vec![self.step(&config.value(config.root()), "fnConfig")];
        }
        let kptfile = Document::parse(&self.files["Kptfile"]).unwrap();
        let mutators = kptfile.at(kptfile.root(), &["pipeline", "mutators"]);
        let mutators = mutators.into_iter().flat_map(|mutators| kptfile.entries(mutators));
        mutators.map(|mutator| self.step(&kptfile.value(mutator), "configPath")).collect()
    }

    fn step(&self, step: &Value, config_path: &str) -> Step {
        let image = step.get("image").and_then(Value::text).unwrap();
        let function = image.rsplit('/').next().unwrap().split(':').next().unwrap().to_owned();
        let config = match (step.get(config_path).and_then(Value::text), step.get("configMap")) {
            (Some(path), _) => Some(self.files[path.trim_start_matches("../")].clone()),
            (None, Some(data)) => {
                let mut config =
                    Document::parse("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: function-input\n")
                        .unwrap();
                config.set_field(config.root(), "data", data.clone()).unwrap();
                Some(config.to_text().unwrap())
            }
            (None, None) => None,
        };
        let selectors = match step.get("selectors") {
            Some(Value::Sequence(selectors)) => selectors.clone(),
            _ => Vec::new(),
        };
        Step { function, config, selectors }
    }

    fn selects(step: &Step, resource: &Value) -> bool {
        let kind = |value: &Value| value.get("kind").and_then(Value::text).map(str::to_owned);
        step.selectors.is_empty() || step.selectors.iter().any(|selector| kind(selector) == kind(resource))
    }

    /// The list that the function of a step is given.
    pub(crate) fn resource_list(&self, step: &Step) -> String {
        let mut text = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n".to_owned();
        if let Some(config) = &step.config {
            text.push_str("functionConfig:");
            text.push_str(&indented(config, "\n  "));
        }
        text.push_str("items:\n");
        for (path, file) in &self.files {
            for (index, document) in documents(file).iter().enumerate() {
                let mut document = Document::parse(document).unwrap();
                if Self::selects(step, &document.value(document.root())) {
                    let annotations =
                        document.ensure_path(document.root(), &["metadata", "annotations"]).unwrap();
                    document.set_field(annotations, PATH, &**path).unwrap();
                    document.set_field(annotations, INDEX, index.to_string()).unwrap();
                    text.push('-');
                    text.push_str(&indented(&document.to_text().unwrap(), " "));
                }
            }
        }
        text
    }

    /// Takes the resources of a list that a function gave back, and gives its results.
    pub(crate) fn take(&mut self, output: &str, step: &Step) -> Vec<Value> {
        let list = Document::parse(output).unwrap();
        let mut files: BTreeMap<String, BTreeMap<usize, String>> = BTreeMap::new();
        for (path, file) in &self.files {
            let documents = files.entry(path.clone()).or_default();
            for (index, document) in self::documents(file).into_iter().enumerate() {
                let parsed = Document::parse(&document).unwrap();
                if !Self::selects(step, &parsed.value(parsed.root())) {
                    documents.insert(index, document);
                }
            }
        }
        let items = list.get(list.root(), "items").unwrap();
        for item in list.entries(items) {
            let text = list.text_of(item);
            let mut document = Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            let metadata = document.get(document.root(), "metadata").unwrap();
            let annotations = document.get(metadata, "annotations").unwrap();
            let mut take = |key: &str| {
                let node = document.get(annotations, key)?;
                let text = document.text(node).unwrap().into_owned();
                document.remove(node);
                Some(text)
            };
            let (path, index) = (take(PATH), take(INDEX));
            if document.is_empty(annotations) {
                document.remove(annotations);
            }
            let path = path.unwrap_or_else(|| "new.yaml".to_owned());
            let documents = files.entry(path).or_default();
            let index = index.map_or(documents.len(), |index| index.parse().unwrap());
            documents.insert(index, document.to_text().unwrap());
        }
        self.files = files
            .into_iter()
            .map(|(path, documents)| (path, documents.into_values().collect::<Vec<_>>().join("---\n")))
            .collect();
        match list.get(list.root(), "results").map(|results| list.value(results)) {
            Some(Value::Sequence(results)) => results,
            _ => Vec::new(),
        }
    }

    pub(crate) fn expected(&self, folder: &Path) -> Self {
        let patch = std::fs::read_to_string(folder.join(".expected/diff.patch")).unwrap_or_default();
        Self { files: patch::apply(&self.files, &patch) }
    }

    pub(crate) fn expected_results(folder: &Path) -> Option<Vec<Value>> {
        let text = std::fs::read_to_string(folder.join(".expected/results.yaml")).ok()?;
        let document = Document::parse(&text).unwrap();
        let items = document.get(document.root(), "items").unwrap();
        let results = document.entries(items).filter_map(|item| document.get(item, "results"));
        Some(
            results
                .flat_map(|results| document.entries(results))
                .map(|result| document.value(result))
                .collect(),
        )
    }
}

/// The documents of a file.
pub(crate) fn documents(file: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in file.split_inclusive('\n') {
        if line.trim_end() == "---" {
            documents.push(String::new());
        } else {
            documents.last_mut().unwrap().push_str(line);
        }
    }
    documents.retain(|document| Document::parse(document).is_ok());
    documents
}

/// The text two columns deeper; its first line behind what is given.
fn indented(text: &str, first: &str) -> String {
    let mut out = String::new();
    for (at, line) in text.trim_end().lines().enumerate() {
        if at == 0 {
            out.push_str(first);
        } else if !line.is_empty() {
            out.push_str("  ");
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}
