//! The kinds of the API group `config.porch.kpt.dev` that a function runner reads.

mod conform;
mod definitions;
mod document;
mod field;
mod file;
mod function_config;
mod quantity;
mod rules;
mod service_template;
mod versions;

pub use definitions::definitions;
pub use field::{FieldPath, Problem, Step};
pub use file::{File, FileObject, FileProblem};
pub use function_config::{
    BinaryExecutor, ContainerOverrides, DEFAULT_TIME_TO_LIVE, ExecutorStatus, FunctionConfig,
    FunctionConfigSpec, FunctionConfigStatus, GoExecutor, PodExecutor, TemplateOverrides,
};
pub use rules::{BinaryRules, Checked, FunctionRules, GoRules, PodRules, TagRule};
pub use service_template::{ServiceTemplate, ServiceTemplateBody};
pub use versions::Versions;

/// The group of all kinds here.
pub const GROUP: &str = "config.porch.kpt.dev";
/// The version of all kinds here.
pub const VERSION: &str = "v1alpha1";
/// Group and version, as objects name them.
pub const API_VERSION: &str = "config.porch.kpt.dev/v1alpha1";
