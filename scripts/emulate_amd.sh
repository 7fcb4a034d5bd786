#!/usr/bin/env bash
# Runs HIP kernels compiled for AMD GPUs in an instruction emulator, on random problems with random
# configurations and on given problems with default configurations, and checks the results.
#
#   scripts/emulate_amd.sh EMULATOR_DIR [options]
#
#   EMULATOR_DIR  holds run_case.py, set up and ready to run
#   --cases N     random problems for each architecture and operation; default: 50
#   --arch LIST   architectures; default: gfx90a,gfx942,gfx950,gfx1100,gfx1201
#   --op LIST     operations, also files that describe kernels (docs/your-kernel.md); default: gemm
#   --variant V   only this variant of the operations
#   --problems F  also the problems of this file, one per line: an operation and its options
#   --seed S      seed of problems, configurations, inputs and schedules; default: 1
#   --out DIR     an empty or new folder for cases and logs; default: a temporary one
#   --tune FILE   greta-tune; default: the one on PATH
#
# Every case runs twice: once with the waves in order, and once in random order with buffers placed so
# that an access one float beyond them is detected. Prints a table of passed cases, and each failed
# one. The exit code is 1 if a case failed or has no verdict.
set -uo pipefail

usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
  echo "emulate_amd.sh: $*" >&2
  exit 2
}

(($#)) || usage "no EMULATOR_DIR given"
emulator=$1
shift
cases=50 architectures=gfx90a,gfx942,gfx950,gfx1100,gfx1201 op=gemm variant="" seed=1 out="" tune=greta-tune problems=/dev/null
while (($#)); do
  (($# > 1)) || usage "$1 needs a value"
  case $1 in
    --cases) cases=$2 ;;
    --arch) architectures=$2 ;;
    --op) op=$2 ;;
    --problems) problems=$2 ;;
    --variant) variant=$2 ;;
    --seed) seed=$2 ;;
    --out) out=$2 ;;
    --tune) tune=$2 ;;
    *) usage "unknown option $1" ;;
  esac
  shift 2
done
[[ -x $emulator/run_case.py ]] || usage "EMULATOR_DIR '$emulator': no run_case.py there"
command -v "$tune" >/dev/null || usage "--tune '$tune': no such program"
[[ -r $problems ]] || usage "--problems '$problems': can't be read"
[[ -z $out || ! -e $out || (-d $out && -z $(ls -A "$out")) ]] || usage "--out '$out': is not empty"
if [[ -z $out ]]; then
  out=$(mktemp -d) || exit 1
  trap 'rm -rf "$out"' EXIT
fi
failed=0

mkdir -p "$out/cases" && out=$(cd "$out" && pwd) || exit 1

# emit ARCHITECTURE NAME OPTION…: writes cases to a folder of that name, with the compiler's report.
emit() {
  mkdir -p "$out/cases/$1"
  "$tune" compile "${@:3}" --arch "$1" --seed "$seed" --emit-case "$out/cases/$1/$2" \
    >"$out/cases/$1/$2.txt" </dev/null
  local code=$?
  ((code != 2)) || exit 2
  ((code == 0)) && return
  failed=1
  echo "$1: some did not compile: ${*:3}"
}
for architecture in ${architectures//,/ }; do
  for one in ${op//,/ }; do
    ((cases == 0)) ||
      emit "$architecture" "${one##*/}" "$one" --random "$cases" ${variant:+--variant "$variant"}
  done
  line=0
  while read -ra words; do
    ((++line))
    [[ ${words[0]:-#} == \#* ]] || emit "$architecture" "line-$line" "${words[@]}"
  done <"$problems"
done
# Cases of random problems are numbered folders. A default's folder is itself a case.
mapfile -t folders < <(find "$out/cases" -name case.json -printf '%h\n' | sort)

# round NAME OPTION…: runs all cases on all cores. Each process writes its command and its log. Cases
# of one architecture share a process, which prepares each instruction once.
cores=$(nproc)
round() {
  mkdir -p "$out/$1"
  # shellcheck disable=SC2016  # the inner shell expands
  printf '%s\0' "${folders[@]}" |
    xargs -0 -P "$cores" -n $(((${#folders[@]} + cores - 1) / cores)) \
      bash -c 'to=$1/$$; shift; printf "%s\n" "$@" >"$to.command"; exec "$@" >"$to.log" 2>&1' \
      run "$out/$1" \
      "$emulator/run_case.py" --seed "$seed" "${@:2}"
}
round in-order --order fwd
round random-order --order rand --slack 4

python3 - "$out" <<'EOF'
import collections, json, pathlib, re, sys

out = pathlib.Path(sys.argv[1])
cases = {}
for file in sorted(out.glob("cases/**/case.json")):
    case = json.loads(file.read_text())
    types = dict(re.findall(r"\b(dtype|out)=(\w+)", case["problem"]))
    kind = (case["arch"], case["op"], case["config"].split()[0],
            f"{types.get('dtype')} to {types.get('out')}")
    cases[str(file.parent)] = kind
rounds = ("in-order", "random-order")
passed = {name: collections.Counter() for name in rounds}
bad = []
for name in rounds:
    judged, wrong = set(), set()
    for log in (out / name).glob("*.log"):
        lines = log.read_text(errors="replace").splitlines()
        if lines and re.fullmatch(r"\d+ passed, \d+ failed, \d+ unusable", lines[-1]):
            judged.update(log.with_suffix(".command").read_text().splitlines())
            wrong.update(line.split(": ")[0] for line in lines)
            lines.pop()
        bad += [f"{name}: {line}" for line in lines]
    if missing := cases.keys() - judged:
        bad.append(f"{name}: {len(missing)} cases have no verdict")
    passed[name].update(cases[folder] for folder in (cases.keys() & judged) - wrong)
kinds = collections.Counter(cases.values())
print(f"{'arch':<9} {'operation':<17} {'variant':<10} {'types':<13} {'cases':>5} {'in order':>9} "
      f"{'random':>7}")
for kind in [*sorted(kinds), None]:
    row = kind or ("all", "", "", "")
    figures = [counter[kind] if kind else sum(counter.values()) for counter in
               (kinds, passed["in-order"], passed["random-order"])]
    print(f"{row[0]:<9} {row[1]:<17} {row[2]:<10} {row[3]:<13} {figures[0]:>5} {figures[1]:>9} "
          f"{figures[2]:>7}")
print(*bad, sep="\n", end="\n" if bad else "")
sys.exit(1 if bad or not cases else 0)
EOF
(($? == 0 && failed == 0))
