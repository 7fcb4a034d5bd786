#!/usr/bin/env bash
# Builds GRETA's Debian packages from this checkout in a bare Debian 12 and in a bare Ubuntu 24.04, checks them with
# lintian, installs them with apt into a second bare system of each, and uses there what they contain.
#
#   scripts/packages/test.sh [options]
#
#   --systems LIST           default: bookworm,noble
#   --steps LIST             default: bare,build,lint,install. Later steps use what DIR has of earlier ones
#   --work DIR               for the systems, the packages and the logs, about 5 GiB each; default: a temporary
#                            folder, which is deleted at the end
#   --debian-mirror URL      default: http://deb.debian.org/debian
#   --debian-security URL    default: http://security.debian.org/debian-security
#   --ubuntu-mirror URL      default: http://archive.ubuntu.com/ubuntu
#   --ubuntu-security URL    default: http://security.ubuntu.com/ubuntu
#   --debian-keyring FILE    default: that of the package debian-archive-keyring
#   --ubuntu-keyring FILE    default: that of the package ubuntu-keyring. Debian 12 lacks it; Ubuntu's archive has it
#                            in pool/main/u/ubuntu-keyring
#   --ccache DIR             a cache for the compiler, used and filled by both systems
#
# It runs as root, with debootstrap and the network. Each system takes about 20 minutes on two cores. The exit code is 1
# if a step failed; the last lines of its log are printed.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
  echo "scripts/packages/test.sh: $*" >&2
  exit 2
}

systems=bookworm,noble steps=bare,build,lint,install work="" ccache=""
declare -A mirror=([bookworm]=http://deb.debian.org/debian [noble]=http://archive.ubuntu.com/ubuntu)
declare -A security=([bookworm]=http://security.debian.org/debian-security [noble]=http://security.ubuntu.com/ubuntu)
declare -A components=([bookworm]=main [noble]="main universe")
declare -A keyring=([bookworm]=/usr/share/keyrings/debian-archive-keyring.gpg
  [noble]=/usr/share/keyrings/ubuntu-archive-keyring.gpg)
# debootstrap's script. That of all Ubuntus since 7.10 is given by name, since Debian 12 knows no noble.
declare -A script=([bookworm]=sid [noble]=gutsy)
while (($#)); do
  (($# > 1)) || usage "$1 needs a value"
  case $1 in
    --systems) systems=$2 ;;
    --steps) steps=$2 ;;
    --work) work=$2 ;;
    --debian-mirror) mirror[bookworm]=$2 ;;
    --debian-security) security[bookworm]=$2 ;;
    --ubuntu-mirror) mirror[noble]=$2 ;;
    --ubuntu-security) security[noble]=$2 ;;
    --debian-keyring) keyring[bookworm]=$2 ;;
    --ubuntu-keyring) keyring[noble]=$2 ;;
    --ccache) ccache=$2 ;;
    *) usage "unknown option $1" ;;
  esac
  shift 2
done
for system in ${systems//,/ }; do
  [[ $system == bookworm || $system == noble ]] ||
    usage "--systems: '$system' is unknown; allowed: bookworm, noble"
done
for step in ${steps//,/ }; do
  [[ $step =~ ^(bare|build|lint|install)$ ]] ||
    usage "--steps: '$step' is unknown; allowed: bare, build, lint, install"
done
((EUID == 0)) || usage "must run as root"
command -v debootstrap >/dev/null || usage "debootstrap: not found; apt-get install debootstrap"

temporary=""
if [[ -z $work ]]; then
  work=$(mktemp -d)
  temporary=$work
fi
mkdir -p "$work" && work=$(cd "$work" && pwd)
[[ -z $ccache ]] || { mkdir -p "$ccache" && ccache=$(cd "$ccache" && pwd); }

mounted=()
unmount() {
  local i
  for ((i = ${#mounted[@]} - 1; i >= 0; --i)); do umount "${mounted[i]}" || return; done
  mounted=()
}
cleanup() {
  unmount && [[ -n $temporary ]] && rm -rf --one-file-system "$temporary"
}
trap cleanup EXIT

# inside ROOT COMMAND…: runs a command in a system, with /proc and the network's names.
inside() {
  local root=$1
  shift
  mount -t proc proc "$root/proc" && mounted+=("$root/proc")
  if [[ -n $ccache && -d $root/ccache ]]; then
    mount --bind "$ccache" "$root/ccache" && mounted+=("$root/ccache")
  fi
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  local code=0
  chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive DEBFULLNAME="$maintainer" DEBEMAIL="$address" "$@" </dev/null ||
    code=$?
  unmount
  return $code
}
maintainer=${DEBFULLNAME:-GRETA}
address=${DEBEMAIL:-greta@example.org}

make_bare() {
  local root=$work/$system/bare suite
  rm -rf --one-file-system "$root"
  debootstrap --variant=minbase --keyring="${keyring[$system]}" "$system" "$root" "${mirror[$system]}" \
    "/usr/share/debootstrap/scripts/${script[$system]}"
  for suite in "${mirror[$system]} $system" "${mirror[$system]} $system-updates" \
    "${security[$system]} $system-security"; do
    echo "deb $suite ${components[$system]}"
  done >"$root/etc/apt/sources.list"
  echo 'Dpkg::Use-Pty "0";' >"$root/etc/apt/apt.conf.d/no-pty"  # there is no /dev/pts
  inside "$root" apt-get -q update
  inside "$root" apt-get -qy dist-upgrade
}

copy_of_bare() {  # NAME
  rm -rf --one-file-system "${work:?}/$system/$1"
  cp -a "$work/$system/bare" "$work/$system/$1"
}

make_build() {
  copy_of_bare build
  local root=$work/$system/build
  mkdir "$root/greta"
  git -C "$source" ls-files -z --cached --others --exclude-standard |
    tar -C "$source" --create --no-recursion --null --files-from=- | tar -C "$root/greta" --extract --no-same-owner
  [[ -z $ccache ]] || mkdir "$root/ccache"
  inside "$root" /greta/scripts/packages/build.sh
  rm -rf "$work/$system/packages"
  mkdir "$work/$system/packages"
  cp "$root"/greta/build/release/*.deb "$work/$system/packages/"
}

make_lint() {
  local root=$work/$system/build
  inside "$root" apt-get -qqy install --no-install-recommends lintian
  inside "$root" lintian --version
  inside "$root" sh -c 'lintian --allow-root --fail-on error /greta/build/release/*.deb'
}

make_install() {
  copy_of_bare installed
  local root=$work/$system/installed
  mkdir -p "$root/test"
  cp -r "$work/$system/packages" "$source/tests/consumer" "$source/scripts/packages/check.sh" "$root/test/"
  inside "$root" /test/check.sh /test
}

for system in ${systems//,/ }; do
  mkdir -p "$work/$system"
  for step in ${steps//,/ }; do
    echo "$system: $step"
    log=$work/$system/$step.log
    begin=$SECONDS
    # A subshell with set -e of its own, which `if` or `||` would disable.
    set +e
    (set -e; trap unmount EXIT; "make_$step") >"$log" 2>&1
    code=$?
    set -e
    if ((code)); then
      tail -n 40 "$log" >&2
      echo "scripts/packages/test.sh: $system: step $step failed${temporary:+; --work keeps its log}" >&2
      exit 1
    fi
    grep -E '^(== |[EW]: |Lintian )' "$log" | sed 's/^/  /' || true
    echo "  passed in $((SECONDS - begin)) s"
  done
  [[ ! -d $work/$system/packages ]] || (cd "$work/$system/packages" && du -b -- *.deb)
done
