//! What the benchmarks share: inputs, rounds, memory, and the table of results.

pub mod before;
pub mod contestants;
pub mod input;
pub mod measure;
pub mod memory;
pub mod table;
