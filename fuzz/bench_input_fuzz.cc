// What octet bench reads from others: answers of servers in any pieces, datasets, result files and reports.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "octet/base/check.h"
#include "octet/bench/answer_reader.h"
#include "octet/bench/dataset_files.h"
#include "octet/bench/figure_files.h"
#include "octet/bench/summary.h"

namespace {

using namespace octet::bench;

// In pieces of one length, and all at once: the same tokens.
RequestRecord read_answer(Api api, bool streamed, std::string_view text, std::size_t piece) {
  AnswerReader reader(api, streamed);
  reader.status(200);
  for (std::size_t at = 0; at < text.size(); at += piece) reader.bytes(5, text.substr(at, piece));
  RequestRecord record;
  reader.finish(6, record);
  std::int64_t sum = 0;
  for (const Arrival& arrival : record.arrivals) {
    OCTET_CHECK(arrival.tokens >= 0);
    sum += arrival.tokens;
  }
  OCTET_CHECK(record.arrivals.empty() || sum == record.output_tokens);
  OCTET_CHECK(record.outcome == Outcome::kCompleted || !record.error.empty());
  request_times(record);
  return record;
}

void read_dataset(std::string_view name, std::string_view text) {
  const WorkloadOptions options{.dataset = std::string(name), .num_prompts = 4, .custom_output_len = -1};
  PromptText prompts(nullptr, 1);
  const auto workload = parse_workload(options, prompts, text);
  if (!workload) {
    OCTET_CHECK(!workload.error().message.empty());
    return;
  }
  OCTET_CHECK(workload->requests() >= 1 && workload->requests() <= options.num_prompts);
  std::int64_t last = 0;
  for (const Conversation& one : workload->conversations) {
    OCTET_CHECK(one.turns.size() == 1 && one.turns[0].output_tokens >= 1 && one.turns[0].input_tokens >= 0);
    OCTET_CHECK(one.planned_ns.has_value() == (name == "timed_trace"));
    OCTET_CHECK(one.planned_ns.value_or(0) >= last);
    last = one.planned_ns.value_or(0);
  }
}

bool has_large_number(std::string_view text) {
  int digits = 0;
  for (const char c : text) {
    digits = (c >= '0' && c <= '9') || c == 'e' || c == 'E' || c == '.' ? digits + 1 : 0;
    if (digits > 4) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'a':
    case 'c':
    case 'w': {
      const Api api = data[0] == 'c' ? Api::kChat : Api::kCompletions;
      const RequestRecord whole = read_answer(api, data[0] != 'w', text, text.size() + 1);
      const RequestRecord pieces = read_answer(api, data[0] != 'w', text, 3);
      OCTET_CHECK(whole.output_tokens == pieces.output_tokens && whole.error == pieces.error);
      break;
    }
    case 's':
      read_dataset("sharegpt", text);
      break;
    case 'u':
      read_dataset("custom", text);
      break;
    case 't':
      if (!has_large_number(text)) read_dataset("timed_trace", text);  // long prompts only cost time
      break;
    default: {
      const auto figures = parse_figures(text);
      OCTET_CHECK(figures || !figures.error().message.empty());
    }
  }
  return 0;
}
