#!/usr/bin/env bash
# Runs greta-tune, greta-bench and greta-run on emulated AMD GPUs: a fake libamdhip64 executes code
# objects in an instruction emulator with a fake clock (tests/device/hip/fake/README.md). Its times
# are not measurements.
#
#   scripts/emulate_amd_device.sh EMULATOR_DIR [options]
#
#   EMULATOR_DIR  holds run_co.py, set up and ready to run
#   --build DIR   a build tree; default: build/dev
#   --arch LIST   architectures; default: gfx90a,gfx942,gfx1100,gfx1201
#   --problems N  random problems per operation; default: 6
#   --only LIST   only these steps, by name or prefix of names, such as verify-
#   --hiprtc LIB  a library with hiprtc; default: the system's libamdhip64.so.5, if installed
#   --out DIR     an empty or new folder for logs and databases; default: a temporary one
#
# Prints a table of passed steps. The exit code is 1 if a step failed.
set -uo pipefail

usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
  echo "emulate_amd_device.sh: $*" >&2
  exit 2
}

(($#)) || usage "no EMULATOR_DIR given"
emulator=$1
shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
build=build/dev architectures=gfx90a,gfx942,gfx1100,gfx1201 problems=6 only="" out=""
hiprtc=$(/sbin/ldconfig -p | sed -n 's/.*libamdhip64\.so\.5 .*=> //p' | head -1)
while (($#)); do
  (($# > 1)) || usage "$1 needs a value"
  case $1 in
    --build) build=$2 ;;
    --arch) architectures=$2 ;;
    --problems) problems=$2 ;;
    --only) only=$2 ;;
    --hiprtc) hiprtc=$2 ;;
    --out) out=$2 ;;
    *) usage "unknown option $1" ;;
  esac
  shift 2
done
[[ -r $emulator/run_co.py ]] || usage "EMULATOR_DIR '$emulator': no run_co.py there"
fake=tests/device/hip/amd/libamdhip64.so.7
for file in bin/greta-tune bin/greta-bench bin/greta-run bin/greta-db "$fake"; do
  [[ -x $build/$file ]] || usage "--build '$build': no $file there"
done
[[ -z $out || ! -e $out || (-d $out && -z $(ls -A "$out")) ]] || usage "--out '$out': is not empty"
temporary=$(mktemp -d) || exit 1
servers=()
declare -A server_of
cleanup() {
  ((${#servers[@]} == 0)) || kill "${servers[@]}" 2>/dev/null
  rm -rf "$temporary"
}
trap cleanup EXIT
: "${out:=$temporary/out}"
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
build=$(cd "$build" && pwd) || exit 1
mkdir "$temporary/lib"
cp "$build/$fake" "$temporary/lib/"
[[ -z $hiprtc ]] || ln -s "$hiprtc" "$temporary/lib/libhiprtc.so.5"
model=$root/tests/data/stories260K/stories260K.bin

# step NAME PATTERN COMMAND…: passes if the command exits with 0, its output matches, and the library
# reports no misuse.
step() {
  local name=$1 pattern=$2 one wanted=0 start=$SECONDS code verdict=passed
  shift 2
  for one in ${only//,/ }; do [[ $name == "$one"* ]] && wanted=1; done
  [[ -n $only && $wanted == 0 ]] && return
  printf '%s\n' "$*" >"$folder/$name.command"
  timeout 3000 "$@" >"$folder/$name.txt" 2>"$folder/$name.err" </dev/null
  code=$?
  ((code == 0)) || verdict="exit code $code"
  grep -Eq -- "$pattern" "$folder/$name.txt" || verdict+=", no /$pattern/"
  ! grep -q '^fake HIP:' "$folder/$name.err" || verdict+=", $(grep -m1 '^fake HIP:' "$folder/$name.err")"
  printf '%s\t%s\t%s\t%s\n' "$architecture" "$name" "$verdict" $((SECONDS - start)) >>"$out/steps.tsv"
}

# The token ids that a model generates on a device must equal the published ones.
story() {
  GRETA_STORY=$(python3 - "$root/tests/cli/test_greta_run.py" <<'EOF'
import ast, sys
for one in ast.parse(open(sys.argv[1]).read()).body:
    if isinstance(one, ast.Assign) and one.targets[0].id == "STORY":
        print(ast.literal_eval(one.value))
EOF
)
  export GRETA_STORY
  # shellcheck disable=SC2016  # the inner shell expands
  step "$1" '^60 of 60 ids' bash -c '"$@" --json | python3 -c "
import json, os, sys
ids, story = json.load(sys.stdin)[\"ids\"], json.loads(os.environ[\"GRETA_STORY\"])
print(sum(a == b for a, b in zip(ids, story)), \"of\", len(story), \"ids\")"' \
    story "$build/bin/greta-run" --model "$model" --prompt "Once upon a time" --tokens 60 \
    --device hip:0 "${@:2}"
}

# Exports the winner of an operation and runs the project. Where no accumulator registers exist, its
# source is compiled again: clang may use them in instructions that emulators do not know.
export_kernel() {
  local project=$folder/$1-project again=OFF
  [[ $architecture == gfx9* ]] || again=ON
  "$build/bin/greta-db" export --db "$folder/tuned.db" --kernel "$project" "$1" || return
  LD_LIBRARY_PATH="" cmake -S "$project" -B "$project/build" -DKERNELS_FROM_SOURCE=$again \
    -DHIP_LIBRARY="$temporary/lib/libamdhip64.so.7" || return
  LD_LIBRARY_PATH="" cmake --build "$project/build" || return
  "$project/build/run" --runs 1
}
export -f export_kernel

run_architecture() {
  local tune=$build/bin/greta-tune db=$folder/tuned.db operation
  local options=(--device hip:0 --db "$db" --no-lock --flush 1)
  export GRETA_FAKE_ARCHITECTURE=$architecture GRETA_FAKE_EMULATOR=$temporary/$architecture.socket
  export LD_LIBRARY_PATH=$temporary/lib XDG_CACHE_HOME=$folder/cache
  export architecture build folder temporary
  step devices "Emulated $architecture" "$tune" devices
  step conformance '\[  PASSED  \] [1-9]' "$build/tests/device/greta_test_device" \
    --gtest_filter='*Conformance*hip_0*-*ConformanceFailure*'
  for operation in $("$tune" verify --help | sed -n '/^Subcommands/,$s/^  \([a-z_]*\) .*/\1/p'); do
    step "verify-$operation" "all .* of .* passed" "$tune" verify "$operation" \
      --problems "$problems" --seed 16 --device hip:0
  done
  step doctor 'matrix +passed' "$build/bin/greta-bench" doctor --device hip:0 --db "$folder/doctor.db" --no-lock \
    --timeout 900
  step tune-gemm 'winner' "$tune" gemm --m 64 --n 64 --k 64 --dtype f16 --budget 6 "${options[@]}"
  step tune-attention 'winner' "$tune" attention --heads 2 --q 33 --dim 64 --dtype f16 --budget 4 \
    "${options[@]}"
  step export-gemm 'elements are within their bounds' bash -c "export_kernel gemm"
  step export-attention 'elements are within their bounds' bash -c "export_kernel attention"
  story story-defaults
  # The GEMM after the model's first operation, by its key for one token.
  step tune-story 'winner' "$tune" gemm --m 1 --n 128 --k 64 --layout nt --budget 6 "${options[@]}"
  step explain-story 'qkv.*exact' "$build/bin/greta-run" --model "$model" --explain --device hip:0 --db "$db"
  story story-tuned --db "$db"
  step database "Emulated $architecture" "$tune" show --db "$db"
}

# Each architecture has a separate emulator. As many run concurrently as there are cores.
for architecture in ${architectures//,/ }; do
  python3 "$root/tests/device/hip/fake/emulator.py" "$emulator" "$temporary/$architecture.socket" \
    >"$out/$architecture-emulator.log" 2>&1 &
  servers+=($!)
  server_of[$architecture]=$!
done
jobs=()
for architecture in ${architectures//,/ }; do
  folder=$out/$architecture
  mkdir "$folder" || exit 1
  while [[ ! -S $temporary/$architecture.socket ]]; do
    kill -0 "${server_of[$architecture]}" 2>/dev/null || { cat "$out"/*-emulator.log >&2; exit 1; }
    sleep 0.1
  done
  ((${#jobs[@]} < $(nproc))) || { wait "${jobs[0]}"; jobs=("${jobs[@]:1}"); }
  run_architecture &
  jobs+=($!)
done
wait "${jobs[@]}"

python3 - "$out/steps.tsv" "$architectures" <<'EOF'
import sys
steps = {}
for line in open(sys.argv[1]):
    architecture, name, verdict, seconds = line.rstrip("\n").split("\t")
    steps.setdefault(name, {})[architecture] = (verdict, seconds)
architectures = sys.argv[2].split(",")
print(f"{'step':<26}" + "".join(f"{a:>16}" for a in architectures))
bad = []
for name, by in steps.items():
    cells = []
    for a in architectures:
        verdict, seconds = by.get(a, ("missing", "0"))
        cells.append(f"passed {seconds:>5} s" if verdict == "passed" else "FAILED")
        bad += [] if verdict == "passed" else [f"{a} {name}: {verdict}"]
    print(f"{name:<26}" + "".join(f"{c:>16}" for c in cells))
print(f"{sum(len(by) for by in steps.values()) - len(bad)} passed, {len(bad)} failed")
print(*bad, sep="\n", end="\n" if bad else "")
sys.exit(1 if bad or not steps else 0)
EOF
