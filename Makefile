# Octet: every target installs what it needs first (tools/setup.sh), and does nothing twice.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup build serve test sanitize nightly bench format install clean

HOST ?= 127.0.0.1
PORT ?= 8000
PREFIX ?= /usr/local
MODEL ?=
ARGS ?=
BENCH ?=
export MODEL

help:
	@printf '%s\n' \
	  'Octet serves large language models over the OpenAI API.' '' \
	  '  make serve               build, fetch a small default model, serve it on $(HOST):$(PORT)' \
	  '  make serve MODEL=DIR     serve a Hugging Face folder or a GGUF file; PORT=8080, ARGS="--max-model-len 4k"' \
	  '  make test                build and run every test of the Release build; compile the kernels for arm64' '' \
	  '  make build               the program (build/octet), the tests and the benchmarks' \
	  '  make install             the program into PREFIX ($(PREFIX))' \
	  '  make bench               run the benchmarks, the last one a page about the default model (build/benchmarks/report.html);' \
	  '                           BENCH=scheduler, or BENCH=report_page, for those whose name holds it' \
	  '  make sanitize            tests under ASan, UBSan and TSan, fuzz targets' \
	  '  make nightly             GCC, arm64 in an emulator, full TSan, long fuzzing, benchmarks' \
	  '  make format              format the sources' \
	  '  make clean               remove the builds (fetched models stay in ~/.cache/octet)' '' \
	  'The program explains itself: build/octet --help'

setup:
	@tools/setup.sh

build: setup
	@tools/build.sh release

serve: setup
	@tools/build.sh release octet
	@if [ -n "$$MODEL" ]; then name=(); else MODEL=$$(build/octet pull smollm2 | tail -n 1); name=(--served-model-name smollm2); fi; \
	exec build/octet serve "$$MODEL" --host '$(HOST)' --port '$(PORT)' "$${name[@]}" $(ARGS)

test:
	@tools/setup.sh test
	@python3 tools/check_includes.py
	@tools/check_format.sh
	@tools/build.sh release
	@tools/build.sh arm64 octet_ops
	@build/octet pull smollm2 >/dev/null
	@tools/ctest.sh build

sanitize:
	@tools/setup.sh test
	@tools/sanitize.sh

nightly:
	@tools/setup.sh nightly
	@tools/nightly.sh

bench: setup
	@tools/build.sh release
	@shopt -s nullglob; for program in build/benchmarks/*'$(BENCH)'*_bench; do echo "== $$program"; "$$program"; done
	@case report_page in *'$(BENCH)'*) echo "== report_page"; benchmarks/report_page.py build ;; esac

format: setup
	@tools/check_format.sh --fix

install: setup
	@tools/build.sh release octet
	@cmake --install build --prefix '$(PREFIX)' --strip

clean:
	@rm -rf build build-asan build-tsan build-gcc build-arm64
