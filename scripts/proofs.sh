#!/usr/bin/env bash
# Runs what the documentation names as proof: scripts/proofs.sh [--long] [NAME...]
#
# Every proof is a script of its own, whose output goes to target/proofs/NAME.log; a table with durations comes at the end,
# and the exit code is 1 if one failed. Without names all of them but the long ones: with --long those too. The Python
# peers are fetched from PyPI into .lejepa (a large download, once).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# name, command
proofs=(
    onnx-check 'tests/onnx_check.sh'
    timm-round-trip 'tests/timm_round_trip.sh'
    probe-agreement 'tests/probe_agreement.sh'
    segmentation-agreement 'tests/segmentation_agreement.sh'
    kill-and-resume 'scripts/kill-and-resume.sh'
    fuzz-readers 'scripts/fuzz-readers.sh 10'
    miri 'scripts/miri.sh'
)
long=(
    check-cuda 'scripts/check-cuda.sh'
    faults 'scripts/faults.sh'
    attack-service 'scripts/attack-service.sh'
    bench-sigreg 'benches/sigreg.sh'
    bench-train 'benches/train.sh'
    bench-data 'benches/data.sh'
    bench-embed 'benches/embed.sh'
    bench-probes 'benches/probes.sh'
)

names=()
for argument in "$@"; do
    case $argument in
        --long) proofs+=("${long[@]}") ;;
        -*)
            printf 'error: unknown option: %s\n' "$argument" >&2
            exit 2
            ;;
        *) names+=("$argument") ;;
    esac
done
known=" "
all=("${proofs[@]}" "${long[@]}")
for ((i = 0; i < ${#all[@]}; i += 2)); do known+="${all[i]} "; done
for name in ${names[@]+"${names[@]}"}; do
    if [[ $known != *" $name "* ]]; then
        printf 'error: no such proof: %s\nhint: one of:%s\n' "$name" "$known" >&2
        exit 2
    fi
done
# Named ones are run, long or not.
if [ ${#names[@]} -gt 0 ]; then proofs=("${all[@]}"); fi

scripts/setup.sh runtime
mkdir -p target/proofs
failed=0
table=$(printf '%-24s %-8s %8s  %s' proof result seconds log)
for ((i = 0; i < ${#proofs[@]}; i += 2)); do
    name=${proofs[i]} command=${proofs[i + 1]}
    if [ ${#names[@]} -gt 0 ] && [[ " ${names[*]} " != *" $name "* ]]; then continue; fi
    printf 'proofs: %s\n' "$command" >&2
    log=target/proofs/$name.log
    begin=$SECONDS result=passed
    # Words of the command are split on purpose.
    # shellcheck disable=SC2086
    if ! $command >"$log" 2>&1; then
        result=FAILED failed=1
        tail -n 20 "$log" >&2
    fi
    table+=$'\n'$(printf '%-24s %-8s %8d  %s' "$name" $result $((SECONDS - begin)) "$log")
done
printf '%s\n' "$table"
exit $failed
