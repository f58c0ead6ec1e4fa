#!/usr/bin/env bash
# SIGReg, forward and backward, beside PyTorch: benches/sigreg.sh [SECONDS]
#
# The size of an ordinary training step, the paper's grid of samples, slices and knots (table "times"), and two cases with
# more dimensions, in which the projection weighs more. Both sides have 2 threads and a process of their own per case; they
# run in turn, twice each, and the better run counts. PyTorch lives in a throw-away environment in .lejepa/bench (a large
# download).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source=benches/peers.sh
source benches/peers.sh
seconds=${1:-2}
ours=$(cargo bench --workspace --bench sigreg --locked --no-run 2>&1 | tee /dev/stderr | sed -n 's/.*(\(.*sigreg-[0-9a-f]*\))$/\1/p')
available=$(awk '/MemAvailable/ { print int($2 / 1e6) }' /proc/meminfo)
export RAYON_NUM_THREADS=2

best() { # of two JSON lines
    $python -c 'import json, sys; runs = [json.loads(line) for line in sys.stdin]
print(min(run["milliseconds"] for run in runs), min(run["megabytes"] for run in runs))'
}

printf '%7s %6s %6s %5s | %10s %8s | %9s %8s %9s | %7s %7s\n' \
    samples slices knots dim 'PyTorch ms' MB 'lejepa ms' MB 'ns/value' faster memory
while read -r samples slices knots dim; do
    # Angles, cosines, sines, their gradients: about six tensors of samples x slices x knots, and some air.
    gigabytes=$((samples * slices * knots * 4 * 8 / 1000000000))
    : >$bench/ours
    : >$bench/peer
    for _ in 1 2; do
        if [ "$gigabytes" -lt "$available" ]; then
            taskset -c 0,1 $python benches/sigreg_peer.py "$samples" "$slices" "$knots" "$dim" "$seconds" >>$bench/peer
        fi
        taskset -c 0,1 "$ours" "$samples" "$slices" "$knots" "$dim" "$seconds" >>$bench/ours
    done
    read -r ms mb < <(best <$bench/ours)
    # Per projected value: what stays the same if time is linear in samples and slices.
    ns=$(awk "BEGIN { print $ms * 1e6 / ($samples * $slices) }")
    peer=$(printf '%10s %8s' '-' '-') ratios='does not fit'
    if [ -s $bench/peer ]; then
        read -r peer_ms peer_mb < <(best <$bench/peer)
        peer=$(printf '%10.1f %8.0f' "$peer_ms" "$peer_mb")
        ratios=$(awk "BEGIN { printf \"%6.1fx %6.1fx\", $peer_ms / $ms, $peer_mb / $mb }")
    fi
    printf '%7d %6d %6d %5d | %s | %9.2f %8.1f %9.2f | %s\n' \
        "$samples" "$slices" "$knots" "$dim" "$peer" "$ms" "$mb" "$ns" "$ratios"
done <<'CASES'
2048 1024 17 64
512 512 17 64
512 512 65 64
512 512 257 64
2048 512 17 64
8192 512 17 64
8192 8192 17 64
32768 512 17 64
512 2048 17 64
512 8192 17 64
512 512 17 512
2048 1024 17 512
CASES
