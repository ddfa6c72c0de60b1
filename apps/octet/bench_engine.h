// The engine that `octet bench latency` and `octet bench throughput` measure: one of this process, as `octet serve`
// would load it.
#pragma once
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "apps/octet/engine_flags.h"
#include "octet/base/error.h"
#include "octet/base/flags.h"
#include "octet/base/json.h"
#include "octet/engine/replica.h"

struct BenchEngineFlags : EngineFlags {
  std::string config, log_level = "warning";
  std::optional<std::string> output_json;
};

// A table with the rows of the measurement, those of the model and its engine, and what vLLM has besides, with which
// `others` begin. The targets are fields of flags and those of the rows, which must outlive the table.
octet::FlagTable bench_engine_table(std::string command, std::string summary, std::span<const octet::Flag> own,
                                    BenchEngineFlags& flags, std::span<const octet::Flag> others);

// Loads what the flags name, with room in the queue for so many sequences. An error is told on standard error, with the
// command's name; its value is the exit status.
std::expected<std::unique_ptr<octet::engine::Replica>, int> load_bench_engine(std::string_view command,
                                                                              BenchEngineFlags& flags,
                                                                              std::int64_t sequences);

// Text to standard output, JSON to the file of --output-json.
octet::Result<> write_figures(const BenchEngineFlags& flags, std::string_view text, const octet::Json& json);
// Tells the error, with the command's name; the exit status.
int bench_failure(std::string_view command, const octet::Error& error, int status = 1);
