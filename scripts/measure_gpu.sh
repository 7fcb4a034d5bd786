#!/usr/bin/env bash
# A whole measuring session on a machine with a GPU, from binaries that were built elsewhere
# (cmake --preset portable && cmake --build --preset portable).
#
#   scripts/measure_gpu.sh OUTDIR --bin DIR [options]
#
#   OUTDIR        receives logs, CSV, JSON and the database: eight files at most
#   --bin DIR     holds greta-tune, greta-compile-helper (which runs NVRTC and hiprtc),
#                 greta_test_device, greta_test_kernels, greta_device_benchmark,
#                 greta_compile_benchmark
#   --lib DIR     shared libraries that the machine lacks, such as the Vulkan loader
#   --peers FILE  a Python script that times other libraries and prints CSV (--only copy,gemm)
#   --device D    as for greta-tune; default: auto
#   --budget B    what each problem of the gemm-peers preset gets; default: 20s
#   --only LIST   some of the steps, by name: devices,conformance,kernels,f32,f16,benchmark,
#                 compile,peers,preset; a session may be spread over several calls with one OUTDIR
#
# Every step has a time limit, and one that fails does not stop the rest. The exit code is 1 when any
# step failed.
set -uo pipefail

usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
  echo "measure_gpu.sh: $*" >&2
  exit 2
}

(($#)) || usage "no OUTDIR given"
out=$1
shift
bin="" lib="" peers="" device=auto budget=20s only=""
while (($#)); do
  (($# > 1)) || usage "$1 needs a value"
  case $1 in
    --bin) bin=$2 ;;
    --lib) lib=$2 ;;
    --peers) peers=$2 ;;
    --device) device=$2 ;;
    --budget) budget=$2 ;;
    --only) only=$2 ;;
    *) usage "unknown option $1" ;;
  esac
  shift 2
done
[[ -x $bin/greta-tune ]] || usage "--bin '$bin': no greta-tune there"
[[ -z $lib || -d $lib ]] || usage "--lib '$lib': no such folder"
[[ -z $peers || -f $peers ]] || usage "--peers '$peers': no such file"
for name in ${only//,/ }; do
  [[ ,devices,conformance,kernels,f32,f16,benchmark,compile,peers,preset, == *",$name,"* ]] ||
    usage "--only: no step '$name'"
done

preset=$(cd "$(dirname "${BASH_SOURCE[0]}")/../presets" && pwd)/gemm-peers.json
mkdir -p "$out" || exit 1
summary=$out/summary.txt
log=$out/log.txt
db=$out/tuned.db
failed=0

# GRETA's own programs alone see the --lib folder; others keep the machine's libraries.
greta=(env)
[[ -z $lib ]] || greta+=("LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
tune=("${greta[@]}" "$bin/greta-tune")

# step NAME SECONDS FILE COMMAND…: standard output goes to FILE, errors to the log, how it ended to
# the summary. SIGINT lets greta-tune keep what it has measured.
step() {
  local name=$1 limit=$2 file=$3 start=$SECONDS code
  shift 3
  [[ -z $only || ,$only, == *",$name,"* ]] || return
  [[ $file == *.txt ]] || : >"$file"  # CSV and JSON of an earlier call are replaced
  printf '\n== %s: %s\n' "$name" "$*" >>"$log"
  timeout --signal=INT --kill-after=30 "$limit" "$@" >>"$file" 2>>"$log" </dev/null
  code=$?
  ((code == 0)) || failed=1
  printf '%-12s exit %3d, %4d of %4d s\n' "$name" "$code" $((SECONDS - start)) "$limit" |
    tee -a "$summary"
}

{
  date -u +'== %Y-%m-%dT%H:%M:%SZ'
  uname -srm
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu --format=csv
  fi
} | tee -a "$summary"

headline=(--device "$device" --budget 60s --db "$db" --json)
step devices 60 "$summary" "${tune[@]}" devices
# Mesa's null hardware is a matter of machines that have Mesa; the test suite looks at it there.
step conformance 240 "$log" "${greta[@]}" "$bin/greta_test_device" '--gtest_filter=-NullHardware*'
step kernels 300 "$log" "${greta[@]}" "$bin/greta_test_kernels"
step f32 240 "$out/gemm-f32-4096.json" "${tune[@]}" gemm --m 4096 --n 4096 --k 4096 "${headline[@]}"
step f16 240 "$out/gemm-f16-1x4096.json" \
  "${tune[@]}" gemm --m 1 --n 4096 --k 4096 --dtype f16 "${headline[@]}"
step benchmark 120 "$out/device-benchmark.json" \
  "${greta[@]}" "$bin/greta_device_benchmark" --benchmark_format=json
step compile 300 "$summary" "${greta[@]}" "$bin/greta_compile_benchmark" "--device=$device"
[[ -z $peers ]] || step peers 300 "$out/peers.csv" python3 "$peers" --only copy,gemm
step preset 1500 "$log" "${tune[@]}" preset "$preset" --device "$device" --budget "$budget" \
  --db "$db" --csv "$out/gemm-peers.csv"

((failed == 0)) && echo "all steps passed" || echo "some steps failed: see $log"
exit "$failed"
