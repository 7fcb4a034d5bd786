#!/usr/bin/env bash
# Makes GRETA's Debian packages as docs/packages.md says. Used by scripts/packages/test.sh in a bare system.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

scripts/setup.sh test
if [[ -d /ccache ]]; then
  apt-get -qqy install --no-install-recommends ccache
  export CCACHE_DIR=/ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
cmake --preset release -DGRETA_TESTS=OFF -DGRETA_BENCHMARKS=OFF
nice cmake --build --preset release
cd build/release
cpack -G DEB
