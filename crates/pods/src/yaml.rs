//! YAML as people write it into configuration.

use serde::de::DeserializeOwned;
use serde_saphyr::UserMessageFormatter;

/// What people write has some hundred parts; what is made to hurt has millions.
const MOST_PARTS: usize = 100_000;

/// Reads a document, or says what is wrong with it and in which line. Numbers are read as Kubernetes
/// reads them: `0555` is octal.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: MOST_PARTS, max_recorded_anchor_events: MOST_PARTS },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MOST_PARTS },
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let message = error.render_with_formatter(&UserMessageFormatter);
        message.lines().next().unwrap_or_default().to_owned()
    })
}
