#!/usr/bin/env bash
# J and F of masks beside a computation with numpy and scipy:
#
#     tests/segmentation_agreement.sh DAVIS/Annotations/480p/*
#     tests/segmentation_agreement.sh --masks out/masks DAVIS/Annotations/480p/dog
#
# All within 1e-6. Without --masks the true masks are compared with altered copies of themselves; without any, made-up ones
# are.
set -euo pipefail
masks=
if [ "${1:-}" = --masks ]; then
    masks=$(realpath "${2:?--masks FOLDER}")
    shift 2
fi
if [ $# -eq 0 ] && [ -n "$masks" ]; then
    echo 'usage: tests/segmentation_agreement.sh [--masks MASKS] [TRUE_MASKS...]' >&2
    exit 2
fi
folders=()
for folder in "$@"; do folders+=("$(realpath "$folder")"); done
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source=benches/peers.sh
source benches/peers.sh
cargo build --release --workspace --locked --example mask_scores
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ ${#folders[@]} -eq 0 ]; then
    $python tests/segmentation_agreement.py make "$work/made-up"
    folders=("$work/made-up")
fi
for folder in "${folders[@]}"; do
    printf '%s: ' "$(basename "$folder")"
    altered=$masks
    if [ -z "$masks" ]; then
        rm -rf "$work/altered"
        altered=$work/altered
        $python tests/segmentation_agreement.py alter "$folder" "$altered"
    fi
    target/release/examples/mask_scores "$altered" "$folder" >"$work/ours.txt"
    $python tests/segmentation_agreement.py check "$altered" "$folder" "$work/ours.txt"
done
