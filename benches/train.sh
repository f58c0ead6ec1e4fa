#!/usr/bin/env bash
# A training step (encoder, projector, loss, backward, AdamW; f32) beside PyTorch eager with timm's encoders:
# benches/train.sh [SECONDS] [CASE...]
#
# Both sides have 2 threads and a process of their own per case; they run in turn, three times each, and the best step of
# each counts. For convolutional networks PyTorch runs with channels first and with channels last, and the faster counts.
# The second ratio is of the processor time of all threads, which says more than the clock on a machine that is busy with
# other things. The shares of the parts are of lejepa's step, forward and backward together. PyTorch lives in a throw-away
# environment in .lejepa/bench (a large download).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source=benches/peers.sh
source benches/peers.sh
seconds=${1:-8}
shift || true
cases=("$@")
if [ ${#cases[@]} -eq 0 ]; then cases=(vit-tiny vit-small-images resnet18 convnextv2-atto); fi
ours=$(cargo bench --workspace --bench train --locked --no-run 2>&1 | tee /dev/stderr | sed -n 's/.*(\(.*train-[0-9a-f]*\))$/\1/p')
export RAYON_NUM_THREADS=2 OMP_NUM_THREADS=2
# Threads that spin while they wait for another lose more on a busy machine than they win on an idle one: PyTorch's, and
# those of Candle's elementwise operations.
if awk '{ exit !($1 > 1) }' /proc/loadavg; then export OMP_WAIT_POLICY=PASSIVE CANDLE_NUM_THREADS=1; fi

folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
for case in "${cases[@]}"; do
    layouts=channels_first
    case $case in resnet* | convnext*) layouts='channels_first channels_last' ;; esac
    for _ in 1 2 3; do
        for layout in $layouts; do
            taskset -c 0,1 $python benches/train_peer.py "$case" "$layout" "$seconds" >>"$folder/peer"
        done
        taskset -c 0,1 "$ours" "$case" "$seconds" >>"$folder/ours"
    done
    $python - "$case" "$folder" <<'PY'
import json, pathlib, sys

case, folder = sys.argv[1], pathlib.Path(sys.argv[2])

def best(name):
    runs = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    fastest = min(runs, key=lambda run: run["milliseconds"])
    return {**fastest, "processor": min(run["processor"] for run in runs)}

ours, peer = best("ours"), best("peer")
print(
    f"{case:<17} PyTorch {peer['milliseconds']:7.1f} ms {peer['megabytes']:6.0f} MB"
    f" | lejepa {ours['milliseconds']:7.1f} ms {ours['megabytes']:6.0f} MB"
    f" | {peer['milliseconds'] / ours['milliseconds']:.2f}x as fast"
    f" ({peer['processor'] / ours['processor']:.2f}x by processor time),"
    f" {ours['megabytes'] / peer['megabytes']:.2f}x the memory"
)
shares = sorted(ours["parts"].items(), key=lambda part: -part[1])
print("  " + ", ".join(f"{part} {share:.1%}" for part, share in shares))
PY
    rm "$folder/peer" "$folder/ours"
done
