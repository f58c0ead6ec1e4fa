#!/usr/bin/env bash
# Runs the tests of unsafe code under Miri: scripts/miri.sh
#
# Takes the nightly toolchain with the components miri and rust-src, and installs them if they are missing. The one place
# where values are made by hand, crates/lejepa-kernels/src/filled.rs, is tested in a crate of its own, for Miri is slow and
# has no vector instructions. The other unsafe lines call foreign code, which Miri does not see. Not part of the tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo 'miri: installing the nightly toolchain with miri and rust-src' >&2
    rustup toolchain install nightly --profile minimal --component miri --component rust-src
fi
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
mkdir "$folder/src"
cp Cargo.lock "$folder"
cat >"$folder/Cargo.toml" <<TOML
[package]
name = "filled"
edition = "2024"

[dependencies]
rayon = "1"
TOML
echo "#![allow(dead_code)]
#[path = \"$PWD/crates/lejepa-kernels/src/filled.rs\"]
mod filled;" >"$folder/src/lib.rs"

# Rayon's threads live as long as the program, and its queues turn numbers into pointers.
export MIRIFLAGS="-Zmiri-ignore-leaks -Zmiri-permissive-provenance -Zmiri-tree-borrows"
cd "$folder"
RAYON_NUM_THREADS=2 cargo +nightly miri test --lib
