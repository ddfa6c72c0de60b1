// The flags of `octet serve` about what stands in answers and how streams are sent.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/flags.h"
#include "octet/server/serve.h"

struct AnswerFlags {
  std::string fingerprint_mode = "full", response_role = "assistant", logprobs_mode = "raw_logprobs";
  std::optional<std::string> fingerprint_value;
  std::int64_t keep_alive_seconds = 0, stream_interval = 1;
  bool request_metrics = false, tokenizer_info = false;
};

std::vector<octet::Flag> answer_flag_rows(AnswerFlags& flags);
void apply_answer_flags(const AnswerFlags& flags, octet::server::ServeOptions& options);
