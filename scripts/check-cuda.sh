#!/usr/bin/env bash
# Proves that everything compiles for CUDA, on a machine without a GPU: scripts/check-cuda.sh
#
# The compiler and libraries of CUDA come from PyPI wheels into .lejepa/cuda (1.2 GB, once). About ten minutes on two
# cores; not part of the tests. What it checks is `cargo check --features cuda`, nothing runs on a GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cuda=$PWD/.lejepa/cuda
if [ ! -x "$cuda/nvidia/cu13/bin/nvcc" ]; then
    echo 'check-cuda: fetching CUDA from PyPI' >&2
    rm -rf "$cuda.new"
    mkdir -p .lejepa
    python3 -m venv "$cuda.new/venv"
    "$cuda.new/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$cuda.new" \
        nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime nvidia-cuda-cccl nvidia-curand nvidia-cublas \
        nvidia-cuda-nvrtc
    chmod +x "$cuda.new"/nvidia/cu13/bin/* "$cuda.new"/nvidia/cu13/nvvm/bin/*
    rm -rf "$cuda" "$cuda.new/venv"
    mv "$cuda.new" "$cuda"
fi

export CUDA_HOME=$cuda/nvidia/cu13
export PATH=$CUDA_HOME/bin:$PATH
# The kernels' target; any card since Ampere runs them.
export CUDA_COMPUTE_CAP=${CUDA_COMPUTE_CAP:-80}
cargo check --workspace --locked --features lejepa-cli/cuda --target-dir "${CARGO_TARGET_DIR:-$PWD/target/cuda}"
echo 'check-cuda: passed' >&2
