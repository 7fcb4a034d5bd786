#!/usr/bin/env bash
# Runs presets on this machine with greta-bench and stores the results as CSV.
#
#   scripts/run_presets_local.sh [options] [-- greta-bench's options]
#
#   --bin DIR        folder of greta-bench; default: build/release/bin, else build/dev/bin
#   --lib DIR        shared libraries that the machine lacks, such as the Vulkan loader
#   --out DIR        receives DIR/DATE_PRESET.csv; default: results/DEVICE, as greta-bench names it
#   --presets LIST   names or files; default: smoke,standard,perf
#   --date DATE      date in file names; default: now. With --out and `-- --resume --limit SECONDS`,
#                    calls with the same date continue the same files until everything is measured
#
# The other presets run if one fails or is incomplete. The exit code is 1 if any did.
set -uo pipefail

usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
  echo "run_presets_local.sh: $*" >&2
  exit 2
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin="" lib="" out="" date="" presets=smoke,standard,perf
while (($#)); do
  [[ $1 != -- ]] || { shift; break; }
  (($# > 1)) || usage "$1 needs a value"
  case $1 in
    --bin) bin=$2 ;;
    --lib) lib=$2 ;;
    --out) out=$2 ;;
    --presets) presets=$2 ;;
    --date) date=$2 ;;
    *) usage "unknown option $1" ;;
  esac
  shift 2
done
if [[ -z $bin ]]; then
  for candidate in "$root/build/release/bin" "$root/build/dev/bin"; do
    [[ -n $bin || ! -x $candidate/greta-bench ]] || bin=$candidate
  done
  [[ -n $bin ]] || usage "no --bin, and no greta-bench in $root/build/release/bin or build/dev/bin"
fi
[[ -x $bin/greta-bench ]] || usage "--bin '$bin': no greta-bench there"
[[ -z $lib || -d $lib ]] || usage "--lib '$lib': no such folder"
bin=$(cd "$bin" && pwd)
command=("$bin/greta-bench")
[[ -z $lib ]] || command=(env "LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "${command[@]}")

failed=0
[[ -z $date || -n $out ]] || usage "--date needs --out"
[[ $date != */* ]] || usage "--date '$date': becomes part of a file's name"
[[ -n $date ]] || date=$(date -u +%Y-%m-%dT%H%M%SZ)
for preset in ${presets//,/ }; do
  # A name refers to a preset of this tree, or of greta-bench's installation.
  file=$preset
  [[ -f $file ]] || file=$root/presets/$preset.json
  [[ -f $file ]] || file=$preset
  name=$(basename "$preset" .json)
  export=(--export)
  [[ -z $out ]] || export=(--export "$out/${date}_$name.csv")
  echo "== $name"
  "${command[@]}" --preset "$file" "$@" "${export[@]}" || {
    echo "run_presets_local.sh: preset $name failed" >&2
    failed=1
  }
done
exit "$failed"
