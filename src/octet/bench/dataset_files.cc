#include "octet/bench/dataset_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "octet/base/file.h"
#include "octet/base/json.h"
#include "octet/base/parse.h"

namespace octet::bench {
namespace {

constexpr std::size_t kMostBytes = std::size_t{4} << 30;
constexpr JsonLimits kLimits{.max_bytes = kMostBytes, .max_values = 200'000'000, .allow_duplicate_keys = true};
constexpr std::int64_t kMostTokens = 100'000'000;  // of a prompt
// What sharegpt leaves out, as vllm bench does: prompts that are too short to mean anything or too long.
constexpr std::int64_t kShortest = 4, kLongestPrompt = 1024, kLongest = 2048;

std::unexpected<Error> wrong(std::size_t line, std::string_view what) {
  return fail(ErrorCode::kInvalid, "line {}: {}", line, what);
}

// Calls take(object, line number) for every line that is not empty.
template <typename Take>
Result<> for_lines(std::string_view content, Take take) {
  std::size_t number = 0;
  if (content.starts_with("\xef\xbb\xbf")) content.remove_prefix(3);  // a mark that some editors put first
  while (!content.empty()) {
    const std::size_t end = content.find('\n');
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto json = parse_json(line, kLimits);
    if (!json) return wrong(number, json.error().message);
    if (!json->is_object()) return wrong(number, "expected a JSON object");
    OCTET_TRY_VOID(take(*json, number));
  }
  return {};
}

Result<double> number_at(const Json& object, const std::string& key, std::size_t line) {
  if (!object.contains(key)) return wrong(line, fmt::format("\"{}\" is missing", key));
  if (!object[key].is_number()) return wrong(line, fmt::format("\"{}\" is no number", key));
  return object[key].get<double>();
}

Result<std::int64_t> length_at(const Json& object, const std::string& key, std::size_t line) {
  OCTET_TRY(const double value, number_at(object, key, line));
  if (!(value >= 0 && value <= static_cast<double>(kMostTokens)) || value != std::floor(value))
    return wrong(line, fmt::format("\"{}\" is {}, expected a whole number from 0 to {}", key, value, kMostTokens));
  return static_cast<std::int64_t>(value);
}

Result<std::string> text_at(const Json& object, const char* key, std::size_t line) {
  if (!object.contains(key)) return wrong(line, fmt::format("\"{}\" is missing", key));
  if (!object[key].is_string()) return wrong(line, fmt::format("\"{}\" is no string", key));
  return object[key].get<std::string>();
}

// Cuts the list to the wanted length, or repeats it from its beginning.
void fit(const WorkloadOptions& options, Workload& workload) {
  auto& list = workload.conversations;
  const auto wanted = static_cast<std::size_t>(options.num_prompts);
  if (list.size() > wanted) list.resize(wanted);
  if (list.size() == wanted || options.no_oversample) return;
  workload.add_note(fmt::format("{} has {} prompts, so that some are sent more than once", workload.name, list.size()));
  const std::size_t own = list.size();
  for (std::size_t i = own; i < wanted; ++i) list.push_back(list[i % own]);
}

Result<Workload> read_custom(const WorkloadOptions& options, PromptText& text, std::string_view content) {
  Workload workload{.name = "custom"};
  OCTET_TRY_VOID(for_lines(content, [&](const Json& object, std::size_t line) -> Result<> {
    OCTET_TRY(std::string prompt, text_at(object, "prompt", line));
    if (options.custom_prompt) {
      OCTET_TRY(prompt, options.custom_prompt(std::move(prompt)));
    }
    std::int64_t output = options.output_len.value_or(options.custom_output_len);
    if (output < 0) {
      OCTET_TRY(output, length_at(object, "output_tokens", line));
    }
    OCTET_TRY(const std::int64_t tokens, text.count(prompt));
    workload.conversations.push_back(one_turn(std::move(prompt), tokens + text.special(), output));
    return {};
  }));
  if (!options.disable_shuffle) std::ranges::shuffle(workload.conversations, text.random());
  return workload;
}

Result<std::string> turn_text(const Json& entry, std::size_t turn, std::size_t number) {
  const auto problem = [&] {
    return fail(ErrorCode::kInvalid, "entry {}: conversations[{}].value is no string", number, turn);
  };
  const Json& one = entry["conversations"][turn];
  if (!one.is_object() || !one.contains("value") || !one["value"].is_string()) return problem();
  return one["value"].get<std::string>();
}

Result<Workload> read_sharegpt(const WorkloadOptions& options, PromptText& text, std::string_view content) {
  const auto json = parse_json(content, kLimits);
  if (!json) return std::unexpected(json.error());
  if (!json->is_array()) return fail(ErrorCode::kInvalid, "expected a JSON list of conversations");
  std::vector<std::size_t> order(json->size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (!options.disable_shuffle) std::ranges::shuffle(order, text.random());
  const std::optional<std::int64_t> asked = options.output_len ? options.output_len : options.sharegpt_output_len;
  Workload workload{.name = "sharegpt"};
  std::optional<std::size_t> none_in;  // an entry that is no conversation, which vllm bench leaves out
  for (const std::size_t i : order) {
    if (static_cast<std::int64_t>(workload.conversations.size()) >= options.num_prompts) break;
    const Json& entry = (*json)[i];
    if (!entry.is_object() || !entry.contains("conversations") || !entry["conversations"].is_array()) {
      none_in = std::min(none_in.value_or(i), i);
      continue;
    }
    if (entry["conversations"].size() < 2) continue;
    OCTET_TRY(std::string prompt, turn_text(entry, 0, i));
    OCTET_TRY(const std::string answer, turn_text(entry, 1, i));
    OCTET_TRY(const std::int64_t own, text.count(prompt));
    const std::int64_t input = own + text.special();
    OCTET_TRY(const std::int64_t length, text.count(answer));
    const std::int64_t output = asked.value_or(length);
    if (input < kShortest || (!asked && output < kShortest) || input > kLongestPrompt || input + output > kLongest)
      continue;
    workload.conversations.push_back(one_turn(std::move(prompt), input, output));
  }
  if (workload.conversations.empty() && none_in)
    return fail(ErrorCode::kInvalid, "entry {}: \"conversations\" is missing or no list", *none_in);
  return workload;
}

// A number, or one that is written as a string, as in some traces.
Result<double> time_at(const Json& object, const std::string& key, std::size_t line) {
  if (!object.contains(key) || !object[key].is_string()) return number_at(object, key, line);
  const auto& text = object[key].get_ref<const std::string&>();
  const auto value = parse_number<double>(text);
  if (!value || !std::isfinite(*value)) return wrong(line, fmt::format("\"{}\" is no number", key));
  return *value;
}

// Makes prompts of a trace. Equal hashes stand for equal blocks of text, so that a prefix cache sees what the trace
// saw.
class TraceText {
 public:
  TraceText(const WorkloadOptions& options, PromptText& text) : options_(options), text_(text) {}

  // tokens: with those that the tokenizer adds.
  Result<std::string> prompt(const Json& object, std::int64_t tokens, std::size_t line) {
    std::string prompt;
    std::int64_t left = std::max<std::int64_t>(tokens - text_.special(), 0);
    if (object.contains(options_.trace_hashes)) {
      const Json& hashes = object[options_.trace_hashes];
      if (!hashes.is_array()) return wrong(line, fmt::format("\"{}\" is no list", options_.trace_hashes));
      for (const Json& hash : hashes) {
        if (!hash.is_number_integer())
          return wrong(line, fmt::format("\"{}\" holds something that is no integer", options_.trace_hashes));
        if (left == 0) continue;
        const std::int64_t count = std::min(left, options_.trace_chunk);
        OCTET_TRY(const std::string block, text_.draw_of(hash.get<std::uint64_t>(), count));
        prompt += block;
        left -= count;
      }
      const std::int64_t needed = (tokens + options_.trace_chunk - 1) / options_.trace_chunk;
      if (needed != static_cast<std::int64_t>(hashes.size())) ++unlike_;
      ++with_hashes_;
    }
    OCTET_TRY(const std::string rest, text_.draw(left));
    return text_.begin(prompt + rest);
  }

  std::string note() const {
    if (unlike_ == 0) return "";
    return fmt::format(
        "in {} of {} lines \"{}\" stands for another number of tokens than \"{}\" says, with "
        "--timed-trace-chunk-hash-size {}: what prompts share is not what the trace shared",
        unlike_, with_hashes_, options_.trace_hashes, options_.trace_input, options_.trace_chunk);
  }

 private:
  const WorkloadOptions& options_;
  PromptText& text_;
  std::int64_t with_hashes_ = 0, unlike_ = 0;
};

Result<Workload> read_trace(const WorkloadOptions& options, PromptText& text, std::string_view content) {
  if (options.trace_chunk < 1)
    return fail(ErrorCode::kInvalid, "--timed-trace-chunk-hash-size {}: expected at least 1", options.trace_chunk);
  const bool timed = options.self_timed.value_or(true);
  Workload workload{.name = "timed_trace"};
  TraceText trace(options, text);
  std::vector<double> times;
  OCTET_TRY_VOID(for_lines(content, [&](const Json& object, std::size_t line) -> Result<> {
    if (static_cast<std::int64_t>(times.size()) >= options.num_prompts) return {};
    OCTET_TRY(const double time, time_at(object, options.trace_timestamp, line));
    OCTET_TRY(const std::int64_t input, length_at(object, options.trace_input, line));
    OCTET_TRY(const std::int64_t output, length_at(object, options.trace_output, line));
    if (timed && !times.empty() && time < times.back())
      return wrong(line, fmt::format("\"{}\" goes back from {} to {}", options.trace_timestamp, times.back(), time));
    OCTET_TRY(std::string prompt, trace.prompt(object, input, line));
    times.push_back(time);
    Conversation one =
        one_turn(std::move(prompt), std::max(input, text.special()), options.output_len.value_or(output));
    const double seconds = (time - times.front()) * options.trace_seconds;
    if (timed && !(seconds < 1e9))
      return wrong(line, fmt::format("\"{}\" is {} s after the first", options.trace_timestamp, seconds));
    if (timed) one.planned_ns = std::llround(seconds * 1e9);
    workload.conversations.push_back(std::move(one));
    return {};
  }));
  workload.add_note(trace.note());
  return workload;
}

}  // namespace

Result<Workload> parse_workload(const WorkloadOptions& options, PromptText& text, std::string_view content) {
  const bool timed = options.dataset == "timed_trace";
  Result<Workload> workload = timed                           ? read_trace(options, text, content)
                              : options.dataset == "sharegpt" ? read_sharegpt(options, text, content)
                                                              : read_custom(options, text, content);
  if (!workload) return workload;
  if (workload->conversations.empty()) return fail(ErrorCode::kInvalid, "no prompt in it can be used");
  if (!timed) fit(options, *workload);
  return workload;
}

Result<Workload> read_workload(const WorkloadOptions& options, PromptText& text) {
  if (!options.path)
    return fail(ErrorCode::kInvalid, "--dataset-path is missing: --dataset-name {} reads a file", options.dataset);
  const auto content = read_file(*options.path, kMostBytes);
  if (!content) return within("--dataset-path", content.error());
  auto workload = parse_workload(options, text, *content);
  if (!workload) return within(fmt::format("--dataset-path {}", *options.path), workload.error());
  return workload;
}

}  // namespace octet::bench
