//! What reads strangers' texts, for inputs that a fuzzer makes.

use crate::Reference;
use crate::credentials::{self, Login, Malformed};

/// The logins that a Docker configuration itself has for an image.
pub fn logins(config: &[u8], image: &Reference) -> Result<Vec<Login>, Malformed> {
    credentials::logins(config, image)
}
