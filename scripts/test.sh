#!/usr/bin/env bash
# Sets up, builds with warnings as errors, and runs the whole test suite; CTest's summary comes last.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh test
exec cmake --workflow --preset dev
