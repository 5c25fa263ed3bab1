//! How much memory and work set-namespace takes: alone in its process, so that nobody else's is counted.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

mod counting;

use std::fmt::Write as _;
use std::sync::Mutex;

/// One test at a time: the counters are for all.
static TURN: Mutex<()> = Mutex::new(());

/// A list of so many Deployments, as people write them. With `odd`, something that only the full parser reads.
fn list(resources: usize, odd: bool) -> String {
    let mut text = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  data:\n    namespace: other\nitems:\n".to_owned();
    for number in 0..resources {
        let _ = write!(
            text,
            "\
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web-{number}
    namespace: shop # the team's own
    labels:
      app: web-{number}
      tier: frontend
    annotations:
      example.com/contact: team-a@example.com
  spec:
    replicas: 2
    selector:
      matchLabels:
        app: web-{number}
    template:
      metadata:
        labels:
          app: web-{number}
          tier: frontend
      spec:
        containers:
        - name: web
          image: example.com/shop/web:1.4.{number}
          ports:
          - containerPort: 8080
          env:
          - name: MODE
            value: \"production\"
"
        );
    }
    if odd {
        text.insert_str(0, "? odd\n: &a key\n");
    }
    text
}

/// The most memory that something takes beside what is taken already.
fn memory(of: impl FnOnce()) -> usize {
    let ((), memory) = counting::count(of);
    assert!(memory.total >= memory.peak);
    memory.peak
}

/// The most memory that a run takes beside its input, and the steps it is made of.
fn measure(input: &str) -> (usize, u64) {
    let function = functions::all().iter().find(|function| function.name == "set-namespace").unwrap();
    let budget = krm::Budget::default();
    let memory = memory(|| assert!(function.run(input.as_bytes(), &budget).succeeded));
    (memory, budget.used().steps)
}

#[test]
fn memory_and_work_are_linear() {
    let _turn = TURN.lock();
    for odd in [false, true] {
        let [small, large] = [2_000, 9_000].map(|resources| list(resources, odd));
        let mut counts = Vec::new();
        for input in [&small, &large] {
            let (memory, steps) = measure(input);
            println!("odd: {odd}, {} bytes: {memory} bytes of memory, {steps} steps", input.len());
            assert!(memory <= 6 * input.len(), "{memory} bytes for {} bytes of input", input.len());
            counts.push(steps);
        }
        // 4.5 times as large: the square would be 20 times as many.
        assert!(counts[0] > 0 && counts[1] <= 5 * counts[0], "{counts:?}");
    }
}

/// Inputs that are made to take more than they are worth.
#[test]
fn hostile_inputs_take_no_more() {
    let _turn = TURN.lock();
    let mut laughs = "- a0: &a0 [lol, lol]\n".to_owned();
    for level in 1..100 {
        let below = level - 1;
        let _ = writeln!(laughs, "  a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}]");
    }
    let inputs = [
        ("laughs", laughs),
        ("aliases", format!("- a: &a [b]\n  c: [{}]\n", "*a, ".repeat(200_000))),
        ("anchors", format!("- c: [{}]\n", "&a b, ".repeat(200_000))),
        ("open", format!("- a: {}\n", "[".repeat(6 << 20))),
        ("nested", format!("- a: {}{}\n", "[".repeat(10_000), "]".repeat(10_000))),
        ("one text", format!("- a: {}\n", "x".repeat(6 << 20))),
        ("comment", format!("- a: b # {}\n", "x".repeat(6 << 20))),
    ];
    for function in functions::all() {
        for (what, items) in &inputs {
            let config: String =
                function.example.lines().fold(String::new(), |text, line| text + "  " + line + "\n");
            let input = format!("kind: ResourceList\nfunctionConfig:\n{config}items:\n{items}");
            let taken = memory(|| drop(function.run(input.as_bytes(), &krm::Budget::default())));
            // The copies that aliases may have take some MiB, however small the input is.
            let limit = 6 * input.len() + (24 << 20);
            assert!(taken <= limit, "{}, {what}: {taken} bytes for {} bytes", function.name, input.len());
        }
    }
}
