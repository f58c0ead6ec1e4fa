#!/usr/bin/env bash
# Kills a real training run ten times (or as often as the first argument says) at random moments and
# compares its final weights, bit for bit, with those of a run that nothing happened to.
set -euo pipefail
cd "$(dirname "$0")/.."
LEJEPA_KILLS="${1:-10}" cargo test --release --workspace --locked --test pipeline -- \
    a_run_killed_at_random_moments_goes_on_to_the_same_weights
