#!/usr/bin/env bash
# Runs presets on another machine and copies the results back.
#
#   scripts/run_presets_remote.sh HOST [options] [-- greta-bench's options]
#
#   HOST             a host name for ssh
#   --build DIR      a build that runs on other machines; default: build/portable, created by
#                    `cmake --preset portable && cmake --build --preset portable`
#   --lib DIR        shared libraries that the machine lacks, such as the Vulkan loader
#   --db FILE        a database whose winners run there; default: none
#   --out DIR        receives the CSV files and greta-bench's output; default: results/HOST
#   --presets LIST   names or files of this machine; default: smoke,standard,perf
#
# The other machine needs bash, tar and the C++ library. Everything there runs in a temporary folder,
# which is removed at the end. The exit code is greta-bench's: 1 if any preset failed.
# shellcheck disable=SC2029,SC2317  # remote commands are expanded here; the trap calls cleanup
set -uo pipefail

usage() {
  sed -n '2,/^set /{/^set /d;/^# shellcheck/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
  echo "run_presets_remote.sh: $*" >&2
  exit 2
}
fail() {
  echo "run_presets_remote.sh: $*" >&2
  exit 1
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
(($#)) || usage "no HOST given"
host=$1
shift
[[ $host != -* ]] || usage "no HOST given"
build=$root/build/portable lib="" db="" out="" presets=smoke,standard,perf
while (($#)); do
  [[ $1 != -- ]] || { shift; break; }
  (($# > 1)) || usage "$1 needs a value"
  case $1 in
    --build) build=$2 ;;
    --lib) lib=$2 ;;
    --db) db=$2 ;;
    --out) out=$2 ;;
    --presets) presets=$2 ;;
    *) usage "unknown option $1" ;;
  esac
  shift 2
done
[[ -x $build/bin/greta-bench ]] || usage "--build '$build': no bin/greta-bench there"
[[ -z $lib || -d $lib ]] || usage "--lib '$lib': no such folder"
[[ -z $db || -f $db ]] || usage "--db '$db': no such file"
[[ -n $out ]] || out=$root/results/${host##*@}

pack=$(mktemp -d) || exit 1
there=""
cleanup() {
  rm -rf "$pack"
  [[ -z $there ]] || ssh "$host" "rm -rf '$there'" </dev/null
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# The installation tree of greta-bench: programs, their helper and libraries, presets.
mkdir -p "$pack/bin" "$pack/scripts" "$pack/presets" "$pack/lib"
cp -L "$build/bin/greta-bench" "$pack/bin/" || exit 1
for file in "$build"/bin/*.so* "$build/bin/greta-tune"; do
  [[ ! -f $file ]] || cp -L "$file" "$pack/bin/"
done
helper=$(find "$build" -name greta-compile-helper -type f -perm -u+x -print -quit)
[[ -z $helper ]] || cp "$helper" "$pack/bin/"
[[ -z $lib ]] || cp -rL "$lib/." "$pack/lib/"
[[ -z $db ]] || cp "$db" "$pack/tuned.db" || exit 1
cp "$root/scripts/run_presets_local.sh" "$pack/scripts/"
names=()
for preset in ${presets//,/ }; do
  file=$preset
  [[ -f $file ]] || file=$root/presets/$preset.json
  [[ -f $file ]] || usage "--presets: no preset '$preset'"
  cp "$file" "$pack/presets/"
  names+=("$(basename "$file" .json)")
done
list=$(IFS=,; echo "${names[*]}")
mkdir -p "$out" || exit 1

# Arguments quoted for the other machine's shell.
quoted=""
for word in "$@"; do quoted+=" $(printf %q "$word")"; done

there=$(ssh "$host" 'mktemp -d' </dev/null) || fail "can't reach $host"
[[ $there == /* ]] || fail "$host gives no folder to work in, but '$there'"
tar -C "$pack" -czf - . | ssh "$host" "tar -C '$there' -xzf -" || fail "can't copy to $host"
ssh "$host" "cd '$there' && mkdir -p home out && HOME='$there/home' XDG_CACHE_HOME='$there/home' \
  bash scripts/run_presets_local.sh --bin bin --lib '$there/lib' --out out --presets '$list' \
  -- --db '$there/tuned.db'$quoted >out/output.txt 2>&1" </dev/null
code=$?
ssh "$host" "tar -C '$there/out' -czf - ." </dev/null | tar -C "$out" -xzf - ||
  fail "the figures did not come back from $host"
cat "$out/output.txt"
echo "figures are in $out"
exit "$code"
