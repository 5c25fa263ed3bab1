//! Texts made to hurt.

/// A few hundred bytes that stand for a million million values.
pub(crate) fn yaml_bomb() -> String {
    let mut lines = vec![format!("a0: &a0 [{}]", "x, ".repeat(10))];
    lines.extend((1..12).map(|level| {
        let aliases = format!("*a{}, ", level - 1).repeat(10);
        format!("a{level}: &a{level} [{aliases}]")
    }));
    lines.join("\n") + "\n"
}
