//! A configuration for each function: all that its schema has, in sizes and shapes by chance.

use crate::maker::{Maker, quoted};
use crate::paths;
use crate::resources;

/// Writes the functionConfig of a function.
pub(crate) fn write(maker: &mut Maker, function: &str) {
    match function {
        "set-namespace" => set_namespace(maker),
        "set-labels" => set_labels(maker),
        "set-annotations" => set_annotations(maker),
        "set-image" => set_image(maker),
        "ensure-name-substring" => ensure_name_substring(maker),
        "apply-replacements" => apply_replacements(maker),
        "apply-setters" | "create-setters" => setters(maker),
        "search-replace" => search_replace(maker),
        "set-project-id" => set_project_id(maker),
        "upsert-resource" => upsert_resource(maker),
        "list-setters" | "remove-local-config-resources" => config_map(maker, |_| {}),
        other => panic!("{other} has no configurations here; write them"),
    }
    // What functions do not look at is read as well.
    if maker.once_in(6) {
        maker.aliases();
    }
    if maker.once_in(8) {
        let list = maker.again("unknown entries", &["a,", "{},", "'',", "[[]],"]);
        maker.line(format_args!("unknown: [{list}]"));
    }
}

fn config_map(maker: &mut Maker, data: impl FnOnce(&mut Maker)) {
    maker.line("apiVersion: v1");
    maker.line("kind: ConfigMap");
    maker.collection("data", |maker| {
        maker.line("# what follows is the function's");
        data(maker);
    });
}

fn own_kind(maker: &mut Maker, kind: &str) {
    maker.line("apiVersion: fn.kpt.dev/v1alpha1");
    maker.line(format_args!("kind: {kind}"));
}

fn set_project_id(maker: &mut Maker) {
    let project = maker.any("length of the project");
    config_map(maker, |maker| maker.field("project-id", &project));
}

fn set_namespace(maker: &mut Maker) {
    let namespace = maker.any("length of the namespace");
    let matcher = maker.once_in(4).then(|| maker.any("length of the matcher"));
    let fields = |maker: &mut Maker| {
        maker.field("namespace", &namespace);
        if let Some(matcher) = matcher {
            maker.field("namespaceMatcher", &matcher);
        }
    };
    if maker.once_in(2) {
        return config_map(maker, fields);
    }
    own_kind(maker, "SetNamespace");
    fields(maker);
}

fn set_labels(maker: &mut Maker) {
    own_kind(maker, "SetLabels");
    maker.many_fields("labels");
}

fn set_annotations(maker: &mut Maker) {
    own_kind(maker, "SetAnnotations");
    maker.many_fields("annotations");
    field_specs(maker, "additionalAnnotationFields");
}

fn set_image(maker: &mut Maker) {
    own_kind(maker, "SetImage");
    maker.collection("image", |maker| {
        let name = paths::expression(maker);
        maker.field("name", &name);
        maker.field("newTag", "v1");
        for key in ["newName", "digest", "tagSuffix"] {
            if maker.once_in(3) {
                let value = maker.any(key);
                maker.field(key, &value);
            }
        }
    });
    field_specs(maker, "additionalImageFields");
}

fn ensure_name_substring(maker: &mut Maker) {
    own_kind(maker, "EnsureNameSubstring");
    let substring = maker.any("length of the substring");
    maker.field("substring", &substring);
    let mode = maker.pick(&["prepend", "append"]);
    maker.field("editMode", mode);
    field_specs(maker, "additionalNameFields");
}

fn field_specs(maker: &mut Maker, key: &str) {
    let count = maker.count(key);
    // Many that are the same, or many that are not.
    let same = maker.once_in(2).then(|| paths::field_spec_path(maker));
    maker.line(format_args!("{key}:"));
    maker.times(count, |maker, _| {
        let path = same.clone().unwrap_or_else(|| paths::field_spec_path(maker));
        maker.line(format_args!("- path: {}", quoted(&path)));
        maker.within(|maker| {
            let create = maker.pick(&["create: true", "create: false", "kind: A", "group: ''"]);
            maker.line(create);
        });
    });
}

fn apply_replacements(maker: &mut Maker) {
    own_kind(maker, "ApplyReplacements");
    maker.line("replacements:");
    let count = maker.count("replacements").max(1);
    maker.times(count, |maker, _| {
        if maker.once_in(3) {
            maker.line("- source:");
            maker.within(|maker| {
                maker.within(|maker| {
                    names(maker);
                    let path = paths::field_path(maker);
                    maker.field("fieldPath", &path);
                    options(maker);
                });
            });
        } else {
            let value = maker.any("length of the source");
            maker.line("- unknown: a");
            maker.within(|maker| maker.field("sourceValue", &value));
        }
        maker.within(|maker| {
            maker.line("targets:");
            let targets = if maker.once_in(4) { maker.count("targets") } else { 1 };
            maker.times(targets, |maker, _| target(maker));
        });
    });
}

fn target(maker: &mut Maker) {
    maker.line("- select:");
    maker.within(|maker| {
        maker.within(selector);
        if maker.once_in(4) {
            maker.line("reject:");
            let count = maker.count("rejected");
            maker.times(count, |maker, _| {
                maker.line("-");
                maker.within(selector);
            });
        }
        maker.line("fieldPaths:");
        let count = if maker.once_in(3) { maker.count("field paths") } else { 1 };
        let same = maker.once_in(2).then(|| paths::field_path(maker));
        maker.times(count, |maker, _| {
            let path = same.clone().unwrap_or_else(|| paths::field_path(maker));
            maker.line(format_args!("- {}", quoted(&path)));
        });
        options(maker);
    });
}

fn names(maker: &mut Maker) {
    for key in ["kind", "name", "namespace", "group", "version"] {
        if maker.once_in(6) {
            let value = maker.any(key);
            maker.field(key, &value);
        }
    }
    maker.line("unknown: a");
}

fn selector(maker: &mut Maker) {
    for key in ["kind", "name", "namespace", "group", "version"] {
        if maker.once_in(6) {
            let value = paths::expression(maker);
            maker.field(key, &value);
        }
    }
    for key in ["labelSelector", "annotationSelector"] {
        if maker.once_in(6) {
            let value = paths::label_selector(maker);
            maker.field(key, &value);
        }
    }
    maker.line("unknown: a");
}

fn options(maker: &mut Maker) {
    if maker.once_in(2) {
        return;
    }
    maker.collection("options", |maker| {
        maker.line("create: true");
        if maker.once_in(3) {
            let (delimiter, index) = (maker.pick(&["-", ".", "a", "aa"]), maker.below(4));
            maker.field("delimiter", delimiter);
            maker.line(format_args!("index: {index}"));
        }
    });
}

fn setters(maker: &mut Maker) {
    config_map(maker, |maker| {
        let count = maker.count("setters");
        let value = value_of_setter(maker);
        maker.field("a", &value);
        let name = maker.any("length of a setter's name");
        maker.field(&format!("{name}b"), "a");
        maker.times(count, |maker, at| {
            let value = maker.any("length of a setter");
            maker.field(&format!("s{at}"), &value);
        });
    });
}

fn value_of_setter(maker: &mut Maker) -> String {
    match maker.below(5) {
        0 => format!("[{}]", maker.again("entries of a setter", &["a,", "{},", "[a],", "'',"])),
        1 => {
            let text = maker.any("length of an anchor in a setter");
            format!("[&a {}, {}]", quoted(&text), maker.again("aliases in a setter", &["*a , "]))
        }
        2 => maker.again("setters in a setter", &["${a}", "${b}", "x"]),
        _ => maker.any("length of a setter"),
    }
}

fn search_replace(maker: &mut Maker) {
    config_map(maker, |maker| {
        match maker.below(3) {
            0 => {
                let value = maker.any("by-value");
                maker.field("by-value", &value);
            }
            1 => {
                let value = paths::expression(maker);
                maker.field("by-value-regex", &value);
            }
            _ => {}
        }
        if maker.once_in(2) {
            let path = paths::field_match(maker);
            maker.field("by-path", &path);
        }
        if maker.once_in(4) {
            let pattern = paths::glob(maker);
            maker.field("by-file-path", &pattern);
        }
        for key in ["put-value", "put-comment"] {
            if maker.once_in(2) {
                let value = if maker.once_in(3) {
                    maker.again(key, &["${1}", "${0}", "x", "${", "#"])
                } else {
                    maker.any(key)
                };
                maker.field(key, &value);
            }
        }
    });
}

fn upsert_resource(maker: &mut Maker) {
    if maker.once_in(3) {
        return resources::fields(maker);
    }
    maker.line("apiVersion: v1");
    maker.line("kind: List");
    maker.line("items:");
    let count = maker.count("resources to upsert");
    maker.times(count, |maker, at| resources::small(maker, at % 5));
}
