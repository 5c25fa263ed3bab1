//! Comments at the end of lines, also for values that have no line of their own.

use std::collections::BTreeMap;

use krm::{NodeId, Style, Value};

use crate::list::ResourceList;

/// Comments to be set, each with its value. They are set all at once, behind a walk: a collection in brackets
/// whose entries get comments is written anew, with new nodes, as one entry a line.
#[derive(Debug, Default)]
pub(crate) struct LineComments(Vec<(NodeId, String)>);

impl LineComments {
    /// Notes a comment.
    pub(crate) fn add(
        &mut self,
        list: &ResourceList<'_>,
        node: NodeId,
        comment: String,
    ) -> Result<(), String> {
        if list.style(list.root()) == Style::Flow {
            return Err("comments cannot be added to JSON; give the resources as YAML".to_owned());
        }
        list.budget().memory(size_of::<(NodeId, String)>() + 2 * comment.len())?;
        self.0.push((node, comment));
        Ok(())
    }

    /// Sets them.
    pub(crate) fn set(self, list: &mut ResourceList<'_>) -> Result<(), String> {
        let mut in_brackets: BTreeMap<NodeId, BTreeMap<NodeId, String>> = BTreeMap::new();
        for (node, comment) in self.0 {
            match outermost_brackets(list, node) {
                Some(collection) => {
                    in_brackets.entry(collection).or_default().insert(node, comment);
                }
                None => list.set_line_comment(node, Some(&comment)),
            }
        }
        for (collection, mut comments) in in_brackets {
            let old = all_in(list, collection);
            let comments: Vec<Option<String>> = old
                .into_iter()
                .map(|node| comments.remove(&node).or_else(|| list.line_comment(node).map(Into::into)))
                .collect();
            let value = list.value(collection);
            list.set(collection, Value::null())?;
            list.set(collection, value)?;
            for (node, comment) in all_in(list, collection).into_iter().zip(comments) {
                list.set_line_comment(node, comment.as_deref());
            }
        }
        Ok(list.budget().check()?)
    }
}

/// The outermost collection in brackets that a value is in.
fn outermost_brackets(list: &ResourceList<'_>, node: NodeId) -> Option<NodeId> {
    let around =
        std::iter::successors(list.parent(node), |&node| list.parent(node).filter(|_| list.budget().step(1)));
    around.take_while(|&node| list.style(node) == Style::Flow).last()
}

/// All values in a collection, in their order.
fn all_in(list: &ResourceList<'_>, collection: NodeId) -> Vec<NodeId> {
    fn add(list: &ResourceList<'_>, collection: NodeId, all: &mut Vec<NodeId>) {
        for child in list.children(collection) {
            all.push(child);
            add(list, child, all);
        }
    }
    let mut all = Vec::new();
    add(list, collection, &mut all);
    all
}
