#!/usr/bin/env bash
# Runs a whole measuring session on a machine with a GPU, with binaries built on another machine
# (cmake --preset portable && cmake --build --preset portable).
#
#   scripts/measure_gpu.sh OUTDIR --bin DIR [options]
#
#   OUTDIR          receives logs, CSV, JSON and the database: at most nine files
#   --bin DIR       holds greta-tune, greta-bench, greta-compile-helper, greta_test_device,
#                   greta_test_kernels and greta_compile_benchmark
#   --lib DIR       shared libraries that the machine lacks, such as the Vulkan loader
#   --peers FILE    a Python script that times other libraries and prints CSV (--only copy,gemm)
#   --devices LIST  as greta-tune names them; default: hip:0,vulkan:0
#   --budget B      budget per tuned shape and device; default: 300 (trials)
#   --problems N    random problems verified on each device; default: 200
#   --parts LIST    only these parts, or `list`, which prints them with their time limits. tune-hip
#                   selects all parts whose names start with tune-hip-. A session may consist of
#                   several calls with the same OUTDIR
#
# Parts, with each device's API in place of hip: devices, conformance-hip, kernels,
# verify-hip-OPERATION, tune-hip-PROBLEM, compile-hip, benchmark, peers-OPERATIONS, compare-PROBLEM
# (one device against the others) and preset, the only one that takes longer than nine minutes. The
# problems are in measured_problems.txt; tune-hip-softmax selects all of softmax. Every part has a
# time limit, and the other parts run if one fails. The exit code is 1 if any part failed.
# shellcheck disable=SC2317  # plan() calls its argument
set -uo pipefail

# The problems of GRETA's figures for GPUs. Each line has a name, an operation and its options.
problem_list=$(<"$(dirname "${BASH_SOURCE[0]}")/measured_problems.txt")
operations=$(awk '!seen[$2]++ { print $2 }' <<<"$problem_list")

usage() {
  sed -n '2,/^set /{/^set /d;/^# shellcheck/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
  echo "measure_gpu.sh: $*" >&2
  exit 2
}

(($#)) || usage "no OUTDIR given"
out=$1
shift
bin="" lib="" peers="" devices=hip:0,vulkan:0 budget=300 problems=200 parts=""
while (($#)); do
  (($# > 1)) || usage "$1 needs a value"
  case $1 in
    --bin) bin=$2 ;;
    --lib) lib=$2 ;;
    --peers) peers=$2 ;;
    --devices) devices=$2 ;;
    --budget) budget=$2 ;;
    --problems) problems=$2 ;;
    --parts) parts=$2 ;;
    *) usage "unknown option $1" ;;
  esac
  shift 2
done
[[ -x $bin/greta-tune ]] || usage "--bin '$bin': no greta-tune there"
[[ -z $lib || -d $lib ]] || usage "--lib '$lib': no such folder"
[[ -z $peers || -f $peers ]] || usage "--peers '$peers': no such file"

preset=$(cd "$(dirname "${BASH_SOURCE[0]}")/../presets" && pwd)/gemm-peers.json
summary=$out/summary.txt
log=$out/log.txt
db=$out/tuned.db
csv=$out/tuned.csv

# Only GRETA's programs use the --lib folder; others use the machine's libraries.
greta=(env)
[[ -z $lib ]] || greta+=("LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
tune=("${greta[@]}" "$bin/greta-tune")

# plan DO: calls DO for every part, with NAME SECONDS FILE COMMAND…
plan() {
  local api device operation name problem
  "$1" devices 60 "$summary" "${tune[@]}" devices
  for device in ${devices//,/ }; do
    api=${device%%:*}
    # The test suite covers its other devices.
    "$1" "conformance-$api" 300 "$log" "${greta[@]}" "$bin/greta_test_device" \
      "--gtest_filter=*/${device/:/_}"
    for operation in $operations; do
      "$1" "verify-$api-$operation" 500 "$summary" "${tune[@]}" verify "$operation" \
        --device "$device" --problems "$problems" --seed 1
    done
    "$1" "compile-$api" 300 "$summary" "${greta[@]}" "$bin/greta_compile_benchmark" \
      "--device=$device" --candidates=100
    while read -r name problem; do
      # shellcheck disable=SC2086  # options are words
      "$1" "tune-$api-$name" 500 "$summary" "${tune[@]}" $problem --device "$device" \
        --budget "$budget" --db "$db" --csv "$csv"
    done <<<"$problem_list"
  done
  if [[ $devices == *,* ]]; then
    while read -r name problem; do
      # shellcheck disable=SC2086  # options are words
      "$1" "compare-$name" 300 "$summary" "${tune[@]}" $problem --device "$devices" --budget 20 \
        --db "$db" --csv "$csv"
    done <<<"$problem_list"
  fi
  "$1" kernels 300 "$log" "${greta[@]}" "$bin/greta_test_kernels"
  "$1" benchmark 120 "$out/device-benchmark.json" \
    "${greta[@]}" "$bin/greta-bench" --preset "${preset%/*}/device.json" \
    --device "${devices%%,*}" --db "$db" --benchmark_format=json
  if [[ -n $peers ]]; then
    "$1" peers-gemm 300 "$out/peers-gemm.csv" python3 "$peers" --only copy,gemm
    "$1" peers-rows 500 "$out/peers-rows.csv" python3 "$peers" --only copy,softmax,layernorm,rmsnorm
    "$1" peers-attention 300 "$out/peers-attention.csv" python3 "$peers" --only copy,attention
  fi
  "$1" preset 1500 "$log" "${tune[@]}" preset "$preset" --device "${devices%%,*}" --budget 20s \
    --db "$db" --csv "$csv"
}

names=()
remember() { names+=("$1"); }
plan remember

# wanted NAME: succeeds if --parts contains this part or is not given.
wanted() {
  local part
  [[ -n $parts ]] || return 0
  for part in ${parts//,/ }; do
    [[ $1 == "$part" || $1 == "$part-"* ]] && return 0
  done
  return 1
}

if [[ $parts == list ]]; then
  list() { printf '%-24s at most %4d s\n' "$1" "$2"; }
  plan list
  exit 0
fi
for part in ${parts//,/ }; do
  known=0
  for name in "${names[@]}"; do
    [[ $name == "$part" || $name == "$part-"* ]] && known=1
  done
  ((known)) || usage "--parts: no part '$part'; there are: ${names[*]}"
done

mkdir -p "$out" || exit 1
failed=0

# Writes standard output to FILE, errors to the log and the outcome to the summary. SIGINT makes
# greta-tune store its measurements.
run_part() {
  local name=$1 limit=$2 file=$3 start=$SECONDS code
  shift 3
  wanted "$name" || return
  [[ $file == *.txt ]] || : >"$file"  # replaces CSV and JSON of an earlier call
  printf '\n== %s: %s\n' "$name" "$*" | tee -a "$log" >>"$summary"
  timeout --signal=INT --kill-after=30 "$limit" "$@" >>"$file" 2>>"$log" </dev/null
  code=$?
  ((code == 0)) || failed=1
  printf '%-24s exit %3d, %4d of %4d s\n' "$name" "$code" $((SECONDS - start)) "$limit" |
    tee -a "$summary"
}

{
  date -u +'== %Y-%m-%dT%H:%M:%SZ'
  uname -srm
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu --format=csv
  fi
} | tee -a "$summary"

plan run_part

((failed == 0)) && echo "all parts passed" || echo "some parts failed: see $log"
exit "$failed"
