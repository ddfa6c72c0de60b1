#include "octet/server/openai_sampling.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <unordered_set>

namespace octet::server {
namespace {

constexpr std::size_t kMaxStops = 16;        // stop strings
constexpr std::size_t kMaxStopBytes = 4096;  // of one stop string; every sequence has copies
constexpr std::size_t kMaxStopIds = 1024;    // stop token ids
constexpr std::size_t kMaxBiases = 4096;     // entries of logit_bias; each is applied at every token
constexpr std::size_t kMaxBadWords = 1024;
constexpr double kGreedyTemperature = 1e-5;  // below, logits divided by it no longer fit
constexpr double kLargestBias = 100;         // what is beyond counts as this, as in vLLM
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

std::optional<text::TokenId> token_id(std::string_view text) {
  text::TokenId id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0) return std::nullopt;
  return id;
}

void parse_bias(JsonFields& fields, engine::SamplingControls& controls) {
  const Json* biases = fields.object("logit_bias");
  if (biases == nullptr) return;
  if (biases->size() > kMaxBiases) {
    fields.fail_value("logit_bias", fmt::format("logit_bias: at most {} tokens, got {}", kMaxBiases, biases->size()));
    return;
  }
  std::unordered_set<text::TokenId> seen;
  JsonFields inner(*biases, "logit_bias.");
  for (const auto& [key, value] : biases->items()) {
    const auto id = token_id(key);
    if (!id || !seen.insert(*id).second) {
      fields.fail_value("logit_bias", fmt::format("logit_bias: {} is no token id, or named twice", excerpt(key)));
      return;
    }
    const auto bias = inner.number(key);
    if (!inner.ok()) return fields.fail(inner.error());
    if (bias) {
      controls.logit_bias.emplace_back(*id, static_cast<float>(std::clamp(*bias, -kLargestBias, kLargestBias)));
    }
  }
}

void parse_allowed(JsonFields& fields, engine::SamplingControls& controls) {
  if (fields.find("allowed_token_ids") == nullptr) return;
  for (const std::int64_t id : fields.integers("allowed_token_ids")) {
    if (id < 0 || id > kMaxInt) {
      fields.fail_value("allowed_token_ids", fmt::format("allowed_token_ids: {} is not a token id", id));
      return;
    }
    controls.allowed.push_back(static_cast<text::TokenId>(id));
  }
  std::ranges::sort(controls.allowed);
  controls.allowed.erase(std::ranges::unique(controls.allowed).begin(), controls.allowed.end());
  if (controls.allowed.empty()) fields.fail_value("allowed_token_ids", "allowed_token_ids must not be empty");
}

// How many of the likeliest tokens; -1 asks for all.
std::int32_t count_of(std::int64_t count) {
  return static_cast<std::int32_t>(count == -1 ? kMaxInt : std::min(count, kMaxInt));
}

}  // namespace

void parse_filters(JsonFields& fields, const formats::GenerationDefaults& defaults, engine::SamplingParams& sampling) {
  const double temperature = fields.number("temperature").value_or(defaults.temperature.value_or(1.0F));
  if (temperature < 0 || temperature > 2) {
    fields.fail_value("temperature", fmt::format("temperature must be between 0 and 2, got {}", temperature));
  }
  sampling.temperature = temperature < kGreedyTemperature ? 0.0F : static_cast<float>(temperature);
  const double top_p = fields.number("top_p").value_or(defaults.top_p.value_or(1.0F));
  if (top_p <= 0 || top_p > 1) {
    fields.fail_value("top_p", fmt::format("top_p must be greater than 0 and at most 1, got {}", top_p));
  }
  // A value that only a double holds must not become the 0 that it is not.
  sampling.top_p = std::max(static_cast<float>(top_p), std::numeric_limits<float>::min());
  const double min_p = fields.number("min_p").value_or(defaults.min_p.value_or(0.0F));
  if (min_p < 0 || min_p > 1) fields.fail_value({}, fmt::format("min_p must be between 0 and 1, got {}", min_p));
  sampling.min_p = static_cast<float>(min_p);
  const std::int64_t top_k = fields.integer("top_k").value_or(defaults.top_k.value_or(0));
  if (top_k < -1) fields.fail_value("top_k", fmt::format("top_k must be -1 or 0 (off) or more, got {}", top_k));
  sampling.top_k = static_cast<std::int32_t>(std::clamp<std::int64_t>(top_k, 0, kMaxInt));
  if (const auto seed = fields.integer("seed")) sampling.seed = static_cast<std::uint64_t>(*seed);
}

void parse_stop_strings(JsonFields& fields, const std::string& name, engine::SamplingParams& sampling) {
  sampling.stop = fields.strings(name);
  if (sampling.stop.size() > kMaxStops) {
    fields.fail(bad_form(name, fmt::format("{}: at most {} strings, got {}", name, kMaxStops, sampling.stop.size())));
  }
  if (std::ranges::find(sampling.stop, "") != sampling.stop.end()) {
    fields.fail_value(name, fmt::format("{}: a stop string must not be empty", name));
  }
  for (const std::string& stop : sampling.stop) {
    if (stop.size() > kMaxStopBytes) {
      fields.fail_value(name,
                        fmt::format("{}: at most {} bytes in a string, got {}", name, kMaxStopBytes, stop.size()));
    }
  }
}

void parse_stops(JsonFields& fields, engine::SamplingParams& sampling) {
  parse_stop_strings(fields, "stop", sampling);
  const auto ids = fields.integers("stop_token_ids");
  if (ids.size() > kMaxStopIds) {
    fields.fail_value("stop_token_ids", fmt::format("stop_token_ids: at most {}, got {}", kMaxStopIds, ids.size()));
  }
  for (const std::int64_t id : ids) {
    if (id < 0 || id > kMaxInt) {
      fields.fail_value("stop_token_ids", fmt::format("stop_token_ids: {} is not a token id", id));
      return;
    }
    sampling.stop_token_ids.push_back(static_cast<text::TokenId>(id));
  }
  sampling.include_stop_in_output = fields.boolean("include_stop_str_in_output").value_or(false);
  sampling.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  sampling.skip_special_tokens = fields.boolean("skip_special_tokens").value_or(true);
}

void parse_controls(JsonFields& fields, const formats::GenerationDefaults& defaults, engine::SamplingParams& sampling) {
  engine::SamplingControls& controls = sampling.controls;
  const auto penalty = [&](std::string_view name) {
    const double value = fields.number(name).value_or(0);
    if (value < -2 || value > 2) {
      fields.fail_value({}, fmt::format("{} must be between -2 and 2, got {}", name, value));
    }
    return static_cast<float>(value);
  };
  controls.presence_penalty = penalty("presence_penalty");
  controls.frequency_penalty = penalty("frequency_penalty");
  const double repetition = fields.number("repetition_penalty").value_or(defaults.repetition_penalty.value_or(1.0F));
  // Past these, logits are divided by zero or overflow.
  controls.repetition_penalty =
      static_cast<float>(std::clamp<double>(repetition, std::numeric_limits<float>::min(), 1e30));
  if (repetition <= 0) {
    fields.fail_value({}, fmt::format("repetition_penalty must be greater than 0, got {}", repetition));
  }
  const std::int64_t min_tokens = fields.integer("min_tokens").value_or(0);
  if (min_tokens < 0) {
    fields.fail_value("min_tokens", fmt::format("min_tokens must be 0 or more, got {}", min_tokens));
  }
  controls.min_tokens = static_cast<std::int32_t>(std::clamp<std::int64_t>(min_tokens, 0, kMaxInt));
  parse_bias(fields, controls);
  parse_allowed(fields, controls);
}

std::vector<std::string> parse_bad_words(JsonFields& fields) {
  if (fields.find("bad_words") == nullptr) return {};
  std::vector<std::string> words = fields.strings("bad_words");
  if (words.size() > kMaxBadWords) {
    fields.fail_value("bad_words", fmt::format("bad_words: at most {}, got {}", kMaxBadWords, words.size()));
  }
  for (const std::string& word : words) {
    if (word.empty() || word.size() > kMaxStopBytes) {
      fields.fail_value("bad_words", fmt::format("bad_words: a word must have from 1 to {} bytes", kMaxStopBytes));
    }
  }
  return words;
}

void parse_logprobs(JsonFields& fields, bool is_chat, bool stream, engine::SamplingParams& sampling) {
  const std::string_view name = is_chat ? "top_logprobs" : "logprobs";
  const bool wanted = is_chat && fields.boolean("logprobs").value_or(false);
  if (const auto count = fields.integer(name)) {
    if (*count < -1)
      fields.fail_value(std::string(name), fmt::format("{} must be -1, 0 or more, got {}", name, *count));
    if (is_chat && !wanted && *count != 0) fields.fail_value("top_logprobs", "top_logprobs needs logprobs: true");
    if (!is_chat || wanted) sampling.logprobs = count_of(*count);
  } else if (wanted) {
    sampling.logprobs = 0;
  }
  if (const auto count = fields.integer("prompt_logprobs")) {
    if (*count < -1) {
      fields.fail_value("prompt_logprobs", fmt::format("prompt_logprobs must be -1, 0 or more, got {}", *count));
    }
    if (stream) fields.fail_value("prompt_logprobs", "prompt_logprobs cannot be streamed");
    sampling.prompt_logprobs = count_of(*count);
  }
}

}  // namespace octet::server
