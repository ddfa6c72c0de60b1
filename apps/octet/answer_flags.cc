#include "apps/octet/answer_flags.h"

using octet::Flag;

std::vector<Flag> answer_flag_rows(AnswerFlags& f) {
  constexpr std::string_view group = "answers";
  return {
      {.names = "--fingerprint-mode",
       .group = group,
       .target = &f.fingerprint_mode,
       .help =
           "system_fingerprint of answers: version, back end, type and a hash of the configuration; version and hash; "
           "--fingerprint-value; or null",
       .choices = "full,hash,custom,none"},
      {.names = "--fingerprint-value",
       .group = group,
       .target = &f.fingerprint_value,
       .help = "system_fingerprint with --fingerprint-mode custom",
       .fallback = "null"},
      {.names = "--response-role",
       .group = group,
       .target = &f.response_role,
       .help = "role of a chat's answer; without add_generation_prompt it is the last message's"},
      {.names = "--enable-per-request-metrics",
       .group = group,
       .target = &f.request_metrics,
       .help = "answers of one choice tell their times under metrics; streams in their chunk of usage"},
      {.names = "--enable-tokenizer-info-endpoint",
       .group = group,
       .target = &f.tokenizer_info,
       .help = "GET /tokenizer_info tells tokenizer_config.json and the chat template"},
      {.names = "--sse-keep-alive-interval",
       .group = group,
       .target = &f.keep_alive_seconds,
       .help = "seconds after which a silent stream gets a comment, so that no proxy closes it; 0: none",
       .min = 0,
       .max = 86400},
      {.names = "--stream-interval",
       .group = group,
       .target = &f.stream_interval,
       .help = "tokens of a stream's event; the first token of a choice goes out at once",
       .min = 1,
       .max = 1 << 20},
      {.names = "--logprobs-mode",
       .group = group,
       .target = &f.logprobs_mode,
       .help = "what log-probabilities tell: these or logits, as the model gave them or as they were after penalties, "
               "biases, temperature and filters",
       .choices = "raw_logprobs,raw_logits,processed_logprobs,processed_logits"},
  };
}

namespace {

octet::engine::LogprobsMode logprobs_mode(std::string_view name) {
  using Mode = octet::engine::LogprobsMode;
  return name == "raw_logits"           ? Mode::kRawLogits
         : name == "processed_logprobs" ? Mode::kProcessedLogprobs
         : name == "processed_logits"   ? Mode::kProcessedLogits
                                        : Mode::kRawLogprobs;
}

}  // namespace

void apply_answer_flags(const AnswerFlags& f, octet::server::ServeOptions& options) {
  using Mode = octet::server::FingerprintOptions::Mode;
  octet::server::FingerprintOptions& fingerprint = options.api.fingerprint;
  fingerprint.mode = f.fingerprint_mode == "hash"     ? Mode::kHash
                     : f.fingerprint_mode == "custom" ? Mode::kCustom
                     : f.fingerprint_mode == "none"   ? Mode::kNone
                                                      : Mode::kFull;
  fingerprint.value = f.fingerprint_value;
  options.api.response_role = f.response_role;
  options.api.request_metrics = f.request_metrics;
  options.api.tokenizer_info = f.tokenizer_info;
  options.api.stream.keep_alive = std::chrono::seconds(f.keep_alive_seconds);
  options.api.stream.interval = static_cast<std::int32_t>(f.stream_interval);
  options.replica.logprobs_mode = logprobs_mode(f.logprobs_mode);
}
