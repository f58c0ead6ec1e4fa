#!/usr/bin/env bash
# Trains a small encoder on Fashion-MNIST, exports it and evaluates it, from a fresh checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=.lejepa/quickstart
lejepa=${CARGO_TARGET_DIR:-target}/release/lejepa

now() { # microseconds
    local t=${EPOCHREALTIME:-$(date +%s).000000}
    echo "${t/[.,]/}"
}

names=()
times=()
stage() { # name command...
    local name=$1 begin status=0
    shift
    printf 'quickstart: %s\n' "$name" >&2
    begin=$(now)
    "$@" || status=$?
    if [ "$status" -ne 0 ]; then
        printf 'quickstart: stopped at %s\n' "$name" >&2
        exit "$status"
    fi
    names+=("$name")
    times+=($(($(now) - begin)))
}

row() { # name microseconds
    printf '%-8s %6d.%d s\n' "$1" $(($2 / 1000000)) $(($2 / 100000 % 10))
}

begin=$(now)
stage set-up scripts/setup.sh
if [ -n "${CARGO_TARGET_DIR:-}" ] && [ -z "${ORT_DYLIB_PATH:-}" ]; then
    # lejepa looks for .lejepa/ in the folders above itself, and is not below this one.
    ORT_DYLIB_PATH=$(echo "$PWD"/.lejepa/onnxruntime/libonnxruntime.so.*)
    export ORT_DYLIB_PATH
fi
stage build cargo build --release --locked --workspace
rm -rf "$out"
mkdir -p "$out"
stage train "$lejepa" train --config models/fashion-mnist-vit/train.toml --out "$out/run"
stage export "$lejepa" export "$out/run" --out "$out/encoder.onnx" --licence "MIT OR Apache-2.0"
# Beside it an encoder that was trained for longer, on other pictures.
stage eval "$lejepa" eval "$out/encoder.onnx" models/cifar10-resnet/encoder.onnx --suite quick \
    --data .lejepa/data/fashion-mnist --out "$out/report" --cache .lejepa/features

printf '\n%-8s %10s\n' stage time
for i in "${!names[@]}"; do row "${names[i]}" "${times[i]}"; done
row total $(($(now) - begin))
printf '\nresults: %s (also .md, .json and .csv)\n' "$out/report/report.html"
