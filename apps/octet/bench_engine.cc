#include "apps/octet/bench_engine.h"

#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <utility>

#include "apps/octet/line_io.h"
#include "apps/octet/loading_line.h"
#include "apps/octet/pull_signals.h"
#include "apps/octet/vllm_flags.h"
#include "octet/base/log.h"
#include "octet/bench/whole_file.h"

using octet::ErrorCode;
using octet::Flag;
using octet::Result;

namespace {

std::vector<Flag> output_rows(BenchEngineFlags& f) {
  constexpr std::string_view group = "output";
  return {
      {.names = "--output-json",
       .group = group,
       .target = &f.output_json,
       .help = "write the figures to this file, with the keys of vllm bench",
       .fallback = "none"},
      {.names = "--log-level",
       .group = group,
       .target = &f.log_level,
       .help = "least level that is logged",
       .choices = "debug,info,warning,error,off"},
      {.names = "--config",
       .group = group,
       .target = &f.config,
       .help = "YAML file of flags, as in \"max-num-seqs: 16\"; the command line overrides it"},
  };
}

}  // namespace

octet::FlagTable bench_engine_table(std::string command, std::string summary, std::span<const Flag> own,
                                    BenchEngineFlags& flags, std::span<const Flag> others) {
  octet::FlagTable table(std::move(command), std::move(summary), model_source_rows(flags));
  table.add(own);
  table.add(output_rows(flags));
  table.add(model_type_rows(flags));
  table.add(step_and_file_rows(flags));
  table.add(others);
  table.add_missing(octet::vllm_flags::kAll);
  return table;
}

int bench_failure(std::string_view command, const octet::Error& error, int status) {
  fmt::print(stderr, "{}: {}\n", command, error.message);
  return error.code == ErrorCode::kCancelled && octet::hub::stop_signal != 0 ? 128 + octet::hub::stop_signal : status;
}

std::expected<std::unique_ptr<octet::engine::Replica>, int> load_bench_engine(std::string_view command,
                                                                              BenchEngineFlags& flags,
                                                                              std::int64_t sequences) {
  if (const auto level = octet::set_log_level(flags.log_level); !level)
    return std::unexpected(bench_failure(command, level.error(), 2));
  if (const auto resolved = resolve_names(flags); !resolved)
    return std::unexpected(bench_failure(command, resolved.error()));
  auto options = replica_options(flags);
  if (!options) return std::unexpected(bench_failure(command, options.error(), 2));
  if (sequences > std::numeric_limits<std::int32_t>::max()) {
    const octet::Error error{ErrorCode::kInvalid, fmt::format("{} sequences are more than an engine takes", sequences)};
    return std::unexpected(bench_failure(command, error, 2));
  }
  options->max_admitted = static_cast<std::int32_t>(sequences);
  options->progress = LoadingLine();
  auto replica = octet::engine::load_replica(*options);
  if (!replica) return std::unexpected(bench_failure(command, replica.error()));
  return *std::move(replica);
}

Result<> write_figures(const BenchEngineFlags& flags, std::string_view text, const octet::Json& json) {
  OCTET_TRY_VOID(print_output(text));
  if (!flags.output_json) return {};
  auto written = octet::bench::write_whole(*flags.output_json, json.dump(4) + "\n");
  if (!written) return within("--output-json", std::move(written).error());
  return {};
}
