#!/usr/bin/env bash
# Many clients at once against the service, on this machine:
# examples/embedding-service/load-test.sh ENCODER JPEG [--clients 64] [--seconds 60] [-- SERVICE FLAGS...]
#
# Prints latency, throughput and the service's memory; fails if a request was not answered with an embedding.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

cargo build --manifest-path "$root/Cargo.toml" --release --locked --workspace --bin embedding-service --example load-test
"${CARGO_TARGET_DIR:-$root/target}/release/examples/load-test" "$@"
