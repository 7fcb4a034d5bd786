#!/usr/bin/env bash
# scripts/test.sh [--all]: installs dependencies, builds with warnings as errors, and runs the test
# suite; with --all also its slower part, and a build of each source separately. CTest's summary is
# printed last.
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
