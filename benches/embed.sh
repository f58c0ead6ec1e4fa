#!/usr/bin/env bash
# JPEG files to vectors (ViT-tiny/16 at 224 pixels, two threads), beside Pillow + timm and Pillow + Python's ONNX
# Runtime: benches/embed.sh [PHOTOS] [SECONDS]
#
# PHOTOS is a folder of JPEG files; without one, photographs out of Python packages are used. All run in turn, five
# times each, and the best of each counts. The peers live in a throw-away environment in .lejepa/bench (PyTorch is a
# large download).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source=benches/peers.sh
source benches/peers.sh
seconds=${2:-4}
photos=${1:-$bench/photos}
if [ $# -eq 0 ]; then $python benches/make_photos.py $bench/photos; fi

ours=$(cargo bench --workspace --bench embed --locked --no-run 2>&1 | tee /dev/stderr | sed -n 's/.*(\(.*embed-[0-9a-f]*\))$/\1/p')
lejepa=target/release/lejepa
if [ ! -x $lejepa ]; then cargo build --release --workspace --locked; fi

files=$bench/embed
rm -rf $files
mkdir -p $files
$python benches/embed_peer.py weights $files/weights.safetensors
$lejepa import $files/weights.safetensors --arch vit_tiny_patch16_224 --out $files/run
$lejepa export $files/run --out $files/all.onnx
$lejepa export $files/run --out $files/alone.onnx --outputs embedding
$lejepa export $files/run --out $files/int8.onnx --precision int8

two="taskset -c 0,1"
for _ in 1 2 3 4 5; do
    $two $python benches/embed_peer.py rates "$photos" "$seconds" $files/weights.safetensors $files/alone.onnx \
        2>/dev/null >>$files/peer.jsonl
    $two "$ours" "$photos" "$seconds" $files/all.onnx $files/alone.onnx $files/int8.onnx >>$files/ours.jsonl
done
$python - $files <<'PY'
import json, pathlib, sys

folder = pathlib.Path(sys.argv[1])

def best(name):
    runs = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    return {pathlib.Path(key).stem: max(run[key] for run in runs) for key in runs[0]}

ours, peer = best("ours.jsonl"), best("peer.jsonl")
fastest = max(peer.values())
print("images/s, two threads, JPEG files to vectors (ViT-tiny/16, 224 pixels)")
for title, rate in (
    ("lejepa-embed, f32", ours["all"]),
    ("lejepa-embed, int8", ours["int8"]),
    ("Pillow + timm", peer["timm"]),
    ("Pillow + Python's ONNX Runtime", peer["onnxruntime"]),
):
    print(f"  {title:<32} {rate:>6.1f}")
print(f"f32 over the faster peer: {ours['all'] / fastest:.2f}x; int8 over f32: {ours['int8'] / ours['all']:.2f}x")
print(f"a file with all outputs over one with the embedding alone: {ours['all'] / ours['alone']:.2f}x")
PY
