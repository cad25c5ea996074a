# connector.rss: every target says what it does. Run `make help` for the list.

SHELL := /bin/bash
CARGO := cargo
WASM := target/wasm32-unknown-unknown/release
OUT := target/release
# Crates with fuzz targets; each is a workspace of its own.
FUZZ_CRATES := host-shim plugin

.PHONY: help setup plugin build demo run bench bench-service chaos fuzz verify fmt clippy test imports docs reference audit clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-13s %s\n", $$1, $$2}'

setup: ## install what is missing (the wasm target, Debian packages); does nothing when nothing is missing
	@./setup.sh

plugin: setup ## build the components and put them beside the program
	@echo "plugin: building the components for the sandbox"
	@$(CARGO) build --locked --quiet --release --target wasm32-unknown-unknown -p connector-rss -p hostile-guest -p lines-guest
	@mkdir -p $(OUT)
	@cp $(WASM)/connector_rss.wasm $(OUT)/connector.rss.wasm
	@cp $(WASM)/hostile_guest.wasm $(OUT)/hostile.wasm
	@cp $(WASM)/lines_guest.wasm $(OUT)/connector.lines.wasm

build: plugin ## build the programs, with the same profile and features as the tests
	@echo "build: building the programs (the first time takes some minutes: wasmtime)"
	@$(CARGO) build --locked --release --workspace --bins --examples

demo: build ## show it at work against a fake feed server on loopback
	@exec $(OUT)/examples/demo

run: build ## serve a data folder (./data, or CONFIG=file.toml)
	@exec $(OUT)/host-shim serve $(if $(CONFIG),--config $(CONFIG))

chaos: plugin ## kill the program three hundred times while it polls changing feeds, then compare the store with what was served
	@CHAOS_KILLS=$${CHAOS_KILLS:-300} $(CARGO) test --locked --release --workspace --test it chaos:: -- --nocapture

verify: setup fmt plugin clippy test imports docs ## the test command: format, lints, all tests, imports, docs
	@echo "verify: everything holds"

fmt:
	@echo "fmt: checking the format"
	@$(CARGO) fmt --all --check

clippy: plugin
	@echo "clippy: lints, warnings denied"
	@$(CARGO) clippy --locked --quiet --release --workspace --all-targets -- -D warnings
	@$(CARGO) clippy --locked --quiet --release --target wasm32-unknown-unknown -p connector-rss -p lines-guest -- -D warnings

test: plugin
	@echo "test: all tests"
	@$(CARGO) test --locked --release --workspace

imports: build
	@echo "imports: the component asks for nothing but the contract"
	@test "$$($(OUT)/host-shim inspect --json $(OUT)/connector.rss.wasm | tr ',' '\n' | grep -c 'corpus:connector/\(http\|log\)@')" = 2

docs:
	@echo "docs: building the documentation, warnings denied"
	@RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --quiet --release --no-deps --workspace

reference: build ## write the configuration's reference from the code
	@$(OUT)/host-shim configuration > host-shim/host-shim.example.toml
	@$(OUT)/host-shim configuration --markdown > docs/configuration.md

bench: plugin ## one poll in the sandbox against natively and bare parsers, as ratios of one run
	@$(CARGO) bench --locked --workspace --bench poll --bench tolerance --profile release

bench-service: build ## the whole service at 100 to 100,000 instances: throughput, lag, CPU, memory (SIZES=100,1000 for fewer)
	@$(CARGO) bench --locked -p host-shim --bench service --profile release

fuzz: setup ## invent input for each fuzz body for FUZZ_SECONDS (60) with cargo-fuzz
	@command -v cargo-fuzz >/dev/null || { echo "fuzz: installing cargo-fuzz, which drives LLVM's fuzzer"; $(CARGO) install --locked --quiet cargo-fuzz; }
	@for crate in $(FUZZ_CRATES); do for body in $$(cd $$crate && $(CARGO) fuzz list); do \
	  echo "fuzz: $$crate $$body"; mkdir -p target/fuzz-corpus/$$body; \
	  (cd $$crate && RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run --sanitizer none $$body $(CURDIR)/target/fuzz-corpus/$$body $$(for seeds in corpus/$$body odd feeds markup; do [ ! -d $(CURDIR)/fixtures/$$seeds ] || echo $(CURDIR)/fixtures/$$seeds; done) -- \
	    -max_total_time=$${FUZZ_SECONDS:-60} -max_len=65536 -verbosity=0) || exit 1; done; done

audit: setup ## licences, bans, duplicate versions (cargo-deny)
	@command -v cargo-deny >/dev/null || { echo "audit: installing cargo-deny, which checks the dependencies"; $(CARGO) install --locked --quiet cargo-deny; }
	@$(CARGO) deny --workspace check licenses bans sources

clean: ## remove what was built
	@$(CARGO) clean
