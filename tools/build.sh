#!/usr/bin/env bash
# Configures a preset where needed and builds targets of it: tools/build.sh PRESET [TARGET...]. Warnings are errors where CI is set.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1; shift
folder=build; [ "$preset" = release ] || folder=build-$preset
werror=OFF; [ -z "${CI:-}" ] || werror=ON
mkdir -p .cache
if [ ! -e "$folder/build.ninja" ] || ! grep -qx "OCTET_WERROR:BOOL=$werror" "$folder/CMakeCache.txt"; then
  cmake --preset "$preset" -DOCTET_WERROR=$werror >.cache/configure-$preset.log 2>&1 || {
    grep -v '^--' .cache/configure-$preset.log >&2
    echo "build: cmake could not configure $folder (all its lines: .cache/configure-$preset.log)" >&2
    exit 1
  }
fi
quiet=--quiet; [ -t 1 ] && quiet=
exec ninja -C "$folder" $quiet -j "${JOBS:-$(nproc)}" "$@"
