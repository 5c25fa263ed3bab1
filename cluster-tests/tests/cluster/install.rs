//! The base of `deploy/`: installed as it is, it works.

use cluster_tests::{checkout, kubectl, kustomize, on_cluster, parse, push};

use crate::installation::{IMAGE, Installation, input};

#[test]
#[ignore = "needs the cluster: make test"]
fn the_base_becomes_ready_and_answers_through_its_service() {
    on_cluster("base", async |space| {
        space.claim_fixed_names().await;
        let base = parse(&kustomize(&checkout().join("deploy/base")).await);
        let installation = Installation::install(&space, base).await;
        installation.answers().await;

        // From another pod, by the Service's name, with our own command line.
        let image = format!("--image={}", push("function-runner").await);
        let namespace = format!("--namespace={}", space.namespace());
        let address = format!("--address={}.{}:9445", installation.service, installation.namespace);
        let run =
            ["run", "caller", "--stdin", "--quiet", "--restart=Never", &image, &namespace, "--command", "--"];
        let call = ["/home/nonroot/server", "eval", "--image", IMAGE, &address];
        let answer =
            kubectl(&[&run[..], &call[..]].concat(), &input()).await.expect("the other pod is answered");
        assert!(answer.contains("example.com/owner: platform"), "{answer}");

        installation.was_refused_nothing_needed();
    });
}
