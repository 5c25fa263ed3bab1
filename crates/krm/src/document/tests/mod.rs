pub(crate) mod agreement;
#[cfg(test)]
mod basics;
pub(crate) mod edits;
#[cfg(test)]
mod merges;
#[cfg(test)]
mod places;
#[cfg(test)]
mod scalars;
