#!/usr/bin/env bash
# scripts/test.sh [--all]: sets up, builds with warnings as errors, and runs the test suite; with --all its slower
# part, too, and a build of each source by itself. CTest's summary comes last.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-}" in
  "") tests=dev ;;
  --all) tests=all ;;
  *)
    echo "scripts/test.sh: unknown argument '$1'; allowed: --all" >&2
    exit 2
    ;;
esac

scripts/setup.sh test
cmake --preset dev
cmake --build --preset dev
if [[ $tests == all ]]; then
  cmake --preset single
  cmake --build --preset single
fi
exec ctest --preset "$tests"
