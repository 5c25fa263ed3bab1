//! The Docker configuration.

use registry::{Reference, fuzzing};

/// A Docker configuration, of which the logins of some images are asked for.
pub(crate) fn docker_config(input: &[u8]) {
    let images =
        ["app", "example.com/team/app:v1", "example.com:5000/a/b", "[::1]:5000/a", "a.b.example.com/c"];
    for image in images {
        match fuzzing::logins(input, &Reference::parse(image).unwrap()) {
            Ok(logins) => logins.iter().for_each(|login| {
                // What is shown of a login has no secret in it: only the key of its entry.
                let _ = format!("{login:?}");
            }),
            Err(error) => crate::is_one_line(&error.to_string()),
        }
    }
}
