#!/usr/bin/env bash
# Runs the tests of a build folder: tools/ctest.sh FOLDER [ctest's options]. Time-outs grow by
# OCTET_TEST_TIME_SCALE. What the tests compare with is fetched first where it is not there yet.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1; shift
.venv/bin/python3 tools/fetch_test_data.py
exec ctest --test-dir "$folder" --output-on-failure --no-tests=error --timeout $((900 * ${OCTET_TEST_TIME_SCALE:-1})) \
  -j "${JOBS:-$(nproc)}" "$@"
