#!/usr/bin/env bash
# What is too long for each change: the soak, the second compiler, the kernels for arm64, TSan over everything, long fuzzing, the benchmarks.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/stage.sh

gcc_tests() {
  tools/build.sh gcc
  tools/ctest.sh build-gcc
}

# In an emulator of a machine that has what every arm64 machine has, and nothing more.
arm64_tests() {
  tools/build.sh arm64
  OCTET_TEST_TIME_SCALE=${OCTET_TEST_TIME_SCALE:-10} tools/ctest.sh build-arm64
}

# Nothing may be left behind: of the whole program over twenty times the requests that `make bench` asks, and of a server
# whose engine fails, whose queue is short and whose pool is small, over 100,000.
soak() {
  tools/build.sh release
  build/benchmarks/memory_bench "$(build/octet pull smollm2 | tail -n 1)" 200000
  OCTET_SOAK_REQUESTS=100000 build/octet_server_test --gtest_filter='Soak.*'
}

stage "soak" soak
stage "tests of the GCC build" gcc_tests
stage "tests of the kernels for arm64" arm64_tests
stage "all tests under TSan" env OCTET_TSAN_ROOMS=all tools/sanitize.sh tsan
stage "fuzz targets" env OCTET_FUZZ_RUNS="${OCTET_FUZZ_RUNS:-5000000}" tools/sanitize.sh fuzz
stage "benchmarks" make --no-print-directory bench
