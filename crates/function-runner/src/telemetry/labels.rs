//! Metric labels that stay few, whatever image names are thrown at us.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

/// Function names kept apart; all others count as one.
const MOST: usize = 200;
/// Longer names are not worth a label of their own.
const LONGEST: usize = 100;

/// What all functions beyond the bound are called.
pub(crate) const OTHER: &str = "other";

/// The function names seen so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct FunctionLabels {
    seen: Arc<Mutex<HashSet<Arc<str>>>>,
}

impl FunctionLabels {
    /// The label for a function that some evaluator has run.
    pub(crate) fn label(&self, function: &str) -> Arc<str> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = seen.get(function) {
            return known.clone();
        }
        if function.is_empty() || function.len() > LONGEST || seen.len() >= MOST {
            return OTHER.into();
        }
        let label: Arc<str> = function.into();
        seen.insert(label.clone());
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bounded_in_number_and_length() {
        let labels = FunctionLabels::default();
        let distinct: HashSet<_> = (0..10_000).map(|n| labels.label(&format!("f{n}"))).collect();
        assert_eq!(distinct.len(), MOST + 1);
        assert_eq!(&*labels.label("f0"), "f0");
        assert_eq!(&*labels.label("f9999"), OTHER);
        assert_eq!(&*FunctionLabels::default().label(&"x".repeat(101)), OTHER);
        assert_eq!(&*FunctionLabels::default().label(""), OTHER);
    }
}
