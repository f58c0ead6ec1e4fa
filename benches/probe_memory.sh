#!/usr/bin/env bash
# Memory of the probes on synthetic features of ImageNet-1k's shape: benches/probe_memory.sh [PROBE...]
#
# 1024 dimensions and 1000 classes at a fortieth and a tenth of its 1,281,167 training and 50,000 test images: the peak of
# the process in MB, with the features; how it grows, in bytes for each byte of features; and what that makes of all of it,
# beside the limit of 1.5 times the features and 2 GB. Logistic regression takes most of an hour, the others minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ours=$(cargo bench --workspace --bench memory --locked --no-run 2>&1 | tee /dev/stderr | sed -n 's/.*(\(.*memory-[0-9a-f]*\))$/\1/p')
[ $# -gt 0 ] || set -- knn ridge linear logistic
printf '%-9s %8s %8s %8s %8s | %6s %8s %8s\n' probe 1/40 peak 1/10 peak growth all limit
for probe in "$@"; do
    small=$("$ours" "$probe" 32029 1250)
    large=$("$ours" "$probe" 128117 5000)
    python3 -c 'import json, sys
small, large = (json.loads(text) for text in sys.argv[2:])
growth = (large["peak"] - small["peak"]) / (large["features"] - small["features"])
features = (1281167 + 50000) * 1024 * 4 / 1e6
whole = large["peak"] + growth * (features - large["features"])
numbers = [part[name] for part in (small, large) for name in ("features", "peak")]
print("%-9s %8.0f %8.0f %8.0f %8.0f | %6.2f %8.0f %8.0f" % (sys.argv[1], *numbers, growth, whole, 1.5 * features + 2000))
' "$probe" "$small" "$large"
done
