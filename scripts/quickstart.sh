#!/usr/bin/env bash
# Installs dependencies, builds greta-tune and tunes a GEMM of 1024 x 1024 x 1024 on the best device.
# Arguments are passed to `greta-tune gemm` and override the defaults:
#   scripts/quickstart.sh --budget 20s --device lavapipe
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh
echo "Building greta-tune"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake --preset release && cmake --build --preset release --target greta-tune; } \
  >"$log" 2>&1; then
  cat "$log" >&2
  echo "scripts/quickstart.sh: the build failed; its output is above" >&2
  exit 1
fi

arguments=("$@")
add_default() {  # NAME VALUE
  local argument
  for argument in "${arguments[@]}"; do
    [[ $argument == "$1" || $argument == "$1="* ]] && return
  done
  arguments+=("$1" "$2")
}
add_default --m 1024
add_default --n 1024
add_default --k 1024
add_default --budget 60s
echo "\$ greta-tune gemm ${arguments[*]}"
build/release/bin/greta-tune gemm "${arguments[@]}"
