#!/usr/bin/env bash
# scripts/setup.sh [test]: installs the packages that GRETA needs to build and run, with `test` also
# those of its test suite. Supports Debian 12 and Ubuntu 24.04. Only installs missing packages.
set -euo pipefail

# glslang-tools: Ubuntu's CMake package of glslang requires its programs.
packages=(
  g++ cmake ninja-build python3 git
  libvulkan-dev libvulkan-volk-dev mesa-vulkan-drivers glslang-dev glslang-tools spirv-tools
  libsqlite3-dev libsqlitecpp-dev nlohmann-json3-dev libcli11-dev libfmt-dev libeigen3-dev libpcre2-dev libutf8proc-dev
  zlib1g-dev libgtest-dev libbenchmark-dev libcpp-httplib-dev pkg-config
)
# Kernels for AMD GPUs are compiled with hiprtc and with the distribution's newest clang.
llvm=22
browser=(chromium) # tests the page of greta-report; Ubuntu has it as a snap only
grep -qs '^VERSION_CODENAME=noble' /etc/os-release && llvm=20 browser=()
test_packages=(
  vulkan-validationlayers clang-format-14 shellcheck python3-numpy dpkg-dev file openssh-client openssh-server
  libamdhip64-dev "clang-$llvm" "clang-tools-$llvm" "lld-$llvm" "llvm-$llvm"
  "${browser[@]}"
)

fail() {
  echo "scripts/setup.sh: $*" >&2
  exit 1
}

case "${1:-}" in
  "") ;;
  test) packages+=("${test_packages[@]}") ;;
  *) fail "unknown argument '$1'; allowed: test" ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  fail "no apt here; install these (Debian's names) by hand, then use cmake --workflow:" \
    "${packages[*]}"
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null ||
    fail "not root and no sudo; have these packages installed: ${missing[*]}"
  root=(sudo)
  if [[ ! -t 0 ]]; then
    root=(sudo -n)
    sudo -n true 2>/dev/null ||
      fail "sudo wants a password and there is no terminal; have these installed: ${missing[*]}"
  fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" \
    >"$log" 2>&1 </dev/null || {
    cat "$log" >&2
    fail "apt-get $1 failed; wanted: ${missing[*]}"
  }
}

echo "Installing with apt: ${missing[*]}"
apt update
apt install -y --no-install-recommends "${missing[@]}"
