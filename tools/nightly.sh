#!/usr/bin/env bash
# What is too long for each change: the second compiler, TSan over everything, long fuzzing, the benchmarks.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/stage.sh

gcc_tests() {
  tools/build.sh gcc
  tools/ctest.sh build-gcc
}

stage "tests of the GCC build" gcc_tests
stage "all tests under TSan" env OCTET_TSAN_ROOMS=all tools/sanitize.sh tsan
stage "fuzz targets" env OCTET_FUZZ_RUNS="${OCTET_FUZZ_RUNS:-5000000}" tools/sanitize.sh fuzz
stage "benchmarks" make --no-print-directory bench
