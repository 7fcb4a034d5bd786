#!/usr/bin/env bash
# scripts/packages/check.sh FOLDER: installs the packages of FOLDER/packages in this bare system, as root, and uses them
# as a user. FOLDER/consumer is tests/consumer. Used by scripts/packages/test.sh. Everything that it installs stays.
set -Eeuo pipefail
trap 'echo "check.sh: line $LINENO failed: $BASH_COMMAND"' ERR
packages=$1/packages
consumer=$1/consumer

install() { apt-get -qy install "$@"; }
user() { runuser -l user -c "LANG=C.UTF-8; $1"; }
# refused CODE TEXT COMMAND: a user's command says TEXT on one line, with this exit code.
refused() {
  local said code=0
  said=$(user "$3" 2>&1 >/dev/null) || code=$?
  echo "$said"
  [[ $code == "$1" && $said == *"$2"* && $said != *$'\n'* ]]
}
expect() { grep -F -e "$1" "$2"; }  # TEXT FILE

echo "== bare: $(sed -n 's/^PRETTY_NAME=//p' /etc/os-release), $(dpkg-query -W | wc -l) packages"
useradd -m user
if command -v g++ || command -v python3 || command -v man; then exit 1; fi

echo "== apt installs greta without what it recommends: no device, one line"
install --no-install-recommends "$packages"/greta_*.deb "$packages"/libgreta1_*.deb
refused 3 "no Vulkan driver is installed" "greta-tune gemm --m 64 --n 64 --k 64 --budget 2"
apt-get -qy purge greta libgreta1
apt-get -qy autoremove --purge

echo "== apt installs greta"
install "$packages"/greta_*.deb "$packages"/libgreta1_*.deb
for program in greta-tune greta-db greta-bench greta-run; do user "$program --version"; done
user "greta-tune devices"

echo "== the first command"
user "greta-tune gemm --m 1024 --n 1024 --k 1024 --budget 20s" | tee /tmp/report
expect "  winner " /tmp/report
expect ".local/share/greta/tuned.db" /tmp/report
user "greta-tune show" | tee /tmp/show
expect "m=1024 n=1024 k=1024" /tmp/show

echo "== greta-db and greta-bench"
user "greta-db info" | tee /tmp/info
expect /usr/share/greta/tuned/lavapipe/lavapipe.db /tmp/info
user "greta-bench --preset smoke --device vulkan:0" | tee /tmp/bench
expect gemm /tmp/bench

echo "== a kernel of the user's without a C++ compiler: one line"
user "greta-tune kernel --new my_kernel"
kernel="greta-tune kernel my_kernel.jsonc --n 100000 --device hip-host:0 --budget 3"
refused 2 "no C++ compiler" "$kernel"

echo "== Python"
install --no-install-recommends "$packages"/python3-greta_*.deb
cat >/tmp/product.py <<'END'
import array
import greta

m, n, k = 5, 7, 3
x = array.array("f", [0.5 * i - 3 for i in range(m * k)])
y = array.array("f", [1.5 - 0.25 * i for i in range(k * n)])
with greta.Runtime(device="vulkan:0") as runtime:
    a = runtime.tensor(memoryview(x).cast("B").cast("f", (m, k)))
    b = runtime.tensor(memoryview(y).cast("B").cast("f", (k, n)))
    c = runtime.empty((m, n), "f32")
    runtime.gemm(a, b, c)
    found = memoryview(c.download()).cast("f")
for i in range(m):
    for j in range(n):
        expected = sum(x[i * k + p] * y[p * n + j] for p in range(k))
        assert abs(found[i * n + j] - expected) < 1e-4, (i, j, found[i * n + j], expected)
result = greta.tune("gemm", m=64, n=48, k=40, budget=2, device="vulkan:0")
print("greta", greta.version(), "in", greta.__file__, "tuned", result.winner)
END
user "python3 /tmp/product.py" | tee /tmp/product
expect /usr/lib/python3/dist-packages/greta/__init__.py /tmp/product

echo "== manual pages"
install man-db
for program in greta-tune greta-db greta-bench greta-run; do
  user "man -w $program"
  user "MANWIDTH=100 man --warnings -E UTF-8 $program" >/tmp/page 2>/tmp/warnings
  expect "$program" /tmp/page | head -n 2
  cat /tmp/warnings
  [[ ! -s /tmp/warnings ]]
done

echo "== completions of bash, zsh and fish"
install bash-completion zsh fish
cat >/tmp/complete.bash <<'END'
source /usr/share/bash-completion/bash_completion
_completion_loader greta-tune
complete -p greta-tune
COMP_WORDS=(greta-tune gemm --bud) COMP_CWORD=2
_greta_tune
echo "${COMPREPLY[@]}"
END
user "bash /tmp/complete.bash" | tee /tmp/completed
expect --budget /tmp/completed
user "zsh -c 'autoload -Uz compinit; compinit -u; print \$_comps[greta-tune]; autoload +X _greta-tune'" |
  tee /tmp/completed
expect _greta-tune /tmp/completed
user "fish -c 'complete -C \"greta-tune gemm --bud\"'" | tee /tmp/completed
expect --budget /tmp/completed

echo "== programs in C and C++ against libgreta-dev"
install "$packages"/libgreta-dev_*.deb gcc g++ make cmake
user "gcc -Wall -o main $consumer/main.c -lgreta -lm && ./main vulkan:0"
user "cmake -S $consumer -B build -DCMAKE_BUILD_TYPE=Debug && cmake --build build"
user "mkdir work && build/consumer work/consumer.db && build/consumer_tuner work && build/consumer_c vulkan:0"

echo "== a kernel of the user's with g++"
user "$kernel" | tee /tmp/report
expect "  winner " /tmp/report

echo "== apt removes everything"
apt-get -qy purge greta libgreta1 libgreta-dev python3-greta
find / -xdev \( -path /proc -o -path /home -o -path "$1" -o -path /root \) -prune -o -iname '*greta*' -print |
  tee /tmp/left
[[ ! -s /tmp/left ]]
if dpkg-query -W '*greta*'; then exit 1; fi
if ldconfig -p | grep greta; then exit 1; fi
echo "== passed"
