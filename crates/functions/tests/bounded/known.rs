//! Inputs that took far more than their size when they were found: seconds or hundreds of megabytes for some
//! kilobytes.

/// One of them.
pub(crate) struct Known {
    pub(crate) function: &'static str,
    pub(crate) what: &'static str,
    pub(crate) size: usize,
    pub(crate) input: fn(usize) -> String,
}

/// What each function takes for a configuration, where it does not matter which.
const PLAIN: [(&str, &str); 13] = [
    ("apply-replacements", "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\n"),
    ("apply-setters", "apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n"),
    ("create-setters", "apiVersion: v1\nkind: ConfigMap\ndata: {a: bbbbb}\n"),
    (
        "ensure-name-substring",
        "apiVersion: fn.kpt.dev/v1alpha1\nkind: EnsureNameSubstring\nsubstring: dev-\n",
    ),
    ("list-setters", "apiVersion: v1\nkind: ConfigMap\n"),
    ("remove-local-config-resources", "apiVersion: v1\nkind: ConfigMap\n"),
    ("search-replace", "apiVersion: v1\nkind: ConfigMap\ndata: {by-value: zz, put-value: yy}\n"),
    ("set-annotations", "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetAnnotations\nannotations: {a: b}\n"),
    ("set-image", "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetImage\nimage: {name: nginx, newTag: v1}\n"),
    ("set-labels", "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetLabels\nlabels: {a: b}\n"),
    ("set-namespace", "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetNamespace\nnamespace: x\n"),
    ("set-project-id", "apiVersion: v1\nkind: ConfigMap\ndata: {project-id: x}\n"),
    ("upsert-resource", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: up}\n"),
];

const NAMED: &str = "- apiVersion: v1\n  kind: A\n  metadata: {name: a}\n";

/// A list with a configuration and items.
fn list(config: &str, items: &str) -> String {
    let config: String = config.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n{config}items:\n{items}"
    )
}

fn plain(function: &str) -> &'static str {
    PLAIN.iter().find(|(name, _)| *name == function).map(|(_, config)| *config).unwrap()
}

/// A list with a function's plain configuration and something more in it.
fn with(function: &str, more: &str, items: &str) -> String {
    list(&format!("{}{more}", plain(function)), items)
}

/// A list with some data in a ConfigMap.
fn data(data: &str, items: &str) -> String {
    list(&format!("apiVersion: v1\nkind: ConfigMap\ndata:\n{data}"), items)
}

/// A list with one target of a replacement by a text.
fn target(target: &str, items: &str) -> String {
    with(
        "apply-replacements",
        &format!("replacements:\n- sourceValue: c\n  targets:\n  - select: {{kind: A}}\n{target}"),
        items,
    )
}

fn each(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

fn x(count: usize) -> String {
    "x".repeat(count)
}

pub(crate) fn all() -> Vec<Known> {
    let known = |function, what, size, input| Known { function, what, size, input };
    let mut all = Vec::new();
    for (function, _) in PLAIN {
        all.push(known(function, "aliases of a long text in the configuration", 500, |n| {
            // It is read for any kind of configuration.
            let more = format!("x: &a {}\ny:\n{}", x(10 * n), "- *a\n".repeat(n));
            list(&format!("apiVersion: v1\nkind: ConfigMap\n{more}"), NAMED)
        }));
        all.push(known(function, "aliases of an item with a long name", 500, |n| {
            let first = format!("- &a\n  apiVersion: v1\n  kind: A\n  metadata:\n    name: {}\n", x(10 * n));
            list("apiVersion: v1\nkind: ConfigMap\n", &format!("{first}{}", "- *a\n".repeat(n)))
        }));
        all.push(known(function, "aliases of an item with long keys", 500, |n| {
            let keys = each(60, |at| format!("  k{at}{}: v\n", x(n / 5)));
            let first = format!("- &a\n  kind: A\n{keys}  metadata:\n    name: b\n");
            list("apiVersion: v1\nkind: ConfigMap\n", &format!("{first}{}", "- *a\n".repeat(n)))
        }));
        all.push(known(function, "aliases of a list with a long tag", 1000, |n| {
            let tagged = format!("  l: &a [!<tag:{}> b]\n  m:\n", x(n));
            list("apiVersion: v1\nkind: ConfigMap\n", &format!("{NAMED}{tagged}{}", "  - *a\n".repeat(n)))
        }));
    }
    all.extend(of_values(known));
    all.extend(of_replacements(known));
    all.extend(of_fields(known));
    all.extend(of_resources(known));
    all
}

type Make = fn(&'static str, &'static str, usize, fn(usize) -> String) -> Known;

/// Setters, searches and their patterns.
fn of_values(known: Make) -> Vec<Known> {
    vec![
        known("apply-setters", "aliases of a long text with setters", 500, |n| {
            let items = format!("- d: &a {}\n  m:\n{}", x(20 * n), "  - *a # kpt-set: ${a}\n".repeat(n));
            data("  a: b\n", &items)
        }),
        known("apply-setters", "a long value many times in one comment", 2000, |n| {
            let comment = "${a}".repeat(n);
            data(&format!("  a: {}\n", x(8 * n)), &format!("- d: b # kpt-set: {comment}\n"))
        }),
        known("apply-setters", "aliases in a setter", 500, |n| {
            let value = format!("  a: |\n    - &a {}\n{}", x(10 * n), "    - *a\n".repeat(n));
            data(&value, "- d: # kpt-set: ${a}\n  - b\n")
        }),
        known("create-setters", "aliases in a setter", 500, |n| {
            let value = format!("  a: |\n    - &a {}\n{}", x(10 * n), "    - *a\n".repeat(n));
            data(&value, "- d:\n  - b\n")
        }),
        known("apply-setters", "a long list for many lists", 200, |n| {
            let value = format!("  k: '[{}a]'\n", "a,".repeat(n));
            data(&value, &format!("- kind: A\n{}", each(n, |at| format!("  l{at}: [b] # kpt-set: ${{k}}\n"))))
        }),
        known("create-setters", "a long name for many matches", 100, |n| {
            data(&format!("  ? {}\n  : b\n", "k".repeat(50 * n)), &format!("- l: {}\n", "b".repeat(n)))
        }),
        known("create-setters", "matches in many brackets", 1000, |n| {
            let list = format!("{}{}b{}", "[".repeat(400), "b,".repeat(n), "]".repeat(400));
            data("  k: b\n", &format!("- l: {list}\n"))
        }),
        known("list-setters", "many mutators with one configuration", 300, |n| {
            let mutators = "    - {image: apply-setters, configPath: s}\n".repeat(n);
            let path = "metadata:\n    annotations:\n      internal.config.kubernetes.io/path";
            let kptfile =
                format!("- kind: Kptfile\n  {path}: Kptfile\n  pipeline:\n    mutators:\n{mutators}");
            let setters = each(n, |at| format!("    k{at}: v\n"));
            with("list-setters", "", &format!("{kptfile}- kind: A\n  {path}: s\n  data:\n{setters}"))
        }),
        known("search-replace", "aliases of a long text", 500, |n| {
            let items = format!("- d: &a {}\n  m:\n{}", x(20 * n), "  - *a\n".repeat(n));
            with("search-replace", "", &items)
        }),
        known("search-replace", "a long path for empty items", 2000, |n| {
            data(&format!("  by-path: {}*\n  put-value: x\n", "a.".repeat(n)), &"- {}\n".repeat(n))
        }),
        known("search-replace", "a path with a long index", 1000, |n| {
            data(&format!("  by-path: '*[{}]'\n", x(10 * n)), &format!("- l:\n{}", "  - a\n".repeat(n)))
        }),
        known("search-replace", "a path with many stars", 1000, |n| {
            data(&format!("  by-path: '{}zz'\n", "**.".repeat(n)), &format!("- l:\n{}", "  - a\n".repeat(n)))
        }),
        known("search-replace", "a value of many empty groups", 1000, |n| {
            let put = format!("  by-value-regex: a()\n  put-value: '{}'\n", "${1}".repeat(n));
            data(&put, &format!("- l:\n{}", "  - a\n".repeat(n)))
        }),
        known("search-replace", "a long file path for many results", 400, |n| {
            let path =
                format!("metadata:\n    annotations:\n      config.kubernetes.io/path: {}\n", x(10 * n));
            data("  by-value: a\n", &format!("- {path}  l:\n{}", "  - a\n".repeat(n)))
        }),
        known("search-replace", "a value put along a long path", 500, |n| {
            let path = vec!["a"; 399].join(".");
            data(&format!("  by-path: {path}\n  put-value: x\n"), &"- {}\n".repeat(n))
        }),
        known("search-replace", "scalars in many brackets", 2000, |n| {
            let list = format!("{}{}a{}", "[".repeat(400), "a,".repeat(n), "]".repeat(400));
            data("  by-value: a\n  put-value: bb\n", &format!("- l: {list}\n"))
        }),
        known("search-replace", "an expression of open braces", 10_000, |n| {
            data(&format!("  by-value-regex: '{}'\n", "{".repeat(n)), "- {}\n")
        }),
        known("search-replace", "an expression of open classes", 10_000, |n| {
            data(&format!("  by-value-regex: '[{}'\n", "[:".repeat(n)), "- {}\n")
        }),
        known("search-replace", "an expression of classes of Unicode", 1000, |n| {
            data(&format!("  by-value-regex: '{}'\n", r"\pL".repeat(n)), "- {}\n")
        }),
        known("search-replace", "the same whatever the case", 100, |n| {
            data(&format!("  by-value-regex: '(?i){}'\n", r"\pL".repeat(n)), "- {}\n")
        }),
        known("set-image", "an expression of classes of Unicode", 100, |n| {
            let image = format!("image: {{name: '(?i){}', newTag: v1}}\n", r"\pL".repeat(n));
            list(&format!("apiVersion: fn.kpt.dev/v1alpha1\nkind: SetImage\n{image}"), "- {}\n")
        }),
    ]
}

/// Replacements.
fn of_replacements(known: Make) -> Vec<Known> {
    vec![
        known("apply-replacements", "a bracket that is not closed", 5000, |n| {
            target(&format!("    fieldPaths: ['[{}']\n", "a.".repeat(n)), "- kind: A\n")
        }),
        known("apply-replacements", "many paths into a long list", 500, |n| {
            let list = format!("- kind: A\n  l:\n{}", "  - b\n".repeat(n));
            target(&format!("    fieldPaths:\n{}", "    - l.0\n".repeat(n)), &list)
        }),
        known("apply-replacements", "many entries looked for in a long list", 500, |n| {
            let list = format!("- kind: A\n  l:\n  - c\n{}", "  - b\n".repeat(n));
            target(&format!("    fieldPaths:\n{}", "    - 'l.[=c]'\n".repeat(n)), &list)
        }),
        known("apply-replacements", "many entries added to a list", 500, |n| {
            let paths = each(n, |at| format!("    - 'l.[k=x{at}].k'\n"));
            target(
                &format!("    options: {{create: true}}\n    fieldPaths:\n{paths}"),
                "- kind: A\n  l: []\n",
            )
        }),
        known("apply-replacements", "many patterns", 300, |n| {
            let paths = each(n, |_| "    - 'l.[k=\\pL{8}].k'\n".to_owned());
            target(&format!("    fieldPaths:\n{paths}"), "- kind: A\n  l: [{k: abcdefgh}]\n")
        }),
        known("apply-replacements", "a source with a long namespace", 1000, |n| {
            let source = format!("source: {{namespace: {}}}", x(10 * n));
            let more = format!("replacements:\n- {source}\n  targets:\n  - select: {{kind: B}}\n");
            with("apply-replacements", &more, &"- {}\n".repeat(n))
        }),
        known("apply-replacements", "texts of texts of texts", 2000, |n| {
            let inner = (0..150).fold(format!("z: q\nw: {}\n", x(n)), |inner, _| {
                let lines: String = inner.lines().map(|line| format!(" {line}\n")).collect();
                format!("a: |\n{lines}")
            });
            let lines: String = inner.lines().map(|line| format!("  {line}\n")).collect();
            target(&format!("    fieldPaths: [{}z]\n", "a.".repeat(150)), &format!("- kind: A\n{lines}"))
        }),
        known("apply-replacements", "many paths into one text", 500, |n| {
            let text = format!("- kind: A\n  a: |\n    z: q\n    w: [{}a]\n", "a,".repeat(n));
            target(&format!("    fieldPaths:\n{}", "    - a.z\n".repeat(n)), &text)
        }),
        known("apply-replacements", "many requirements of a long label", 500, |n| {
            let selector = vec!["a!=x"; n].join(",");
            let target = format!("  - select: {{labelSelector: '{selector}'}}\n    fieldPaths: [kind]\n");
            let more = format!("replacements:\n- sourceValue: s\n  targets:\n{target}");
            let items = format!("- kind: A\n  metadata: {{labels: {{a: {}}}}}\n", x(20 * n));
            with("apply-replacements", &more, &items)
        }),
        known("apply-replacements", "a long comment for many targets", 200, |n| {
            let source = "source: {kind: A, fieldPath: m}\n  targets:\n  - select: {kind: B}\n";
            let more =
                format!("replacements:\n- {source}    options: {{create: true}}\n    fieldPaths: [m]\n");
            let items = format!("- kind: A\n  m:\n    a: b # {}\n{}", x(10 * n), "- kind: B\n".repeat(n));
            with("apply-replacements", &more, &items)
        }),
        known("apply-replacements", "long paths that are made", 100, |n| {
            let paths = each(n, |at| format!("    - k{at}{}\n", ".a".repeat(190)));
            target(&format!("    options: {{create: true}}\n    fieldPaths:\n{paths}"), "- kind: A\n")
        }),
    ]
}

/// Additional fields.
fn of_fields(known: Make) -> Vec<Known> {
    const SPECS: [(&str, &str); 3] = [
        ("set-annotations", "additionalAnnotationFields"),
        ("set-image", "additionalImageFields"),
        ("ensure-name-substring", "additionalNameFields"),
    ];
    fn specs(function: &'static str, specs: &str, items: &str) -> String {
        let key = SPECS.iter().find(|(name, _)| *name == function).map(|(_, key)| *key).unwrap();
        with(function, &format!("{key}:\n{specs}"), items)
    }
    fn named(count: usize) -> String {
        each(count, |at| format!("- kind: A\n  metadata: {{name: n{at}}}\n"))
    }
    vec![
        known("set-annotations", "many fields for many resources", 200, |n| {
            specs("set-annotations", &"- path: q/w/e/r/t\n".repeat(n), &named(n))
        }),
        known("set-image", "many fields for many resources", 200, |n| {
            specs("set-image", &"- path: q/w/e/r/t\n".repeat(n), &named(n))
        }),
        known("ensure-name-substring", "many fields for many resources", 200, |n| {
            specs("ensure-name-substring", &"- path: q/w/e/r/t\n".repeat(n), &named(n))
        }),
        known("set-annotations", "a long path that is made", 1000, |n| {
            specs("set-annotations", &format!("- path: {}\n  create: true\n", vec!["a"; n].join("/")), NAMED)
        }),
        known("ensure-name-substring", "a long path that is made", 1000, |n| {
            let spec = format!("- path: {}\n  create: true\n", vec!["a"; n].join("/"));
            specs("ensure-name-substring", &spec, NAMED)
        }),
        known("set-image", "a long path for many resources", 500, |n| {
            specs("set-image", &format!("- path: {}\n", vec!["a"; 10 * n].join("/")), &"- {}\n".repeat(n))
        }),
        known("set-image", "a long path in many errors", 200, |n| {
            specs("set-image", &format!("- path: a/{}\n", x(10 * n)), &"- a: b\n".repeat(n))
        }),
        known("set-annotations", "a long path in nested lists", 2000, |n| {
            let nested = format!("{NAMED}  a: {}b{}\n", "[".repeat(400), "]".repeat(400));
            specs("set-annotations", &format!("- path: a/{}\n", x(n)), &nested)
        }),
        known("set-annotations", "one field again and again", 300, |n| {
            let annotations = each(n, |at| format!("  k{at}: v\n"));
            let fields = "- path: metadata/annotations\n".repeat(n);
            let kind = "apiVersion: fn.kpt.dev/v1alpha1\nkind: SetAnnotations\n";
            let config = format!("{kind}annotations:\n{annotations}additionalAnnotationFields:\n{fields}");
            list(&config, "- kind: A\n  metadata:\n    name: a\n    annotations:\n      z: y\n")
        }),
        known("set-annotations", "a long file path for many fields", 500, |n| {
            let path = format!("annotations: {{config.kubernetes.io/path: {}}}", x(20 * n));
            let item = format!("- kind: A\n  metadata:\n    name: a\n    {path}\n  l:\n");
            specs("set-annotations", "- path: l/x\n", &format!("{item}{}", "  - x: {}\n".repeat(n)))
        }),
        known("ensure-name-substring", "one long text again and again", 500, |n| {
            let item = format!("{NAMED}  t: dev-{}\n", x(20 * n));
            specs("ensure-name-substring", &"- path: t\n".repeat(n), &item)
        }),
    ]
}

/// Labels, names and whole resources.
fn of_resources(known: Make) -> Vec<Known> {
    fn labels(count: usize, items: &str) -> String {
        let labels = each(count, |at| format!("  k{at}: v\n"));
        list(&format!("apiVersion: fn.kpt.dev/v1alpha1\nkind: SetLabels\nlabels:\n{labels}"), items)
    }
    vec![
        known("set-labels", "many labels for empty items", 200, |n| labels(n, &"- {}\n".repeat(n))),
        known("set-labels", "many labels for many peers", 300, |n| {
            let kind = "- apiVersion: networking.k8s.io/v1\n  kind: NetworkPolicy\n  spec:\n    ingress:\n";
            labels(n, &format!("{kind}    - from:\n{}", "      - {}\n".repeat(n)))
        }),
        known("set-labels", "many labels for many constraints", 300, |n| {
            let kind = "- apiVersion: apps/v1\n  kind: Deployment\n  spec:\n    template:\n      spec:\n";
            labels(n, &format!("{kind}        topologySpreadConstraints:\n{}", "        - {}\n".repeat(n)))
        }),
        known("set-labels", "many labels beside long keys", 300, |n| {
            let keys = each(40, |at| format!("  ? \"\\tk{at}{}\"\n  : v\n", x(5 * n)));
            labels(n, &format!("- kind: A\n{keys}  metadata: {{name: a}}\n"))
        }),
        known("set-labels", "a long label in many errors", 200, |n| {
            let labels = format!("labels:\n  ? {}\n  : v\n", "k".repeat(10 * n));
            let config = format!("apiVersion: fn.kpt.dev/v1alpha1\nkind: SetLabels\n{labels}");
            list(&config, &"- metadata: a\n".repeat(n))
        }),
        known("set-labels", "many items in a list with many fields", 500, |n| {
            labels(1, &"- kind: A\n".repeat(n)) + &each(n, |at| format!("k{at}: v\n"))
        }),
        known("set-namespace", "a long namespace for many resources", 200, |n| {
            let config =
                format!("apiVersion: fn.kpt.dev/v1alpha1\nkind: SetNamespace\nnamespace: {}\n", x(10 * n));
            list(&config, &"- {apiVersion: v1, kind: Pod}\n".repeat(n))
        }),
        known("set-namespace", "many aliases of the namespace", 300, |n| {
            let item =
                format!("- apiVersion: v1\n  kind: Pod\n  metadata:\n    namespace: &a {}\n", x(10 * n));
            with("set-namespace", "", &format!("{item}  d:\n{}", "  - *a\n".repeat(n)))
        }),
        known("ensure-name-substring", "one name in many namespaces", 300, |n| {
            let items = each(n, |at| format!("- kind: K\n  metadata: {{name: a, namespace: n{at}}}\n"));
            let role =
                "- apiVersion: rbac.authorization.k8s.io/v1\n  kind: ClusterRole\n  metadata: {name: r}\n";
            let names = "    - a\n".repeat(n);
            with("ensure-name-substring", "", &format!("{items}{role}  rules:\n  - resourceNames:\n{names}"))
        }),
        known("ensure-name-substring", "one name of many kinds", 500, |n| {
            let items = each(n, |at| format!("- kind: K{at}\n  metadata: {{name: a}}\n"));
            let role = "- kind: Role\n  metadata: {name: r}\n  rules:\n  - resourceNames:\n";
            with("ensure-name-substring", "", &format!("{items}{role}{}", "    - a\n".repeat(n)))
        }),
        known("upsert-resource", "many resources for a file that none is in", 200, |n| {
            let target = "annotations: {config.kubernetes.io/target-path: f}";
            let resources = format!("- kind: A\n  metadata: {{name: u, {target}}}\n").repeat(n);
            let config = format!("apiVersion: v1\nkind: List\nitems:\n{resources}");
            list(&config, &"- kind: A\n  metadata: {name: u}\n".repeat(n))
        }),
        known("upsert-resource", "a long comment for many resources", 200, |n| {
            let config = format!("kind: A # {}\nmetadata:\n  name: u\n", x(10 * n));
            list(&config, &"- kind: A\n  metadata:\n    name: u\n".repeat(n))
        }),
        known("upsert-resource", "a long list for many resources", 150, |n| {
            let config = format!("kind: A\nmetadata:\n  name: u\nl: [{}a]\n", "a,".repeat(n));
            list(&config, &"- kind: A\n  metadata:\n    name: u\n".repeat(n))
        }),
    ]
}
