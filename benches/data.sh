#!/usr/bin/env bash
# Photographs per second on one core, beside torchvision and Pillow: benches/data.sh [PHOTOS] [SECONDS]
#
# Training views (2 of 224 and 6 of 96 pixels, all augmentations, from JPEG bytes) and the evaluation transform
# (short side 256, centre 224, from decoded images). PHOTOS is a folder of JPEG files; without one, photographs out
# of Python packages are used. Both sides run in turn, three times each, and the best of each counts. The peers live
# in a throw-away environment in .lejepa/bench (PyTorch is a large download).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source=benches/peers.sh
source benches/peers.sh
seconds=${2:-5}
photos=${1:-$bench/photos}
if [ $# -eq 0 ]; then $python benches/make_photos.py $bench/photos; fi

ours=$(cargo bench --workspace --bench pipeline --locked --no-run 2>&1 | tee /dev/stderr | sed -n 's/.*(\(.*pipeline-[0-9a-f]*\))$/\1/p')

: >$bench/ours.jsonl
: >$bench/peer.jsonl
for _ in 1 2 3; do
    taskset -c 0 $python benches/data_peer.py "$photos" "$seconds" >>$bench/peer.jsonl
    taskset -c 0 "$ours" "$photos" "$seconds" >>$bench/ours.jsonl
done
$python - $bench <<'PY'
import json, pathlib, sys

def best(name):
    lines = (pathlib.Path(sys.argv[1]) / name).read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    return {key: max(run[key] for run in runs) for key in runs[0]}

ours, peer = best("ours.jsonl"), best("peer.jsonl")
rows = [
    ("training views", "views_per_second", ("views_pillow", "views_tensor")),
    ("JPEG decoding", "decode_per_second", ("decode_pillow",)),
    ("evaluation transform", "transform_per_second", ("transform_pillow", "transform_torchvision")),
]
print("images/s on one core    lejepa    peers (faster first)                                    ratio")
for title, key, peers in rows:
    peers = sorted(((peer[name], name) for name in peers), reverse=True)
    text = ", ".join(f"{name.split('_')[1]} {rate:.0f}" for rate, name in peers)
    print(f"{title:<22} {ours[key]:>8.0f}    {text:<54} {ours[key] / peers[0][0]:>5.1f}x")
PY
