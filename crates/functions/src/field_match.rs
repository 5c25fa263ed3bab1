//! Patterns of field paths, such as `spec.**.containers[*].image`.

use krm::Budget;

/// A pattern of whole paths: `*` is one element, `**` any number of them, `[*]` any index.
#[derive(Debug)]
pub(crate) struct FieldMatch {
    elements: Vec<String>,
    budget: Budget,
}

impl FieldMatch {
    pub(crate) fn new(pattern: &str, budget: &Budget) -> Self {
        Self { elements: pattern.split('.').map(str::to_owned).collect(), budget: budget.clone() }
    }

    /// Whether a path fits. A key with dots in it counts as several elements.
    pub(crate) fn is_match(&self, path: &str) -> Result<bool, String> {
        // Which beginnings of the pattern fit all of the path that was looked at.
        let mut fitting = vec![false; self.elements.len() + 1];
        fitting[0] = true;
        self.skip(&mut fitting);
        for element in path.split('.') {
            self.budget.work(1 + self.elements.len())?;
            for (at, pattern) in self.elements.iter().enumerate().rev() {
                fitting[at + 1] = match &**pattern {
                    "**" => fitting[at] || fitting[at + 1],
                    pattern => fitting[at] && fits(element, pattern),
                };
            }
            fitting[0] = false;
            self.skip(&mut fitting);
            if !fitting.contains(&true) {
                return Ok(false);
            }
        }
        Ok(fitting.last() == Some(&true))
    }

    /// `**` also fits no element at all.
    fn skip(&self, fitting: &mut [bool]) {
        for (at, pattern) in self.elements.iter().enumerate() {
            fitting[at + 1] |= fitting[at] && pattern == "**";
        }
    }
}

/// Whether an element of a path, such as `name` or `containers[0]`, fits that of a pattern.
fn fits(element: &str, pattern: &str) -> bool {
    if element == pattern || pattern == "*" {
        return true;
    }
    let (Some((name, indexes)), Some((wanted, wanted_indexes))) =
        (element.split_once('['), pattern.split_once('['))
    else {
        return false;
    };
    // In a list of lists, only the first index counts.
    let first = |indexes| str::split(indexes, '[').next();
    let index = first(wanted_indexes);
    (wanted == "*" || wanted == name) && (index == Some("*]") || index == first(indexes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], other: &[&str]) {
        let fields = FieldMatch::new(pattern, &Budget::default());
        for path in matching {
            assert!(fields.is_match(path).unwrap(), "{pattern} does not match {path}");
        }
        for path in other {
            assert!(!fields.is_match(path).unwrap(), "{pattern} matches {path}");
        }
    }

    #[test]
    fn elements_and_stars() {
        check("a.b.c", &["a.b.c"], &["a.c.b", "a.b", "a.b.c.d", "axb.c", "xa.b.c"]);
        check("a.*.c", &["a.b.c", "a.b[0].c"], &["a.c", "a.b.b.c"]);
        check("a.*.c.*", &["a.b.c.d"], &["a.b.c"]);
        check("a.**.c", &["a.c", "a.b.c", "a.b.d[0].e.c"], &["a", "c", "a.b", "b.a.c"]);
        check("**", &["a", "a.b"], &[]);
        check("**.a", &["a", "b.a"], &["a.b", "ba"]);
        check("a.**.c.*.d", &["a.b.c.c.d"], &["a.b.c.d"]);
    }

    #[test]
    fn indexes() {
        check("a.b[1].c", &["a.b[1].c"], &["a.b[0].c", "a.b.c", "a.b[11].c"]);
        check("a.b[*].c", &["a.b[0].c", "a.b[10].c"], &["a.b.c", "a.c[0].c"]);
        check("a.*[*]", &["a.b[0]"], &["a.b"]);
        check("*[0]", &["b[0]", "b[0][3]"], &["b[1][0]"]);
        check("**.c[*].d.*[*].**.f", &["a.b.c[0].d.e[1].f"], &["a.b.c.d.e[1].f"]);
        check("**.c[*].d.d.*[*].**.f", &[], &["a.c[2].c[0].d.e[1].f"]);
    }

    #[test]
    fn keys_with_dots_are_several_elements() {
        check("metadata.annotations.example.com/a", &["metadata.annotations.example.com/a"], &[]);
        check("metadata.annotations.*", &["metadata.annotations.a"], &["metadata.annotations.example.com/a"]);
    }

    #[test]
    fn comparing_ends() {
        let fields = FieldMatch::new(&"a.**.".repeat(1000), &Budget::default());
        assert_eq!(fields.is_match("b"), Ok(false));
        assert!((0..10_000).any(|_| fields.is_match("b.a.b").is_err()));
    }
}
