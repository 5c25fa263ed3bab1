//! Makes one input from one number.

use functions::Function;

use crate::configurations;
use crate::maker::Maker;
use crate::resources;

/// How long the configuration may become before no more is added to it, and how long all of the input may.
const CONFIGURATION: usize = 24 << 10;
const ALL: usize = 64 << 10;

/// An input, for which function it is, and what is in it.
pub(crate) struct Made {
    pub(crate) function: &'static Function,
    pub(crate) what: String,
    pub(crate) input: String,
}

pub(crate) fn make(seed: u64) -> Made {
    let mut maker = Maker::new(seed);
    let function = &functions::all()[maker.below(functions::all().len())];
    maker.text("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n");
    maker.limit = CONFIGURATION;
    maker.within(|maker| configurations::write(maker, function.name));
    maker.limit = ALL;
    maker.text("items:\n");
    resources::write(&mut maker);
    let what = format!("{}; {}", function.name, maker.notes());
    Made { function, what, input: maker.out }
}
