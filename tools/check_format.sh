#!/usr/bin/env bash
# Checks the format of our C++ files, or with --fix mends it.
set -euo pipefail
cd "$(dirname "$0")/.."
action=(--dry-run -Werror)
[ "${1:-}" != --fix ] || action=(-i)
{ git ls-files -z -- '*.h' '*.cc' 2>/dev/null ||
  find apps src tests fuzz benchmarks \( -name '*.h' -o -name '*.cc' \) -print0; } |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  xargs -0 -r -n 16 -P "$(nproc)" clang-format-19 "${action[@]}" || {
  echo "format: run make format" >&2
  exit 1
}
