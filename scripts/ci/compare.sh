#!/usr/bin/env bash
# Step of action.yml: compares FOLDER/new.csv with FOLDER/base.csv. Writes the job's summary,
# FOLDER/comparison.json, and the number of regressions to GITHUB_OUTPUT. The exit code is that of
# greta-bench compare: 4 on a regression. Without results of the base branch it is 0.
# Reads BIN, PRESET, THRESHOLD, ACCEPT, FOLDER.
set -euo pipefail

say() {
  printf '%s\n' "$@" >>"$GITHUB_STEP_SUMMARY"
}
fail() {  # CODE MESSAGE
  local message=${2//%/%25}
  message=${message//$'\r'/%0D}
  echo "::error title=greta-bench::${message//$'\n'/%0A}"
  exit "$1"
}

say "### GRETA: $(basename "$PRESET" .json)" ""
if [[ ! -f $FOLDER/base.csv ]]; then
  say "The base branch has no results yet. The next run on it stores them."
  echo "regressions=" >>"$GITHUB_OUTPUT"
  exit 0
fi
command=("${BIN:+$BIN/}greta-bench" compare "$FOLDER/base.csv" "$FOLDER/new.csv" --threshold "$THRESHOLD")
[[ -z ${ACCEPT:-} ]] || command+=(--accept "$ACCEPT")
code=0
"${command[@]}" --format json >"$FOLDER/comparison.json" 2>"$FOLDER/error.txt" || code=$?
if ((code != 0 && code != 4)); then
  error=$(<"$FOLDER/error.txt")
  say "The comparison failed with exit code $code; the step's log has the reason."
  fail "$code" "$error"
fi
"${command[@]}" --format markdown >>"$GITHUB_STEP_SUMMARY" || (($? == code))
regressions=$(sed -n 's/^  "regressions": \([0-9]*\),$/\1/p' "$FOLDER/comparison.json")
echo "regressions=$regressions" >>"$GITHUB_OUTPUT"
((code == 0)) || fail "$code" "$regressions of the benchmarks became slower or fail; see the job's summary"
