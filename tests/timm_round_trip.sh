#!/usr/bin/env bash
# Weights from timm and back: tests/timm_round_trip.sh [ARCHITECTURE...]
#
# For every architecture: timm's weights are imported, exported to ONNX and must give timm's features there; and the
# weights of the run must load in timm with `load_state_dict(strict=True)` and give the same features again.
# timm lives in a throw-away environment in .lejepa/bench (a large download).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source=benches/peers.sh
source benches/peers.sh
cargo build --release --workspace --locked
lejepa=${CARGO_TARGET_DIR:-target}/release/lejepa
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ $# -eq 0 ]; then
    set -- vit_tiny_patch16_224 vit_small_patch14_reg4_dinov2 resnet18 resnext50_32x4d convnextv2_atto
fi
for name in "$@"; do
    case $name in
        vit_*_patch14_*) size=56 ;;
        *) size=64 ;;
    esac
    $python tests/timm_round_trip.py make "$name" "$size" "$work"
    rm -rf "$work/run"
    "$lejepa" import "$work/timm.safetensors" --arch "$name" --size "$size" --out "$work/run" >/dev/null
    "$lejepa" export "$work/run" --out "$work/encoder.onnx" >/dev/null
    "$lejepa" export "$work/run" --out "$work/encoder.safetensors" >/dev/null
    $python tests/timm_round_trip.py compare "$name" "$size" "$work"
done
echo 'timm round trip: all agree' >&2
