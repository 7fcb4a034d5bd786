#!/usr/bin/env bash
# scripts/test.sh [--part K | --all]: installs dependencies, builds with warnings as errors, and runs the
# quick tests and part K of those that take long: one of 62, 0 to 9, a to z and A to Z, by default
# the one whose turn it is at this commit. With --all, all parts and the slow tests, and a build of each source separately.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

parts=0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ

# As many commits in a row have different parts. A shallow clone does not know the number of its commits, and an
# unpacked archive has none.
part_of_commit() {
  local number
  if ! git rev-parse --verify --quiet HEAD >/dev/null 2>&1; then
    echo "scripts/test.sh: no commit is known here: part 0; --part K chooses another one" >&2
    number=0
  elif [[ $(git rev-parse --is-shallow-repository) == true ]]; then
    number=0x$(git rev-parse HEAD | cut -c 1-4)
  else
    number=$(git rev-list --count --first-parent HEAD)
  fi
  echo "${parts:number%${#parts}:1}"
}

case "$#:${1:-}:${2:-}" in
  0::) part=$(part_of_commit) ;;
  2:--part:[0-9a-zA-Z]) part=$2 ;;
  1:--all:) part="" ;;
  *)
    echo "scripts/test.sh: unknown argument '$*'; allowed: --part K (0 to 9, a to z, A to Z), --all" >&2
    exit 2
    ;;
esac

scripts/setup.sh test
cmake --preset dev
# Large pages, where the system lets programs ask for them: compilers spend a tenth of their time on small ones.
GLIBC_TUNABLES=glibc.malloc.hugetlb=1 cmake --build --preset dev
if [[ -z $part ]]; then
  cmake --preset single
  cmake --build --preset single
  exec ctest --preset all
fi

count() { grep -o "$1" <<<"$left_out" | wc -l; }
echo "Tests: the quick ones and part $part of the others"
failed=0
GRETA_PART=$part ctest --preset part || failed=$?
left_out=$(ctest --preset all --show-only=json-v1 -L "^(part[^$part]|slow)$")
echo "Not run: $(count '"part.[^"]*"') tests of the other parts (--part K, --all) and $(count '"slow"') slow ones (--all)"
exit $failed
