#!/usr/bin/env bash
# Disturbs training, sweeps, exports, embedding and evaluation, and compares what comes out: scripts/faults.sh [SEED]
#
# Every job is first done undisturbed. Then it is killed at random moments, asked to stop, run on a full disk, twice at
# once and with the clock set back, and its checkpoints are damaged; after every fault the same command is typed again
# until it ends. What it leaves must be what the undisturbed job left, to the last bit. Half an hour, without network but
# for Fashion-MNIST; prints a table, and exits with 1 if anything was lost.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh runtime data
cargo build --release --workspace --locked
# Small disks are mounted where nobody else sees them, and are gone with the script.
alone=(unshare --mount)
[ "$(id -u)" = 0 ] || alone+=(--map-root-user)
"${alone[@]}" true 2>/dev/null || alone=()
exec "${alone[@]}" python3 scripts/faults.py "$@"
