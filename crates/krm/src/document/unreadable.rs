//! Why a text cannot be read as a document.

/// Why a text is not one document that functions can work on. Lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// Nothing but blanks, comments and document markers.
    #[error("there is nothing in it but blanks and comments")]
    Empty,
    /// Bytes that are not text.
    #[error("line {line}: not valid UTF-8")]
    NotUtf8 {
        /// The line with the first bad byte.
        line: usize,
    },
    /// Not YAML.
    #[error("line {line} column {column}: {problem}")]
    Yaml {
        /// Where reading stopped.
        line: usize,
        /// Where on that line.
        column: usize,
        /// The parser's words.
        problem: String,
    },
    /// A carriage return that is not followed by a line feed.
    #[error("line {line}: a carriage return without a line feed; use line feeds as line breaks")]
    CarriageReturn {
        /// The line it is on.
        line: usize,
    },
    /// More than one document.
    #[error("line {line}: a second document starts here; there must be one only")]
    SeveralDocuments {
        /// Where the second document's content starts.
        line: usize,
    },
    /// A field is there twice, so that readers would differ on its value.
    #[error("line {line}: the field {key:?} is there already; keep one of them")]
    DuplicateField {
        /// The field's name, shortened if very long.
        key: String,
        /// Where it appears again.
        line: usize,
    },
    /// Deeper than any real manifest.
    #[error("line {line}: nested deeper than {limit} levels")]
    TooDeep {
        /// How deep it may be.
        limit: usize,
        /// Where it goes deeper.
        line: usize,
    },
    /// A key that no Kubernetes object has.
    #[error("line {line}: the key is longer than 65535 bytes")]
    LongKey {
        /// Where the key starts.
        line: usize,
    },
    /// A mapping, a sequence, an alias or nothing in the place of a key, or a key alone.
    #[error("line {line}: expected a text as key, and a colon")]
    OddKey {
        /// Where the key starts.
        line: usize,
    },
    /// An alias inside of what it stands for.
    #[error("line {line}: the alias stands for something that contains it")]
    EndlessAlias {
        /// Where the alias is.
        line: usize,
    },
    /// Aliases of aliases, to fill the memory of whoever expands them.
    #[error("line {line}: the aliases up to here stand for more than {limit} values")]
    TooManyAliases {
        /// How many they may stand for.
        limit: usize,
        /// Where the limit is passed.
        line: usize,
    },
    /// More anchors and tags than any real manifest has.
    #[error("line {line}: there are more than {limit} anchors and tags up to here")]
    TooManyAnchors {
        /// How many there may be.
        limit: usize,
        /// Where the limit is passed.
        line: usize,
    },
    /// More than a call may cost.
    #[error(transparent)]
    OverBudget(#[from] crate::OverBudget),
    /// Too much for the positions kept of it.
    #[error("it is larger than {limit} bytes")]
    TooLarge {
        /// How large it may be.
        limit: usize,
    },
}
