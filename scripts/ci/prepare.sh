#!/usr/bin/env bash
# Step of action.yml: determines where results are and by which name they are stored. Results of
# different presets, devices, runners and branches have different names.
# Reads PRESET, DEVICE, RUNNER, BRANCH, RUNNER_TEMP; writes folder and prefix to GITHUB_OUTPUT.
set -euo pipefail

# Names of caches and artifacts may not contain commas, colons and slashes.
name=$(basename "$PRESET" .json)
prefix=$(printf '%s' "greta-$name-$DEVICE-$RUNNER-$BRANCH" | tr -c 'A-Za-z0-9._-' '_')
folder=$RUNNER_TEMP/$prefix
mkdir -p "$folder"
printf 'prefix=%s\nfolder=%s\n' "$prefix" "$folder" >>"$GITHUB_OUTPUT"
