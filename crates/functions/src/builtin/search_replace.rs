//! Finds values, and puts others in their place.

use krm::{Budget, Kind, NodeId, Style};

use super::Function;
use crate::config::FunctionConfig;
use crate::field_match::FieldMatch;
use crate::framework;
use crate::line_comments::LineComments;
use crate::list::ResourceList;
use crate::regexp::Expression;
use crate::report::{Finding, Report};
use crate::walk::{Visitor, walk};
use crate::{glob, go};

pub(super) const FUNCTION: Function = Function {
    name: "search-replace",
    aliases: &[],
    summary: "Finds fields by value, path and file, and changes their values and comments.",
    usage: "\
The functionConfig is a ConfigMap whose data says which fields are looked for; all that is given must fit:

  by-value        a field with this value
  by-value-regex  a field whose value has a match of this regular expression in it, in the syntax of Go
  by-path         a field with this path, such as spec.containers[0].image; * is any field, ** any number
                  of fields, [*] any index
  by-file-path    a resource in this file, such as config/*.yaml; * and ? stay within a folder, ** is any
                  number of folders, [a-z] a class of characters, {a,b} are alternatives

and what is done with them:

  put-value       gives them this value, in which ${1}, ${2}... are what groups of by-value-regex matched;
                  where nothing but a by-path without stars and indexes says which field is meant, the
                  field is made if it is missing
  put-comment     gives them this comment, in which ${1}, ${2}... mean the same; of a list, only the path is
                  looked at

Without put-value and put-comment, the results tell which fields were found.
",
    example: "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: search-replace
data:
  by-path: metadata.name
  by-value: the-deployment
  put-value: my-deployment
",
    body: run,
};

/// How deep a field may be put: below what a document may be nested.
const DEEPEST: usize = 400;

/// All keys of the configuration.
const KEYS: [&str; 6] = ["by-value", "by-file-path", "by-value-regex", "by-path", "put-value", "put-comment"];

fn run(list: &mut ResourceList<'_>, config: &FunctionConfig) -> Report {
    let results = framework::data(config)
        .and_then(|data| Search::new(data, list.budget()))
        .and_then(|search| search.perform(list));
    match results {
        Ok(results) if results.is_empty() => {
            let message = "no matches".to_owned();
            Report { results: vec![Finding { message, ..Finding::default() }], ..Report::new() }
        }
        Ok(results) => Report { results, ..Report::new() },
        Err(cause) => {
            let message = format!("failed to perform search-replace operation: {}", go::quoted(&cause));
            framework::failure(message, &cause)
        }
    }
}

/// What is looked for, what is done, and what was found. What is empty was not given.
struct Search {
    value: String,
    expression: Option<Expression>,
    path: String,
    fields: Option<FieldMatch>,
    files: Option<Expression>,
    put_value: String,
    put_comment: String,
    /// A value is to be put at a path, whatever is there.
    means_one_field: bool,
    /// The file of what is being walked through.
    file: String,
    comments: LineComments,
    results: Vec<Finding>,
}

impl Search {
    fn new(data: Vec<(String, String)>, budget: &Budget) -> Result<Self, String> {
        let mut given: [String; 6] = Default::default();
        for (key, value) in data {
            let place = KEYS.iter().position(|known| *known == key).and_then(|at| given.get_mut(at));
            *place.ok_or_else(|| {
                let known = go::list(KEYS.iter().map(|key| go::quoted(key)));
                format!("invalid matcher {}, must be one of {known}", go::quoted(&key))
            })? = value;
        }
        let [value, file_path, expression, path, put_value, put_comment] = given;
        if !value.is_empty() && !expression.is_empty() {
            return Err("only one of [\"by-value\", \"by-value-regex\"] can be provided".to_owned());
        }
        budget.follow("by-value-regex");
        let expression =
            (!expression.is_empty()).then(|| Expression::in_go(&expression, budget)).transpose()?;
        budget.follow("by-file-path");
        let files = (!file_path.is_empty()).then(|| glob::compile(&file_path, budget)).transpose()?;
        // What most of the work is done for.
        budget.follow(match (&expression, &*put_value, &*put_comment, &*path) {
            (Some(_), ..) => "by-value-regex",
            (None, "", "", "") => "by-value",
            (None, "", "", _) => "by-path",
            (None, "", ..) => "put-comment",
            (None, ..) => "put-value",
        });
        let is_plain = path.split('.').all(|element| !element.is_empty() && !element.contains(['*', '[']));
        Ok(Self {
            means_one_field: is_plain && value.is_empty() && expression.is_none() && !put_value.is_empty(),
            value,
            expression,
            fields: (!path.is_empty()).then(|| FieldMatch::new(&path, budget)),
            path,
            files,
            put_value,
            put_comment,
            file: String::new(),
            comments: LineComments::default(),
            results: Vec::new(),
        })
    }

    fn perform(mut self, list: &mut ResourceList<'_>) -> Result<Vec<Finding>, String> {
        for item in list.items() {
            self.file = list.file(item).0.unwrap_or_default();
            if let Some(files) = &self.files
                && !files.is_match(&self.file)?
            {
                continue;
            }
            if self.means_one_field {
                self.put_at_path(list, item)?;
            } else {
                walk(&mut self, list, item)?;
            }
        }
        self.comments.set(list)?;
        Ok(self.results)
    }

    fn put_at_path(&mut self, list: &mut ResourceList<'_>, resource: NodeId) -> Result<(), String> {
        list.budget().read_text(8 * self.path.len())?;
        let mut keys: Vec<&str> = self.path.split('.').collect();
        let key = keys.pop().unwrap_or_default();
        if keys.len() > DEEPEST {
            return Err(format!("a field cannot be nested more than {DEEPEST} levels deep"));
        }
        let mapping = list.ensure_path(resource, &keys)?;
        let value = match list.get(mapping, key) {
            Some(field) => framework::in_place_of(list, field, &self.put_value),
            None => framework::plain(&self.put_value),
        };
        list.set_field(mapping, key, value)?;
        let (path, value) = (self.path.clone(), self.put_value.clone());
        self.report(list, &path, &value)
    }

    fn report(&mut self, list: &ResourceList<'_>, path: &str, value: &str) -> Result<(), String> {
        let is_change = !self.put_value.is_empty() || !self.put_comment.is_empty();
        let done = if is_change { "Mutated field value to" } else { "Matched field value" };
        let message = format!("{done} {}", go::quoted(value));
        self.results.push(framework::finding(list, message, path, &self.file)?);
        Ok(())
    }

    fn fits(&self, text: &str, path: &str) -> Result<bool, String> {
        let value_fits = match &self.expression {
            Some(expression) => expression.is_match(text)?,
            None => !self.value.is_empty() && self.value == text,
        };
        let Some(fields) = &self.fields else { return Ok(value_fits) };
        let any_value = self.value.is_empty() && self.expression.is_none();
        Ok((value_fits || any_value) && fields.is_match(path)?)
    }

    /// A text with what groups of the expression matched in the place of their numbers.
    fn filled(&self, budget: &Budget, text: &str, value: &str) -> Result<String, String> {
        let Some(expression) = &self.expression else { return Ok(text.to_owned()) };
        let Some(groups) = expression.captures(value)? else { return Ok(text.to_owned()) };
        let mut filled = String::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once("${") {
            budget.append(&mut filled, literal)?;
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            match after.split_at_checked(digits).map(|(number, after)| (number, after.strip_prefix('}'))) {
                Some((number, Some(after))) if !number.is_empty() => {
                    let group = number.parse().ok().filter(|&group| group > 0 && !number.starts_with('0'));
                    let group = group
                        .filter(|&group| group < groups.len())
                        .ok_or("unable to resolve capture groups")?;
                    budget.append(&mut filled, groups.get(group).map_or("", |group| group.as_str()))?;
                    rest = after;
                }
                _ => {
                    filled.push_str("${");
                    rest = after;
                }
            }
            // Many parts are nothing at all.
            budget.work(4)?;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

impl Visitor for Search {
    fn visits_aliases(&self) -> bool {
        !self.put_value.is_empty() && self.put_comment.is_empty()
    }

    fn sequence(&mut self, list: &mut ResourceList<'_>, node: NodeId, path: &str) -> Result<(), String> {
        let Some(fields) = self.fields.as_ref().filter(|_| !self.put_comment.is_empty()) else {
            return Ok(());
        };
        if list.is_empty(node) || !fields.is_match(path)? {
            return Ok(());
        }
        let comment = self.put_comment.clone();
        let path = format!("{} # {comment}", self.path);
        self.comments.add(list, node, comment)?;
        let shown = in_brackets(list, node);
        list.budget().check()?;
        self.report(list, &path, &shown)
    }

    fn scalar(&mut self, list: &mut ResourceList<'_>, node: NodeId, path: &str) -> Result<(), String> {
        let old = list.text(node).unwrap_or_default().into_owned();
        if !self.fits(&old, path)? {
            return Ok(());
        }
        let mut comment = list.line_comment(node).map(Into::into);
        if !self.put_comment.is_empty() {
            let new = self.filled(list.budget(), &self.put_comment, &old)?;
            comment = Some(if new.starts_with('#') { new.clone() } else { format!("# {new}") });
            self.comments.add(list, node, new)?;
        }
        if !self.put_value.is_empty() {
            let new = self.filled(list.budget(), &self.put_value, &old)?;
            let new = framework::in_place_of(list, node, &new);
            list.set(node, new)?;
        }
        if !self.file.is_empty() {
            let written = written(list, node);
            let comment = comment.map(|comment: String| format!(" {comment}")).unwrap_or_default();
            self.report(list, path, &(written + &comment))?;
        }
        Ok(())
    }
}

/// A scalar as it is written, with its quotes.
fn written(list: &ResourceList<'_>, node: NodeId) -> String {
    match list.style(node) {
        Style::Plain => list.text(node).unwrap_or_default().into_owned(),
        _ => list.text_of(node).trim().to_owned(),
    }
}

/// A value as it is written in brackets on one line.
fn in_brackets(list: &ResourceList<'_>, node: NodeId) -> String {
    let of_all = |open: &str, close: &str| {
        let part = |child| {
            let value = in_brackets(list, child);
            let part = match list.key(child) {
                Some(key) => format!("{key}: {value}"),
                None => value,
            };
            // It is put together anew for each collection around it.
            let is_too_much = list.budget().memory(48 + 4 * part.len()).is_err();
            if is_too_much { String::new() } else { part }
        };
        let parts: Vec<String> = list.children(node).map(part).collect();
        format!("{open}{}{close}", parts.join(", "))
    };
    match list.kind(node) {
        Kind::Mapping => of_all("{", "}"),
        Kind::Sequence => of_all("[", "]"),
        Kind::Scalar => written(list, node),
    }
}
