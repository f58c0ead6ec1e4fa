# The throw-away Python environment of the peers, made once, for the benchmarks to source: sets `bench` and `python`.
# shellcheck shell=bash disable=SC2034
bench=.lejepa/bench
if [ ! -x $bench/venv/bin/python ]; then
    echo 'bench: installing PyTorch, torchvision, Pillow and more' >&2
    rm -rf $bench/venv.new
    python3 -m venv $bench/venv.new
    $bench/venv.new/bin/python -m pip install --quiet --disable-pip-version-check \
        torch torchvision pillow numpy scikit-image scikit-learn
    mv $bench/venv.new $bench/venv
fi
# Added later: an environment from before lacks it.
if ! $bench/venv/bin/python -c 'import timm, onnxruntime, safetensors, faiss' 2>/dev/null; then
    echo 'bench: installing timm, ONNX Runtime and faiss' >&2
    $bench/venv/bin/python -m pip install --quiet --disable-pip-version-check timm onnxruntime safetensors faiss-cpu
fi
python=$bench/venv/bin/python
