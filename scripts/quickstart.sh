#!/usr/bin/env bash
# Installs dependencies, builds greta-tune and tunes a GEMM of 1024 x 1024 x 1024 on the best device.
# Arguments are passed to `greta-tune gemm` and override the defaults:
#   scripts/quickstart.sh --budget 20s --device lavapipe
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

echo "1 of 3: installing dependencies"
scripts/setup.sh
echo "2 of 3: building greta-tune in build/release, about 3 minutes on two cores"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Prints every tenth step of the build, "[30/96] Building CXX object …", as "  30 of 96".
show_steps() {
  local line
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    if ((BASH_REMATCH[1] % 10 == 0 || BASH_REMATCH[1] == BASH_REMATCH[2])); then
      echo "  ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
    fi
  done
}
if ! { cmake --preset release && cmake --build --preset release --target greta-tune; } 2>&1 |
  show_steps; then
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
# The page of greta-report is in the build where Node.js is.
if [[ -s build/release/report/page/report.html ]]; then
  add_default --report build/release/quickstart.html
else
  echo "  without a report page: $(cat build/release/report/page/missing.txt)"
fi
echo "3 of 3: tuning; the report follows the search"
echo "\$ greta-tune gemm ${arguments[*]}"
build/release/bin/greta-tune gemm "${arguments[@]}"
