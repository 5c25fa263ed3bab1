pub(crate) mod agreement;
pub(crate) mod generate;
