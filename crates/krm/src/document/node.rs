//! One value of a document, and the arena it lives in.

/// A value of a [`Document`](super::Document): a mapping, a sequence or a scalar.
///
/// A handle, cheap to copy. It stays valid for the life of its document; after the value was removed it
/// reads as an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    pub(super) const ROOT: Self = Self(0);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Fields, each with a key.
    Mapping,
    /// A list of values.
    Sequence,
    /// A text, number, boolean or null.
    Scalar,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A scalar without quotes.
    Plain,
    /// A scalar in single quotes.
    Single,
    /// A scalar in double quotes.
    Double,
    /// A scalar after `|`.
    Literal,
    /// A scalar after `>`.
    Folded,
    /// A collection by indentation.
    Block,
    /// A collection in brackets.
    Flow,
}

/// No node: the end of a list of siblings, or the parent of the root.
pub(super) const NONE: u32 = u32::MAX;

/// Facts about a node that are true or not.
pub(super) mod flag {
    /// Not in the source: its key and content are in [`super::super::edit::Fresh`].
    pub(crate) const NEW: u16 = 1;
    /// In the source, but its content is no longer what the source says.
    pub(crate) const CHANGED: u16 = 1 << 1;
    /// In the source, but its key is no longer what the source says.
    pub(crate) const RENAMED: u16 = 1 << 2;
    pub(crate) const REMOVED: u16 = 1 << 3;
    /// Something below it, or about it, is not as in the source.
    pub(crate) const TOUCHED: u16 = 1 << 4;
    /// Its comments are no longer what the source says.
    pub(crate) const COMMENTED: u16 = 1 << 5;
    /// `*name` in the source; its content is a copy of the anchor's.
    pub(crate) const ALIAS: u16 = 1 << 6;
    /// It has an anchor or a tag: see [`super::super::Document::properties`].
    pub(crate) const PROPERTIES: u16 = 1 << 7;
    /// Its key starts with `?` or has an anchor or a tag, so that the field starts before the key.
    pub(crate) const EXPLICIT: u16 = 1 << 8;
    /// An alias that, when the document was last written, was what its anchor was.
    pub(crate) const SAME: u16 = 1 << 10;
    /// In an alias, or in what was copied from one: most of it will not be written.
    pub(crate) const IN_ALIAS: u16 = 1 << 11;
    /// A merge key: what it stands for is to be seen, it is not.
    pub(crate) const MERGE: u16 = 1 << 12;
    /// A field that is not written here, but comes from a merge key.
    pub(crate) const MERGED: u16 = 1 << 13;
    /// A key of a flow mapping without a colon.
    pub(crate) const NO_COLON: u16 = 1 << 9;
}

/// A node of the arena: 32 bytes, so that a document of usual density takes less than twice its text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    /// Where the key starts, or the dash of an entry in block style.
    pub(super) key: u32,
    pub(super) key_length: u16,
    pub(super) flags: u16,
    /// The value without its anchor and tag. A block scalar starts at its `|` or `>` and ends with its last
    /// line; a block collection reaches from its first key or dash to the end of its last value. What is
    /// not written at all is an empty span after its colon or dash.
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) parent: u32,
    pub(super) first: u32,
    pub(super) next: u32,
    pub(super) kind: Kind,
    pub(super) style: Style,
}

impl Node {
    pub(super) fn has(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// Whether it has a place in the source: its own, or, as a copy, that of what it is a copy of.
    pub(super) fn in_source(&self) -> bool {
        !self.has(flag::NEW)
    }
}
