#!/usr/bin/env bash
# Stages B and C of CI. B: the tests under ASan and UBSan, then every fuzz target over its seed corpus. C: the threaded rooms under TSan.
#   tools/sanitize.sh [asan] [fuzz] [tsan]      all three where none is named
# OCTET_FUZZ_RUNS: executions of each fuzz target, 100000 where unset. OCTET_TEST_TIME_SCALE: time-outs of tests grow by this, 10 where unset.
# OCTET_TSAN_ROOMS: folders of tests/ for stage C, or all.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/stage.sh
runs=${OCTET_FUZZ_RUNS:-100000}
export OCTET_TEST_TIME_SCALE=${OCTET_TEST_TIME_SCALE:-10}
symbolizer=$(command -v llvm-symbolizer-19)
export ASAN_SYMBOLIZER_PATH=$symbolizer TSAN_OPTIONS="external_symbolizer_path=$symbolizer halt_on_error=1 second_deadlock_stack=1"
export ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1" UBSAN_OPTIONS="print_stacktrace=1"

asan_tests() {
  tools/build.sh asan
  tools/ctest.sh build-asan
}

# One target; prints a single line, or all of its output where it found something. Its new inputs go to a scratch folder.
fuzz_one() {
  local program=$1 name log
  name=$(basename "$program" _fuzz)
  log=build-asan/fuzz/$name.log
  local seeds=fuzz/corpus/$name
  [ -n "$(ls -A "$seeds" 2>/dev/null)" ] || { echo "fuzz $name: no seed corpus in $seeds" >&2; return 1; }
  mkdir -p "build-asan/fuzz/found/$name"
  local dictionary=(); [ ! -e "fuzz/$name.dict" ] || dictionary=("-dict=fuzz/$name.dict")
  "$program" -runs="$runs" -seed=1 -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=0 "${dictionary[@]}" \
    -artifact_prefix="build-asan/fuzz/$name-" "build-asan/fuzz/found/$name" "$seeds" >"$log" 2>&1 || {
    cat "$log" >&2
    echo "fuzz $name: failed; the input is build-asan/fuzz/$name-*" >&2
    return 1
  }
  local done_runs
  done_runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  [ "${done_runs:-0}" -ge "$runs" ] || { echo "fuzz $name: stopped after ${done_runs:-0} of $runs executions" >&2; return 1; }
  echo "fuzz $name: $done_runs executions, none failed"
}

fuzz() {
  tools/build.sh asan
  local programs=(fuzz/*_fuzz.cc)
  [ -e "${programs[0]}" ] || { echo "fuzz: no fuzz/*_fuzz.cc" >&2; return 1; }
  export -f fuzz_one
  export runs
  printf '%s\n' "${programs[@]}" | sed 's|^|build-asan/|; s|\.cc$||' |
    xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'set -euo pipefail; fuzz_one {}'
}

tsan_tests() {
  local rooms=() room
  for room in ${OCTET_TSAN_ROOMS:-base comm engine server}; do
    [ "$room" = all ] || compgen -G "tests/$room/*_test.cc" >/dev/null || continue
    rooms+=("$room")
  done
  if [ "${rooms[*]}" = all ]; then
    tools/build.sh tsan
    tools/ctest.sh build-tsan
  else
    tools/build.sh tsan octet $(printf "octet_%s_test " "${rooms[@]}")
    tools/ctest.sh build-tsan -R "^($(IFS='|'; echo "${rooms[*]}"))\$"
  fi
}

[ $# -gt 0 ] || set -- asan fuzz tsan
for part in "$@"; do
  case $part in
    asan) stage "B: tests under ASan and UBSan" asan_tests ;;
    fuzz) stage "B: fuzz targets" fuzz ;;
    tsan) stage "C: tests under TSan" tsan_tests ;;
    *) echo "sanitize: no part '$part': asan, fuzz or tsan" >&2; exit 2 ;;
  esac
done
