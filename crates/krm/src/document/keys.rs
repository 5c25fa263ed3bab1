//! Finding the fields of wide mappings: by a walk, all of them would take n² steps.

use std::cell::RefCell;
use std::collections::HashMap;

use super::node::NodeId;

/// Mappings with more fields than this are remembered once one of them was looked for.
pub(super) const FEW: usize = 48;

/// The fields of wide mappings by their keys, as they are now.
#[derive(Debug, Default)]
pub(super) struct Keys(RefCell<HashMap<u32, HashMap<String, NodeId>>>);

impl Keys {
    /// Whether [`Keys::find`] knows the fields of a mapping.
    pub(super) fn is_remembered(&self, mapping: NodeId) -> bool {
        self.0.borrow().contains_key(&mapping.0)
    }

    /// The field with this key of a mapping that is remembered.
    pub(super) fn find(&self, mapping: NodeId, key: &str) -> Option<NodeId> {
        self.0.borrow().get(&mapping.0)?.get(key).copied()
    }

    /// Remembers a mapping; of two fields with one key, the first.
    pub(super) fn remember(&self, mapping: NodeId, fields: impl Iterator<Item = (String, NodeId)>) {
        let mut known = HashMap::new();
        for (key, field) in fields {
            known.entry(key).or_insert(field);
        }
        self.0.borrow_mut().insert(mapping.0, known);
    }

    /// A field was added.
    pub(super) fn added(&mut self, mapping: NodeId, key: &str, field: NodeId) {
        if let Some(known) = self.0.get_mut().get_mut(&mapping.0) {
            known.entry(key.to_owned()).or_insert(field);
        }
    }

    /// A field was removed.
    pub(super) fn removed(&mut self, mapping: NodeId, key: &str) {
        if let Some(known) = self.0.get_mut().get_mut(&mapping.0) {
            known.remove(key);
        }
    }

    /// A mapping has become something else.
    pub(super) fn forget(&mut self, mapping: NodeId) {
        self.0.get_mut().remove(&mapping.0);
    }
}
