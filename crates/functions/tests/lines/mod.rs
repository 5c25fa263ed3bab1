//! Resources in all styles of YAML, with comments.

/// Lines of a resource in all styles. None of them has a field that is set.
pub(crate) const LINES: &[&str] = &[
    "k: plain   # comment\n",
    "# a comment of its own\n",
    "\n",
    "k: 'single'  # it''s\n",
    "k: \"double \\u0041\"\n",
    "k: |\n  block\n    text\n\n  more\n",
    "k: >-  # folded\n  some\n  text\n",
    "k: [a,  \"b\" , {c: d}] # list\n",
    "k: {a:   b,\n  c: d} # mapping\n",
    "k:\n- a   # entry\n-   b: c\n    d: [e]\n- - f\n",
    "k:\n    deep:\n      # inside\n      er: 1_000\n    on: yes\n",
    "k: &anchor {a: b}\n",
    "k: !!str 12\n",
    "? k\n: value\n",
    "k:   \n",
    "k: several\n  lines # end\n",
];

/// A resource of some lines with the target among them.
pub(crate) fn resource(lines: &[usize], target: &str, at: usize) -> String {
    let mut parts = vec!["apiVersion: v1\nkind: Pod\n".to_owned()];
    for (index, &line) in lines.iter().enumerate() {
        let line = LINES[line];
        // Keys are there once.
        let own = if line.starts_with('#') {
            line.to_owned()
        } else {
            line.replacen('k', &format!("key{index}"), 1)
        };
        parts.push(own.replace("anchor", &format!("anchor{index}")));
    }
    parts.insert(at.min(lines.len()) + 1, target.to_owned());
    parts.concat()
}
