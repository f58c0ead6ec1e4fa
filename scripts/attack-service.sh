#!/usr/bin/env bash
# Attacks the embedding service on this machine while another client keeps asking:
# scripts/attack-service.sh [ENCODER] [--seconds 20] [-- SERVICE FLAGS...]
#
# Slow heads, slow bodies, clients that do not read, forms of 10,000 parts, images of many pixels in few bytes,
# JPEG files of 20,000 scans and of as many as are accepted, large bodies that do not end, 2,000 idle connections from one address and from twenty, and SIGTERM under load. Prints for each attack how many
# requests of the other client were answered meanwhile, the longest that it waited, and the service's memory
# before, at most and after; fails if the other client was kept out for longer than it may be (--timeout of
# the service), or the service did not end well.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

cargo build --manifest-path "$root/Cargo.toml" --release --locked --workspace --bin embedding-service
exec python3 "$root/scripts/attack_service.py" \
    "${CARGO_TARGET_DIR:-$root/target}/release/embedding-service" "$root/models/fashion-mnist-vit/encoder.onnx" "$@"
