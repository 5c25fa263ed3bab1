# Everything a newcomer or CI needs; each target does its own set-up.
.DEFAULT_GOAL := help
.PHONY: help run build generate images test lint check campaign fuzz bench fmt deny setup clean cluster-up cluster-down cluster-shell

# rustup installs itself here; a fresh shell may not have it in its path yet.
export PATH := $(HOME)/.cargo/bin:$(PATH)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## Build and start the service: built-in functions and an example, no cluster needed
	./target/release/function-runner --builtin-functions=all --functions=target/examples/functions --config=examples/config.yaml $(FLAGS)

build: ## Build the static programs into target/release
	@scripts/build

generate: setup ## Write the definitions of our kinds into deploy/crds
	cargo run --locked --quiet --package api --example generate -- deploy/crds

images: build ## Build the OCI images into target/images
	@crates/images/make-images

test: images ## Run all tests, those on a real Kubernetes too
	@cluster-tests/cluster/cluster set-up
	cargo test --locked --workspace
	@cluster-tests/run

cluster-up: ## Start a Kubernetes of one node, shut inside namespaces
	@cluster-tests/cluster/cluster up

cluster-down: ## Stop it and remove every trace
	@cluster-tests/cluster/cluster down

cluster-shell: ## A shell inside it: kubectl and cluster names work
	@cluster-tests/cluster/cluster shell

lint: setup ## Format and clippy, warnings are errors
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

check: lint ## The fast loop: format, clippy, unit tests
	cargo test --locked --workspace --lib --bins

campaign: setup ## End the service 252 times under 200 clients that retry nothing; takes half an hour
	cargo test --locked --package function-runner --test campaign -- --ignored --nocapture

fuzz: ## Look for inputs that do harm, FUZZ_SECONDS (600) for each target
	@scripts/fuzz
	HOSTILE_INPUTS=$${HOSTILE_INPUTS:-20000} cargo test --locked --release --package functions --test bounded -- --nocapture

bench: images ## Measure against bare processes and bare pods; also in target/bench*.json
	@scripts/bench

deny: setup ## Check the dependencies' licences and bans
	@scripts/deny

fmt: setup ## Format the code
	cargo fmt --all

setup: ## Install what building needs
	@scripts/setup >/dev/null

clean: ## Remove what was built
	cargo clean
