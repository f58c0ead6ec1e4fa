#!/usr/bin/env bash
# The accuracy of every probe beside scikit-learn's or PyTorch's, on features of real images:
#
#     lejepa embed DATA --encoder encoder.onnx --out features.safetensors
#     tests/probe_agreement.sh features.safetensors
#
# All within 0.2 points; of the linear probe, whose batches are random, PyTorch's mean over five seeds is compared.
# Without a split in the .csv beside the features, a quarter of the images is asked about.
set -euo pipefail
features=$(realpath "${1:?usage: tests/probe_agreement.sh FEATURES.safetensors}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source=benches/peers.sh
source benches/peers.sh
$python tests/probe_agreement.py split "$features" $bench/agreement.safetensors
cargo build --release --workspace --locked --example probe
target/release/examples/probe $bench/agreement.safetensors >$bench/agreement.txt
$python tests/probe_agreement.py check $bench/agreement.safetensors $bench/agreement.txt
