//! The documents name the functions there are.

use std::{fs, path::Path};

use function_runner::builtin;

#[test]
fn the_table_of_the_document_names_every_function_and_no_other() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let document = fs::read_to_string(checkout.join("docs/builtin-functions.md")).unwrap();
    let rows = document.lines().skip_while(|line| !line.starts_with("| function |")).skip(2);
    let listed: Vec<_> =
        rows.map_while(|line| line.strip_prefix("| `")).filter_map(|line| line.split('`').next()).collect();
    let names: Vec<_> = builtin::all().iter().map(builtin::Builtin::name).collect();
    assert_eq!(listed, names);
}
