#include "octet/bench/datasets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "octet/base/json.h"
#include "octet/base/parse.h"
#include "octet/bench/dataset_files.h"
#include "octet/bench/prompt_text.h"

namespace octet::bench {
namespace {

constexpr std::string_view kNames[] = {"random", "sharegpt", "custom", "prefix_repetition", "timed_trace"};
constexpr std::int64_t kMostTokens = 100'000'000;  // of a prompt

struct Range {
  std::int64_t low = 0, high = 0;
  std::int64_t draw(std::mt19937_64& random) const {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  }
};

Result<Range> range_of(std::int64_t length, double ratio) {
  if (!(ratio >= 0 && ratio < 1))  // nor NaN
    return fail(ErrorCode::kInvalid, "--random-range-ratio {}: expected 0 up to but not 1", ratio);
  const auto middle = static_cast<double>(length);
  return Range{.low = std::llround(std::floor(middle * (1 - ratio))),
               .high = std::llround(std::ceil(middle * (1 + ratio)))};
}

// One number for both, or {"input": ..., "output": ...}.
Result<std::pair<double, double>> ratios_of(const std::string& text) {
  if (const auto one = parse_number<double>(text)) return std::pair(*one, *one);
  const auto json = parse_json(text);
  const auto number = [&](const char* key) {
    return json && json->is_object() && json->contains(key) && (*json)[key].is_number();
  };
  if (!number("input") || !number("output"))
    return fail(ErrorCode::kInvalid,
                "--random-range-ratio {}: expected a number, or {{\"input\": 0.3, \"output\": 0.5}}", text);
  return std::pair((*json)["input"].get<double>(), (*json)["output"].get<double>());
}

Result<> check_length(std::string_view flag, std::int64_t length, std::int64_t least) {
  if (length < least || length > kMostTokens)
    return fail(ErrorCode::kInvalid, "{} {}: expected {} to {}", flag, length, least, kMostTokens);
  return {};
}

Result<Workload> random_workload(const WorkloadOptions& options, PromptText& text) {
  const std::int64_t input = options.input_len.value_or(options.random_input_len);
  const std::int64_t output = options.output_len.value_or(options.random_output_len);
  OCTET_TRY_VOID(check_length(options.input_len ? "--input-len" : "--random-input-len", input, 1));
  OCTET_TRY_VOID(check_length(options.output_len ? "--output-len" : "--random-output-len", output, 1));
  OCTET_TRY_VOID(check_length("--random-prefix-len", options.random_prefix_len, 0));
  OCTET_TRY(const auto ratios, ratios_of(options.random_range_ratio));
  // As long as asked with what the tokenizer adds to a prompt.
  const std::int64_t least = options.random_prefix_len > 0 ? 0 : 1;
  if (input - text.special() < least)
    return fail(ErrorCode::kInvalid, "{} {}: the tokenizer alone adds {} tokens to a prompt",
                options.input_len ? "--input-len" : "--random-input-len", input, text.special());
  OCTET_TRY(const Range inputs, range_of(input - text.special(), ratios.first));
  OCTET_TRY(const Range outputs, range_of(output, ratios.second));
  OCTET_TRY(const std::string prefix, text.draw(options.random_prefix_len));
  Workload workload{.name = "random"};
  for (std::int64_t i = 0; i < options.num_prompts; ++i) {
    const std::int64_t tokens = std::max(inputs.draw(text.random()), least);
    OCTET_TRY(const std::string own, text.draw(tokens));
    workload.conversations.push_back(one_turn(text.begin(prefix + own),
                                              options.random_prefix_len + tokens + text.special(),
                                              std::max<std::int64_t>(outputs.draw(text.random()), 1)));
  }
  return workload;
}

Result<Workload> prefix_workload(const WorkloadOptions& options, PromptText& text) {
  const std::int64_t output = options.output_len.value_or(options.prefix_output_len);
  OCTET_TRY_VOID(check_length("--prefix-repetition-prefix-len", options.prefix_len, 0));
  OCTET_TRY_VOID(check_length("--prefix-repetition-suffix-len", options.suffix_len, 1));
  OCTET_TRY_VOID(check_length("--prefix-repetition-num-prefixes", options.num_prefixes, 1));
  OCTET_TRY_VOID(check_length("--prefix-repetition-output-len", output, 1));
  if (options.num_prefixes > options.num_prompts)
    return fail(ErrorCode::kInvalid, "--prefix-repetition-num-prefixes {} is more than --num-prompts {}",
                options.num_prefixes, options.num_prompts);
  Workload workload{.name = "prefix_repetition"};
  for (std::int64_t prefix = 0; prefix < options.num_prefixes; ++prefix) {
    OCTET_TRY(const std::string shared, text.draw(options.prefix_len));
    const std::int64_t begin = options.num_prompts * prefix / options.num_prefixes;
    const std::int64_t end = options.num_prompts * (prefix + 1) / options.num_prefixes;
    for (std::int64_t i = begin; i < end; ++i) {
      OCTET_TRY(const std::string own, text.draw(options.suffix_len));
      workload.conversations.push_back(
          one_turn(text.begin(shared + own), options.prefix_len + options.suffix_len + text.special(), output));
    }
  }
  if (!options.disable_shuffle) std::ranges::shuffle(workload.conversations, text.random());
  return workload;
}

bool reads_file(const WorkloadOptions& options) {
  return options.dataset != "random" && options.dataset != "prefix_repetition";
}

// Options that would go unheard.
Result<> check_options(const WorkloadOptions& options) {
  if (std::ranges::find(kNames, options.dataset) == std::end(kNames))
    return fail(ErrorCode::kUnsupported, "--dataset-name {}: expected {}", options.dataset, fmt::join(kNames, ", "));
  OCTET_TRY_VOID(check_length("--num-prompts", options.num_prompts, 1));
  if (options.output_len) OCTET_TRY_VOID(check_length("--output-len", *options.output_len, 1));
  if (options.path && !reads_file(options))
    return fail(ErrorCode::kInvalid, "--dataset-path {}: --dataset-name {} reads no file", *options.path,
                options.dataset);
  if (options.input_len && options.dataset != "random")
    return fail(ErrorCode::kInvalid, "--input-len: the prompts of --dataset-name {} have lengths of their own",
                options.dataset);
  if (options.self_timed && options.dataset != "timed_trace")
    return fail(ErrorCode::kInvalid, "--{}self-timed goes with --dataset-name timed_trace, not {}",
                *options.self_timed ? "" : "no-", options.dataset);
  return {};
}

}  // namespace

Result<Workload> make_workload(const WorkloadOptions& options, const text::Tokenizer* tokenizer) {
  OCTET_TRY_VOID(check_options(options));
  PromptText text(tokenizer, static_cast<std::uint64_t>(options.seed));
  Result<Workload> workload = options.dataset == "random"              ? random_workload(options, text)
                              : options.dataset == "prefix_repetition" ? prefix_workload(options, text)
                                                                       : read_workload(options, text);
  if (workload) workload->add_note(text.note());
  return workload;
}

Result<> check_context(const Workload& workload, std::int64_t max_model_len) {
  std::int64_t longest = 0;
  for (const Conversation& conversation : workload.conversations) {
    for (const Turn& turn : conversation.turns)
      longest = std::max<std::int64_t>(longest, std::int64_t{turn.input_tokens} + turn.output_tokens);
  }
  if (longest <= max_model_len) return {};
  return fail(ErrorCode::kInvalid, "{}: a prompt and its answer take {} tokens, and the model's context has {}",
              workload.name, longest, max_model_len);
}

}  // namespace octet::bench
