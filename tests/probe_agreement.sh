#!/usr/bin/env bash
# The accuracy of every probe beside scikit-learn's or PyTorch's, on features of real images:
#
#     lejepa embed DATA --encoder encoder.onnx --out features.safetensors
#     tests/probe_agreement.sh features.safetensors
#
# Without features, those that an encoder of this repository makes of the 10,000 test images of Fashion-MNIST.
# All within 0.2 points; of the linear probe, whose batches are random, PyTorch's mean over five seeds is compared.
# Without a split in the .csv beside the features, a quarter of the images is asked about.
set -euo pipefail
features=${1:+$(realpath "$1")}
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source=benches/peers.sh
source benches/peers.sh
if [ -z "$features" ]; then
    scripts/setup.sh runtime data
    cargo build --release --workspace --locked
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/images"
    for kind in images-idx3 labels-idx1; do
        cp ".lejepa/data/fashion-mnist/t10k-$kind-ubyte.gz" "$work/images/train-$kind-ubyte.gz"
    done
    features=$work/features.safetensors
    target/release/lejepa embed "$work/images" --encoder models/fashion-mnist-vit/encoder.onnx --out "$features"
fi
$python tests/probe_agreement.py split "$features" $bench/agreement.safetensors
cargo build --release --workspace --locked --example probe
target/release/examples/probe $bench/agreement.safetensors >$bench/agreement.txt
$python tests/probe_agreement.py check $bench/agreement.safetensors $bench/agreement.txt
