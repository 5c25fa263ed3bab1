//! Lists as functions are given them.

/// A list of resources, with a functionConfig unless that is empty.
pub(crate) fn list<T: AsRef<str>>(config: &str, resources: &[T]) -> String {
    let mut text = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n".to_owned();
    if !config.is_empty() {
        text.push_str("functionConfig:\n");
        text.push_str(&indented(config));
    }
    text.push_str("items:\n");
    for resource in resources {
        text.push('-');
        text.push_str(indented(resource.as_ref()).get(1..).unwrap());
    }
    text
}

/// A text that stands two columns further in.
pub(crate) fn indented(text: &str) -> String {
    text.trim_start_matches('\n')
        .lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") })
        .collect()
}
