#!/usr/bin/env bash
# Names our C++ files that clang-format would change, or with --fix changes them.
set -euo pipefail
cd "$(dirname "$0")/.."

sources() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cc'
  else
    find apps src tests fuzz benchmarks \( -name '*.h' -o -name '*.cc' \) -print0
  fi | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done
}

if [ "${1:-}" = --fix ]; then
  sources | xargs -0 -r -n 16 -P "$(nproc)" clang-format-19 -i
  exit
fi
mkdir -p .cache
if ! sources | xargs -0 -r -n 16 -P "$(nproc)" clang-format-19 --dry-run -Werror 2>.cache/format.log; then
  sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: error: .*/\1: not formatted/p' .cache/format.log | sort -u >&2
  echo "format: run make format (details: .cache/format.log)" >&2
  exit 1
fi
