//! The functions there are.

mod apply_replacements;
mod apply_setters;
mod create_setters;
mod ensure_name_substring;
mod list_setters;
mod remove_local_config_resources;
mod search_replace;
mod set_annotations;
mod set_image;
mod set_labels;
mod set_namespace;
mod set_project_id;
mod upsert_resource;

use crate::config::FunctionConfig;
use crate::list::ResourceList;
use crate::report::Report;

/// A built-in function.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// Its name in the catalog, which is the last element of its image.
    pub name: &'static str,
    /// Other names of the same function.
    pub aliases: &'static [&'static str],
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// How it is used: all that its functionConfig may say.
    pub usage: &'static str,
    /// A functionConfig that works.
    pub example: &'static str,
    /// What it does to a list.
    pub(crate) body: fn(&mut ResourceList<'_>, &FunctionConfig) -> Report,
}

/// All functions, by name.
const FUNCTIONS: &[Function] = &[
    apply_replacements::FUNCTION,
    apply_setters::FUNCTION,
    create_setters::FUNCTION,
    ensure_name_substring::FUNCTION,
    list_setters::FUNCTION,
    remove_local_config_resources::FUNCTION,
    search_replace::FUNCTION,
    set_annotations::FUNCTION,
    set_image::FUNCTION,
    set_labels::FUNCTION,
    set_namespace::FUNCTION,
    set_project_id::FUNCTION,
    upsert_resource::FUNCTION,
];

/// All functions, by name.
pub fn all() -> &'static [Function] {
    FUNCTIONS
}

/// The function of this name.
pub fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name || function.aliases.contains(&name))
}
