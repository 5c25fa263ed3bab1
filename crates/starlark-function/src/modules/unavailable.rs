//! Modules of the catalog's function that are not here. They can be loaded, since programs load more than
//! they use, but to use them is an error that says so.

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::Value;
use starlark::values::dict::DictRef;
use starlark::values::none::NoneType;
use starlark::values::tuple::UnpackTuple;

use super::problem;

#[starlark_module]
fn refusal(builder: &mut GlobalsBuilder) {
    fn refuse<'v>(
        #[starlark(args)] arguments: UnpackTuple<Value<'v>>,
        #[starlark(kwargs)] named: DictRef<'v>,
    ) -> starlark::Result<NoneType> {
        let _ = (arguments, named);
        Err(problem(
            "this module is not available in the built-in starlark function; \
             let the service run the function's image instead",
        ))
    }
}

/// A namespace whose members only refuse.
fn module(builder: &mut GlobalsBuilder, name: &str, members: &[&str]) {
    builder.namespace(name, |builder| members.iter().for_each(|member| function(builder, member)));
}

/// A function that only refuses.
fn function(builder: &mut GlobalsBuilder, name: &str) {
    let refusals = GlobalsBuilder::new().with(refusal).build();
    for (_, refuse) in refusals.iter() {
        builder.set(name, refuse);
    }
    builder.frozen_heap().add_reference(refusals.heap());
}

pub(super) fn bsoup(builder: &mut GlobalsBuilder) {
    module(builder, "bsoup", &["parseHtml"]);
}

pub(super) fn geo(builder: &mut GlobalsBuilder) {
    module(
        builder,
        "geo",
        &["Point", "Line", "Polygon", "MultiPolygon", "within", "intersects", "parseGeoJSON"],
    );
}

pub(super) fn html(builder: &mut GlobalsBuilder) {
    function(builder, "html");
}

pub(super) fn http(builder: &mut GlobalsBuilder) {
    module(builder, "http", &["get", "put", "post", "delete", "patch", "options"]);
}

pub(super) fn time(builder: &mut GlobalsBuilder) {
    let members = ["from_timestamp", "is_valid_timezone", "now", "parse_duration", "parse_time", "time"];
    module(builder, "time", &members);
}

pub(super) fn xlsx(builder: &mut GlobalsBuilder) {
    module(builder, "xlsx", &["get_url"]);
}

pub(super) fn zipfile(builder: &mut GlobalsBuilder) {
    function(builder, "ZipFile");
}
