//! The files and objects that operators write.

use std::{path::Path, sync::Arc};

use function_runner::{
    builtin::Offered,
    routing::{Built, ConfigFile, Sources, Terms},
};
use k8s_openapi::api::core::v1::ConfigMap;
use pods::template::Template;
use registry::{Constraint, Reference};

const PREFIX: &str = "example.com/functions";

fn terms() -> Terms {
    Terms {
        builtins: Offered::All,
        functions: Some("/functions".into()),
        pods: true,
        default_prefix: PREFIX.to_owned(),
        check: |_| Err("is missing".to_owned()),
    }
}

/// Puts something in force and asks for some images, as calls do.
fn build(change: impl FnOnce(&mut Sources)) -> Built {
    let mut sources = Sources::default();
    change(&mut sources);
    let built = sources.build(&terms());
    for image in ["example.com/functions/set-labels:v1.2", "a", "a/b:v1", "a/b@sha256:x"] {
        if let Ok(image) = Reference::parse_with_prefix(image, PREFIX) {
            let constraint = Constraint::parse("~1").ok();
            let _ = built.index.builtin(&image, constraint.as_ref());
            let _ = built.index.executable(&image, constraint.as_ref());
            let _ = built.index.pod(&image);
        }
    }
    for warning in &built.warnings {
        crate::is_one_line(warning);
    }
    built
}

/// `config.yaml`.
pub(crate) fn config_yaml(input: &[u8]) {
    let file = match ConfigFile::parse(input) {
        Ok(file) => file,
        Err(error) => return crate::is_one_line(&error),
    };
    // Nothing is there, so that nothing of this machine plays a part.
    let (layer, problems) = file.layer(Path::new("config.yaml"), Path::new("/dev/null/functions"), PREFIX);
    for problem in &problems {
        crate::is_one_line(&problem.to_string());
    }
    let claims = layer.executables.len();
    let path: Arc<Path> = Path::new("config.yaml").into();
    let built = build(|sources| sources.config_file = Some((path, Arc::new(file))));
    assert_eq!(built.index.executables(), claims, "the index has other claims than the file");
}

/// A file with objects of the kind FunctionConfig.
pub(crate) fn function_configs(input: &[u8]) {
    let file = api::File::parse(input, PREFIX);
    // A carriage return alone is a line break, too, in YAML.
    let lines = u64::try_from(input.split(|byte| matches!(byte, b'\n' | b'\r')).count()).unwrap();
    for found in file.problems.iter().chain(&file.unknown).chain(&file.remarks) {
        crate::is_one_line(&found.to_string());
        assert!(found.line.is_none_or(|line| (1..=lines).contains(&line)), "no such line: {found}");
    }
    assert!(!file.is_malformed || !file.problems.is_empty(), "malformed without a word");
    build(|sources| {
        sources.files.insert(Path::new("a.yaml").into(), Arc::new(file));
    });
}

/// The file of `--pod-cache-config`.
pub(crate) fn pod_cache(input: &[u8]) {
    match pods::pod_cache::parse(input) {
        Ok((entries, warnings)) => {
            for warning in &warnings {
                crate::is_one_line(warning);
            }
            let path: Arc<Path> = Path::new("pod-cache.yaml").into();
            let built = build(|sources| sources.pod_cache = Some((path, entries.into())));
            drop(built);
        }
        Err(error) => crate::is_one_line(&error),
    }
}

/// A ConfigMap with a template: the pod, and after `====` the service.
pub(crate) fn pod_template(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let keys = ["template", "serviceTemplate"];
    let data = keys.into_iter().zip(crate::parts(text)).map(|(key, text)| (key.to_owned(), text.to_owned()));
    let map = ConfigMap { data: Some(data.collect()), ..ConfigMap::default() };
    match Template::from_config_map(&map) {
        Ok(template) => template.warnings.iter().for_each(|warning| crate::is_one_line(warning)),
        Err(error) => crate::is_one_line(&error.to_string()),
    }
}
