#!/usr/bin/env bash
# Damages the datasets in tests/formats/ at random and reads them, for as long as you like:
#
#   scripts/fuzz-readers.sh [SECONDS for each format, 300 if absent] [--format NAME]
#   scripts/fuzz-readers.sh --format NAME --seed N      the same damage again
#
# A finding is a panic, a crash, ten seconds without an answer, or more memory than 1.5 GB. Its files
# and its seed go to target/fuzz/findings/; the exit code is 1 if there is one.
# HDF5 files are looked at by another process first, as the program does: what crashes the C library that parses them
# is no finding then. With --alone they are not, and it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=300
only=
seed=
options=()
while [ $# -gt 0 ]; do
    case $1 in
        --format) only=$2; shift ;;
        --seed) seed=$2; shift ;;
        --alone) options+=(alone) ;;
        *[!0-9]* | '')
            printf 'error: not a number of seconds: %s\n' "$1" >&2
            exit 2
            ;;
        *) seconds=$1 ;;
    esac
    shift
done

target=${CARGO_TARGET_DIR:-target/fuzz}
findings=target/fuzz/findings
# As fast as a release, with overflows of our own arithmetic noticed.
cargo build --release --locked -p lejepa-data --example fuzz_readers --target-dir "$target" \
    --config 'profile.release.package.lejepa-data.overflow-checks=true' \
    --config 'profile.release.package.lejepa-data.debug-assertions=true'

mkdir -p "$findings"
# In memory if possible: files are rewritten all the time.
work=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
trap 'rm -rf "$work"' EXIT
ulimit -v 1500000
ulimit -c 0

for folder in tests/formats/*/; do
    name=$(basename "$folder")
    if [ -n "$only" ] && [ "$name" != "$only" ]; then continue; fi
    end=$((SECONDS + seconds))
    first=${seed:-$(date +%s)000000} # other numbers every time
    count=${seed:+1}
    while [ "$SECONDS" -lt "$end" ]; do
        rm -rf "${work:?}"/*
        status=0
        "$target/release/examples/fuzz_readers" tests/formats "$name" "$work" "$findings" \
            "$first" "${count:-1000000000}" $((end - SECONDS)) "${options[@]}" || status=$?
        if [ "$status" -eq 0 ]; then break; fi
        if [ ! -e "$work/seed" ]; then exit "$status"; fi
        first=$(cat "$work/seed")
        printf '%s: seed %s: ended with status %s\n' "$name" "$first" "$status" >&2
        rm -rf "${findings:?}/$name-$first"
        cp -r "$work" "$findings/$name-$first"
        if [ -n "$seed" ]; then break; fi
        first=$((first + 1))
    done
done
found=$(find "$findings" -mindepth 1 -maxdepth 1 | wc -l)
if [ "$found" -gt 0 ]; then
    printf '%s findings in %s\n' "$found" "$findings" >&2
    exit 1
fi
