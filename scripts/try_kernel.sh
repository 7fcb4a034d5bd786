#!/usr/bin/env bash
# Tests the current kernels of an operation in kernels/templates within seconds, without a build.
#
#   scripts/try_kernel.sh OPERATION [options of greta-tune verify]
#
#   scripts/try_kernel.sh softmax
#   scripts/try_kernel.sh gemm --variant gemv --problems 20
#   scripts/try_kernel.sh gemm --m 100 --n 33 --k 70 --device hip-host:2
#
# The default devices are lavapipe, for the GLSL source, and hip-host:1, for the HIP source. Uses
# greta-tune of build/dev, else of build/release. Changed C++ sources must be built first.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

if (($# == 0)) || [[ $1 == -* ]]; then
  echo "try_kernel.sh: needs an operation first, such as gemm; the next words are options of greta-tune verify" >&2
  exit 2
fi
tune=""
for preset in dev release; do
  tune=$root/build/$preset/bin/greta-tune
  [[ ! -x $tune ]] || break
done
if [[ ! -x $tune ]]; then
  echo "try_kernel.sh: no greta-tune in build/dev/bin or build/release/bin; build it once:" \
    "cmake --preset dev && cmake --build --preset dev --target greta-tune" >&2
  exit 1
fi

devices=(lavapipe hip-host:1)
problems=(--problems 5)
for argument in "$@"; do
  case $argument in
    --device | --device=*) devices=("") ;;
    --variant* | --seed* | --first | --deadline* | --only* | --json | --sanitize) ;;
    --*) problems=() ;; # a given problem, or a number of random ones
  esac
done
code=0
for device in "${devices[@]}"; do
  words=(verify "$@" "${problems[@]}" ${device:+--device "$device"} --templates "$root/kernels/templates")
  # lavapipe compiles kernels three times faster without LLVM's optimisations.
  GALLIVM_PERF=${GALLIVM_PERF:-nopt} "$tune" "${words[@]}" || code=$?
done
exit "$code"
