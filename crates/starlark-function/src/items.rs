//! Puts the resources that a program left behind in the place of those that there were.

use functions::ResourceList;
use krm::{EditError, NodeId, Value};

/// A resource that a program left behind.
#[derive(Debug)]
pub(crate) struct Item {
    /// Which of the resources it is that there were, if it is one of them.
    pub(crate) origin: Option<usize>,
    pub(crate) value: Value,
}

/// Makes the list what the program says. What is the same stays as it is written, also if it moves.
pub(crate) fn write(
    list: &mut ResourceList<'_>,
    before: &[NodeId],
    after: Vec<Item>,
) -> Result<(), EditError> {
    let mut stays = vec![false; before.len()];
    // As long as resources are in their old order they stay in their places; all behind them are written anew.
    let mut next = Some(0);
    for Item { origin, value } in after {
        let node = origin.and_then(|origin| before.get(origin).copied());
        match (origin, node, next) {
            (Some(origin), Some(node), Some(least)) if origin >= least => {
                list.set(node, value)?;
                if let Some(stays) = stays.get_mut(origin) {
                    *stays = true;
                }
                next = Some(origin + 1);
            }
            (_, Some(node), _) => {
                next = None;
                let copy = list.add_item_copy(node)?;
                list.set(copy, value)?;
            }
            (_, None, _) => {
                next = None;
                list.add_item(value)?;
            }
        }
    }
    for (node, _) in before.iter().zip(stays).filter(|(_, stays)| !stays) {
        list.remove(*node);
    }
    Ok(())
}
