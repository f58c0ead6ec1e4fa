#!/usr/bin/env bash
# Exported encoders in Python's ONNX and ONNX Runtime: tests/onnx_check.sh [FILE.onnx...]
#
# Without files, a test writes small encoders of every family in every precision, with all outputs and several sizes.
# The packages live in a throw-away environment in .lejepa/onnx-check.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

environment=.lejepa/onnx-check
if [ ! -x $environment/bin/python ]; then
    rm -rf $environment.new
    python3 -m venv $environment.new
    $environment.new/bin/python -m pip install --quiet --disable-pip-version-check onnx onnxruntime pillow
    mv $environment.new $environment
fi
if [ $# -eq 0 ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    LEJEPA_WRITE_ENCODERS=$work cargo test --release --workspace --locked --test exported_outputs -- \
        --ignored --exact encoders_of_every_kind_are_written_for_the_check_in_python
    set -- "$work"/*.onnx
fi
$environment/bin/python tests/onnx_check.py "$@"
echo 'onnx check: all files are right' >&2
