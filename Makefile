# Everything a newcomer or CI needs; each target does its own set-up.
.DEFAULT_GOAL := help
.PHONY: help run build test check bench fmt deny setup clean

# rustup installs itself here; a fresh shell may not have it in its path yet.
export PATH := $(HOME)/.cargo/bin:$(PATH)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## Build and start the service with an example function, no cluster needed
	./target/release/function-runner --functions=target/examples/functions --config=examples/config.yaml $(FLAGS)

build: ## Build the static programs into target/release
	@scripts/build

test: build ## Run all tests
	cargo test --locked --workspace

check: setup ## The fast loop: format, clippy, unit tests
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo test --locked --workspace --lib --bins

bench: build ## Measure against bare processes; the table is also in target/bench.json
	@scripts/bench

deny: setup ## Check the dependencies' licences and bans
	@scripts/deny

fmt: setup ## Format the code
	cargo fmt --all

setup: ## Install what building needs
	@scripts/setup >/dev/null

clean: ## Remove what was built
	cargo clean
