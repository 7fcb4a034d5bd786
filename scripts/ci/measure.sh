#!/usr/bin/env bash
# Step of action.yml: runs the preset. Reads BIN, PRESET, DEVICE, OPTIONS, FOLDER; writes
# FOLDER/new.csv.
set -euo pipefail

rm -f "$FOLDER/new.csv"
read -r -a words <<<"$OPTIONS"
exec "${BIN:+$BIN/}greta-bench" --preset "$PRESET" --device "$DEVICE" --export "$FOLDER/new.csv" "${words[@]}"
