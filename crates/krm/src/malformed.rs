//! Why an output is not a `ResourceList`.

/// Why a function's output is not exactly one object of kind `ResourceList`.
///
/// The texts are read by the people who wrote or chose the function. Lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Nothing, or nothing but blanks, comments, document markers and null.
    #[error("the output is empty: the function must write one ResourceList to its stdout")]
    Empty,
    /// Bytes that are not text.
    #[error("the output is not valid UTF-8 at byte {byte} (line {line}): the function must write text")]
    NotUtf8 {
        /// Offset of the first bad byte.
        byte: usize,
        /// The line it is on.
        line: usize,
    },
    /// A byte order mark of another encoding.
    #[error("the output is encoded as {encoding}: the function must write UTF-8")]
    OtherEncoding {
        /// Name of the encoding.
        encoding: &'static str,
    },
    /// Neither YAML nor JSON.
    #[error("the output is not valid YAML at line {line} column {column}: {problem}")]
    Yaml {
        /// Where reading stopped.
        line: usize,
        /// Where on that line.
        column: usize,
        /// The parser's words.
        problem: String,
    },
    /// The object is complete, but something that is not YAML follows.
    #[error(
        "the output goes on after its ResourceList at line {line} column {column}: {problem}; \
         the function must write logs to stderr"
    )]
    TrailingGarbage {
        /// Where reading stopped.
        line: usize,
        /// Where on that line.
        column: usize,
        /// The parser's words.
        problem: String,
    },
    /// The document is a list or a bare text.
    #[error("the output is {found}, not a ResourceList: the function must write one object of that kind")]
    NotAMapping {
        /// What it is instead.
        found: &'static str,
    },
    /// More than one document.
    #[error(
        "the output has a second document at line {line}: \
         the function must write all objects as items of one ResourceList"
    )]
    SeveralDocuments {
        /// Where the second document's content starts.
        line: usize,
    },
    /// The object has no `kind`, or `kind: null`.
    #[error("the output has no kind: it must be an object of kind ResourceList")]
    KindMissing,
    /// `kind` is a collection, or an alias to one.
    #[error("the output's kind is {found}, not the text ResourceList")]
    KindNotText {
        /// What it is instead.
        found: &'static str,
    },
    /// Another kind of object.
    #[error("the output's kind is {kind:?}, not ResourceList")]
    WrongKind {
        /// The kind found, shortened if very long.
        kind: String,
    },
    /// A field of the object appears twice, so that readers would differ on its value.
    #[error("the output has the field {key:?} twice, again at line {line}: keep one of them")]
    DuplicateField {
        /// The field's name, shortened if very long.
        key: String,
        /// Where it appears again.
        line: usize,
    },
    /// No `ResourceList` looks like this.
    #[error("the output has more than {limit} fields at its top level: a ResourceList has about five")]
    TooManyFields {
        /// How many are read.
        limit: usize,
    },
}
