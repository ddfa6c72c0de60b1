#!/usr/bin/env bash
# Installs what Octet needs on Debian 12 and is not there yet. Silent, and done at once, where nothing is missing.
#   tools/setup.sh            to build and serve: Debian packages, and .venv with pip
#   tools/setup.sh test       also the Python clients and the browser that the tests use, and the headers of arm64
#   tools/setup.sh nightly    also the second compiler and an emulator of arm64
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  clang-19 lld-19 clang-format-19 libclang-rt-19-dev llvm-19 libstdc++-12-dev cmake ninja-build ccache pkg-config
  libboost1.81-dev nlohmann-json3-dev libonig-dev libutf8proc-dev libcli11-dev libspdlog-dev libfmt-dev libxxhash-dev
  libssl-dev libcurl4-openssl-dev libedit-dev libhwy-dev libyaml-cpp-dev libgtest-dev libgmock-dev libbenchmark-dev
  prometheus-cpp-dev libjs-chart.js python3 python3-venv ca-certificates
)
goal=${1:-build}
[ "$goal" = build ] || packages+=(chromium curl libstdc++-12-dev-arm64-cross)
[ "$goal" = nightly ] && packages+=(g++-12 qemu-user-static)

fail() { echo "setup: $1" >&2; exit 1; }

install_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    fail "this is no Debian system: install the counterparts of these packages, then use cmake --preset release: ${packages[*]}"
  local known missing=() as_root=() name
  known=" $(dpkg-query -W -f '${db:Status-Status}=${Package} ' "${packages[@]}" 2>/dev/null || true)"
  for name in "${packages[@]}"; do [[ $known == *" installed=$name "* ]] || missing+=("$name"); done
  [ ${#missing[@]} -eq 0 ] && return
  local command="apt-get install --no-install-recommends ${missing[*]}"
  echo "setup: installing ${#missing[@]} Debian packages: ${missing[*]}" >&2
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "packages are missing and there is no sudo: run as root: $command"
    as_root=(sudo)
  fi
  local log=.cache/setup.log apt=(apt-get -q -y -o DPkg::Lock::Timeout=600)
  if [ ${#as_root[@]} -gt 0 ]; then sudo -v || fail "sudo was refused: run as root: $command"; fi
  # A failing update is no error by itself: the lists and packages may be there already.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${apt[@]}" update >"$log" 2>&1 || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${apt[@]}" install --no-install-recommends "${missing[@]}" >>"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    fail "apt-get failed (all its lines: $log): needs Debian 12 and its package mirror; to try by hand: $command"
  }
}

# The interpreter is Debian's own: another one first in PATH may lack venv.
make_venv() {
  [ -x .venv/bin/python3 ] && [ -x .venv/bin/pip ] && return
  local python=/usr/bin/python3
  [ -x $python ] || python=python3
  rm -rf .venv
  $python -m venv .venv || fail "could not make .venv: install python3-venv"
}

install_python_tools() {
  local stamp=.venv/octet-requirements.sha256
  [ -e $stamp ] && sha256sum --status -c $stamp && return
  echo "setup: installing the Python tools of tools/requirements.txt into .venv" >&2
  .venv/bin/python3 -m pip install -q --disable-pip-version-check -r tools/requirements.txt ||
    fail "pip could not install tools/requirements.txt (its lines are above): it needs the Python package index once"
  sha256sum tools/requirements.txt >$stamp
}

mkdir -p .cache
exec 9>.cache/setup.lock
flock 9
install_packages
make_venv
[ "$goal" = build ] || install_python_tools
