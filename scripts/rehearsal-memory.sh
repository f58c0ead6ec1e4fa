#!/usr/bin/env bash
# Compares what `lejepa train --dry-run` says of memory with the peak of a real run, for three encoders:
# scripts/rehearsal-memory.sh IMAGES
#
# IMAGES is a folder of photographs. Prints a table and exits with 1 if an estimate is off by more than a tenth. A quarter
# of an hour on two cores; needs 4 GB, Linux and GNU time.
set -euo pipefail
images=$(realpath "${1:?usage: scripts/rehearsal-memory.sh IMAGES}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -n "${LEJEPA:-}" ] || cargo build --release --workspace --locked
lejepa=$(realpath "${LEJEPA:-target/release/lejepa}")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# name, options
cases=(
    vit_tiny '--arch vit_tiny_patch16_224 --batch 32'
    vit_tiny_parts '--arch vit_tiny_patch16_224 --batch 32 --set train.micro_batch=4'
    resnet18 '--arch resnet18 --batch 24 --set views.local.count=2'
    vit_base_parts '--arch vit_base_patch16_224 --batch 4 --set train.micro_batch=1'
)
failed=0
printf '%-16s %10s %10s %8s\n' encoder 'said, GB' 'taken, GB' off
for ((i = 0; i < ${#cases[@]}; i += 2)); do
    name=${cases[i]}
    read -ra options <<<"${cases[i + 1]} --steps 2 --set watch.images=32"
    said=$("$lejepa" train --data "$images" "${options[@]}" --dry-run | sed -n 's/^memory *about \(.*\) GB$/\1/p')
    command time -f %M -o "$out/peak" "$lejepa" train --data "$images" "${options[@]}" --out "$out/$name" >/dev/null 2>&1
    python3 - "$name" "$said" "$(tail -n1 "$out/peak")" <<'PYTHON' || failed=1
import sys
name, said, peak = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]) * 1024 / 1e9
off = said / peak - 1
print(f"{name:<16} {said:10.2f} {peak:10.2f} {off:+8.1%}")
sys.exit(abs(off) > 0.1)
PYTHON
done
exit $failed
