//! The fuzzer: libFuzzer with the target that `FUZZ_TARGET` names.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<fuzz::Target> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        match fuzz::target(&name) {
            Some(target) => TARGET.get_or_init(|| target),
            None => {
                let names: Vec<_> = fuzz::TARGETS.iter().map(|target| target.name).collect();
                eprintln!("FUZZ_TARGET is {name:?}; it must be one of {}", names.join(", "));
                std::process::exit(2)
            }
        };
    },
    |input: &[u8]| {
        if let Some(target) = TARGET.get() {
            (target.body)(input);
        }
    }
);
