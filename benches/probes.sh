#!/usr/bin/env bash
# The probes beside scikit-learn, faiss and PyTorch: benches/probes.sh
#
# Logistic regression along DINOv2's 45 values of C with warm starts (10,000 x 384, 10 classes); k-NN (50,000 x 384, 10,000
# queries, k = 20) beside the faster of faiss and PyTorch, and the radius and kernel probes on the same features beside that
# time. Both sides have 2 threads and a process of their own; they run in turn, twice each, and the better run counts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source=benches/peers.sh
source benches/peers.sh
ours=$(cargo bench --workspace --bench probes --locked --no-run 2>&1 | tee /dev/stderr | sed -n 's/.*(\(.*probes-[0-9a-f]*\))$/\1/p')
export RAYON_NUM_THREADS=2 OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=2

$python benches/probes_peer.py make 10000 2000 $bench/logistic.safetensors
$python benches/probes_peer.py make 50000 10000 $bench/knn.safetensors

peer() { taskset -c 0,1 $python benches/probes_peer.py "$@"; }
probe() { taskset -c 0,1 "$ours" "$@"; }
for _ in 1 2; do
    peer sklearn $bench/logistic.safetensors >>$bench/probes.sklearn.new
    probe logistic $bench/logistic.safetensors >>$bench/probes.logistic.new
    peer faiss $bench/knn.safetensors >>$bench/probes.faiss.new
    peer torch $bench/knn.safetensors >>$bench/probes.torch.new
    for name in knn radius kernel; do
        probe $name $bench/knn.safetensors >>$bench/probes.$name.new
    done
done

best() { # seconds, megabytes and accuracy of the faster of two runs
    $python -c 'import json, sys; run = min((json.loads(line) for line in sys.stdin), key=lambda run: run["seconds"])
print(run["seconds"], run["megabytes"], run["accuracy"])' <"$bench/probes.$1.new"
}
printf '%-10s %9s %9s %9s | %s\n' probe seconds MB accuracy 'against the peer'
declare -A seconds
for name in sklearn logistic faiss torch knn radius kernel; do
    read -r time megabytes accuracy < <(best $name)
    seconds[$name]=$time
    case $name in
    logistic) against=${seconds[sklearn]} ;;
    knn | radius | kernel) against=$(printf '%s\n' "${seconds[faiss]}" "${seconds[torch]}" | sort -g | head -1) ;;
    *) against= ;;
    esac
    ratio=$([ -z "$against" ] || awk "BEGIN { printf \"%.2fx as fast\", $against / $time }")
    printf '%-10s %9.2f %9.0f %8.2f%% | %s\n' $name "$time" "$megabytes" "$(awk "BEGIN { print 100 * $accuracy }")" "$ratio"
    rm $bench/probes.$name.new
done
