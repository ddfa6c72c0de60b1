#include "octet/server/openai_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>

namespace octet::server {
namespace {

using engine::FinishReason;

void append_ids(std::string& out, std::span<const text::TokenId> ids) {
  out += '[';
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    fmt::format_to(std::back_inserter(out), "{}", ids[i]);
  }
  out += ']';
}

std::string finish_json(FinishReason reason) {
  return reason == FinishReason::kNone ? "null" : fmt::format("\"{}\"", finish_text(reason));
}

// What a request named as its end; null where the model's own token ended it.
std::string stop_reason(const engine::Output& output) {
  std::string out = "null";
  if (output.stop_string) {
    out.clear();
    append_json_string(out, *output.stop_string);
  } else if (output.stop_token) {
    out = fmt::format("{}", *output.stop_token);
  }
  return out;
}

// Of an output that ends a choice, only what it tells of the prompt.
engine::Output without_answer(engine::Output output) {
  output.tokens.clear();
  output.text.clear();
  output.logprobs.clear();
  output.completion_tokens = 0;
  output.stop_string.reset();
  output.stop_token.reset();
  if (output.finish == FinishReason::kStop) output.finish = FinishReason::kLength;
  return output;
}

}  // namespace

AnswerBuilder::AnswerBuilder(AnswerFormat format)
    : format_(std::move(format)),
      choices_(static_cast<std::size_t>(format_.choices())),
      prompts_(static_cast<std::size_t>(format_.prompts)),
      unfinished_(format_.choices()) {
  const bool chat = format_.kind == ApiKind::kChat;
  chunk_head_ = "data: {\"id\":";
  append_json_string(chunk_head_, format_.id);
  fmt::format_to(std::back_inserter(chunk_head_),
                 ",\"object\":\"{}\",\"created\":{},\"model\":", chat ? "chat.completion.chunk" : "text_completion",
                 format_.created);
  append_json_string(chunk_head_, format_.model);
  chunk_head_ += ",\"choices\":[";
}

void AnswerBuilder::count(std::int32_t choice, const engine::Output& output) {
  Choice& state = choices_[static_cast<std::size_t>(choice)];
  PromptCount& prompt = prompts_[static_cast<std::size_t>(choice / format_.choices_per_prompt)];
  prompt.tokens = output.prompt_tokens;
  prompt.cached = std::max(prompt.cached, output.cached_tokens);
  state.completion_tokens = output.completion_tokens;
  state.queue_ns = output.queue_ns;
  state.first_token_ns = output.first_token_ns;
  state.last_token_ns = output.last_token_ns;
  if (output.finish != FinishReason::kNone && state.finish == FinishReason::kNone) {
    state.finish = output.finish;
    state.stop_reason = stop_reason(output);
    --unfinished_;
  }
}

std::string_view AnswerBuilder::prompt_echo(std::int32_t choice) const {
  if (format_.echo.empty()) return {};
  return format_.echo[static_cast<std::size_t>(choice / format_.choices_per_prompt)];
}

std::string AnswerBuilder::usage_json(std::int64_t prompt, std::int64_t completion, std::int64_t cached) const {
  const std::string details =
      format_.cached_tokens ? fmt::format("{{\"cached_tokens\":{}}}", cached) : std::string("null");
  return fmt::format(
      "{{\"prompt_tokens\":{},\"total_tokens\":{},\"completion_tokens\":{},\"prompt_tokens_details\":{},"
      "\"completion_tokens_details\":null}}",
      prompt, prompt + completion, completion, details);
}

std::string AnswerBuilder::usage() const {
  std::int64_t prompt = 0, completion = 0, cached = 0;
  for (const PromptCount& one : prompts_) prompt += one.tokens, cached += one.cached;
  for (const Choice& choice : choices_) completion += choice.completion_tokens;
  return usage_json(prompt, completion, cached);
}

std::string AnswerBuilder::usage_of(std::int32_t choice) const {
  const PromptCount& prompt = prompts_[static_cast<std::size_t>(choice / format_.choices_per_prompt)];
  return usage_json(prompt.tokens, choices_[static_cast<std::size_t>(choice)].completion_tokens, prompt.cached);
}

// vLLM's names. Generation is from the first token to the last; tokens per second count from the first step, so prefill
// is in them.
std::string AnswerBuilder::metrics() const {
  if (!format_.metrics) return "null";
  const Choice& choice = choices_.front();
  const auto milliseconds = [](std::int64_t ns) { return fmt::format("{:.3f}", static_cast<double>(ns) * 1e-6); };
  std::string queue = "null", first = "null", generation = "null", mean = "null", speed = "null";
  if (choice.first_token_ns >= 0) {
    const std::int64_t between = choice.last_token_ns - choice.first_token_ns;
    const std::int64_t inference = choice.last_token_ns - choice.queue_ns;
    queue = milliseconds(choice.queue_ns);
    first = milliseconds(choice.first_token_ns);
    generation = milliseconds(between);
    if (choice.completion_tokens > 1) mean = milliseconds(between / (choice.completion_tokens - 1));
    if (inference > 0) speed = fmt::format("{:.3f}", choice.completion_tokens * 1e9 / static_cast<double>(inference));
  }
  return fmt::format(
      "{{\"time_to_first_token_ms\":{},\"generation_time_ms\":{},\"queue_time_ms\":{},\"mean_itl_ms\":{},"
      "\"tokens_per_second\":{}}}",
      first, generation, queue, mean, speed);
}

void AnswerBuilder::add(std::int32_t choice, engine::Output&& output) {
  if (format_.echo_alone) output = without_answer(std::move(output));
  count(choice, output);
  Choice& state = choices_[static_cast<std::size_t>(choice)];
  state.text += output.text;
  if (format_.return_token_ids) state.ids.insert(state.ids.end(), output.tokens.begin(), output.tokens.end());
  std::ranges::move(output.logprobs, std::back_inserter(state.logprobs));
  if (!output.prompt_logprobs.empty()) state.prompt_logprobs = std::move(output.prompt_logprobs);
}

// The value of "logprobs"; an echoed prompt's come before the first ones.
void AnswerBuilder::append_logprobs(std::string& out, std::int32_t index, Choice& choice,
                                    std::vector<engine::Logprob> logprobs) const {
  if (format_.logprobs < 0) {
    out += "null";
  } else if (format_.kind == ApiKind::kChat) {
    append_chat_logprobs(out, logprobs, names());
  } else {
    std::optional<text::TokenId> first;
    if (format_.echo_logprobs && !choice.begun) {
      first = format_.prompt_ids[static_cast<std::size_t>(index / format_.choices_per_prompt)].front();
      logprobs.insert(logprobs.begin(), choice.prompt_logprobs.begin(), choice.prompt_logprobs.end());
    }
    choice.offsets.append(out, first, logprobs, names());
  }
}

void AnswerBuilder::append_prompt(std::string& out, const Choice& choice) const {
  if (format_.prompt_logprobs < 0) {
    out += "null";
  } else {
    append_prompt_logprobs(out, choice.prompt_logprobs, names());
  }
}

void AnswerBuilder::chat_choice(std::string& out, std::int32_t index, Choice& choice) const {
  fmt::format_to(std::back_inserter(out), "{{\"index\":{},\"message\":{{\"role\":", index);
  append_json_string(out, format_.role);
  out += ",\"content\":";
  append_json_string(out, choice.text);
  fmt::format_to(std::back_inserter(out),
                 ",\"refusal\":null,\"annotations\":null,\"audio\":null,\"function_call\":null,\"reasoning\":null}},"
                 "\"logprobs\":");
  append_logprobs(out, index, choice, std::move(choice.logprobs));
  fmt::format_to(std::back_inserter(out),
                 ",\"finish_reason\":{},\"stop_reason\":{},\"token_ids\":", finish_json(choice.finish),
                 choice.stop_reason);
  if (format_.return_token_ids) {
    append_ids(out, choice.ids);
  } else {
    out += "null";
  }
  out += ",\"routed_experts\":null}";
}

void AnswerBuilder::completion_choice(std::string& out, std::int32_t index, Choice& choice) const {
  fmt::format_to(std::back_inserter(out), "{{\"index\":{},\"text\":", index);
  append_json_string(out, std::string(prompt_echo(index)) + choice.text);
  out += ",\"logprobs\":";
  append_logprobs(out, index, choice, std::move(choice.logprobs));
  fmt::format_to(std::back_inserter(out),
                 ",\"finish_reason\":{},\"stop_reason\":{},\"token_ids\":", finish_json(choice.finish),
                 choice.stop_reason);
  if (format_.return_token_ids) {
    append_ids(out, choice.ids);
    out += ",\"prompt_token_ids\":";
    append_ids(out, format_.prompt_ids[static_cast<std::size_t>(index / format_.choices_per_prompt)]);
  } else {
    out += "null,\"prompt_token_ids\":null";
  }
  out += ",\"prompt_logprobs\":";
  append_prompt(out, choice);
  out += ",\"routed_experts\":null}";
}

std::string AnswerBuilder::whole() {
  const bool chat = format_.kind == ApiKind::kChat;
  std::string out = "{\"id\":";
  append_json_string(out, format_.id);
  fmt::format_to(std::back_inserter(out),
                 ",\"object\":\"{}\",\"created\":{},\"model\":", chat ? "chat.completion" : "text_completion",
                 format_.created);
  append_json_string(out, format_.model);
  out += ",\"choices\":[";
  for (std::int32_t i = 0; i < format_.choices(); ++i) {
    if (i > 0) out += ',';
    Choice& choice = choices_[static_cast<std::size_t>(i)];
    if (chat) {
      chat_choice(out, i, choice);
    } else {
      completion_choice(out, i, choice);
    }
  }
  fmt::format_to(std::back_inserter(out), "],\"service_tier\":null,\"system_fingerprint\":{},\"usage\":{}",
                 format_.fingerprint, usage());
  if (chat) {
    out += ",\"prompt_logprobs\":";
    append_prompt(out, choices_.front());
    out += ",\"prompt_text\":null,\"prompt_token_ids\":";
    if (format_.return_token_ids) {
      append_ids(out, format_.prompt_ids.front());
    } else {
      out += "null";
    }
  }
  out += ",\"kv_transfer_params\":null,\"ec_transfer_params\":null,\"metrics\":" + metrics() + "}";
  return out;
}

void AnswerBuilder::open_chunk(std::string& out, std::int32_t choice) {
  out += chunk_head_;
  fmt::format_to(std::back_inserter(out), "{{\"index\":{},", choice);
}

void AnswerBuilder::begin(std::string& out) {
  for (std::int32_t i = 0; i < format_.choices(); ++i) {
    if (format_.kind == ApiKind::kChat) {
      open_chunk(out, i);
      out += "\"delta\":{\"role\":";
      append_json_string(out, format_.role);
      out += ",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]";
      if (format_.return_token_ids) {
        out += ",\"prompt_token_ids\":";
        append_ids(out, format_.prompt_ids.front());
      }
      out += "}\n\n";
    } else if (const std::string_view echo = prompt_echo(i); !echo.empty() && !format_.echo_logprobs) {
      open_chunk(out, i);
      out += "\"text\":";
      append_json_string(out, echo);
      out += ",\"logprobs\":null,\"finish_reason\":null,\"stop_reason\":null}]}\n\n";
    }
  }
}

void AnswerBuilder::event(std::string& out, std::int32_t choice, const engine::Output& produced) {
  const engine::Output shown = format_.echo_alone ? without_answer(produced) : engine::Output{};
  const engine::Output& output = format_.echo_alone ? shown : produced;
  count(choice, output);
  Choice& state = choices_[static_cast<std::size_t>(choice)];
  const bool last = output.finish != FinishReason::kNone;
  const bool ids = format_.return_token_ids && !output.tokens.empty();
  if (output.text.empty() && !ids && output.logprobs.empty() && !last) return;
  if (!output.prompt_logprobs.empty()) state.prompt_logprobs = output.prompt_logprobs;
  open_chunk(out, choice);
  const bool chat = format_.kind == ApiKind::kChat;
  out += chat ? "\"delta\":{\"content\":" : "\"text\":";
  append_json_string(
      out, format_.echo_logprobs && !state.begun ? std::string(prompt_echo(choice)) + output.text : output.text);
  if (chat) out += '}';
  out += ",\"logprobs\":";
  append_logprobs(out, choice, state, output.logprobs);
  fmt::format_to(std::back_inserter(out), ",\"finish_reason\":{}", finish_json(output.finish));
  if (last || !chat) fmt::format_to(std::back_inserter(out), ",\"stop_reason\":{}", state.stop_reason);
  if (format_.return_token_ids) {
    out += ",\"token_ids\":";
    append_ids(out, output.tokens);
    if (!chat && !state.begun) {
      out += ",\"prompt_token_ids\":";
      append_ids(out, format_.prompt_ids[static_cast<std::size_t>(choice / format_.choices_per_prompt)]);
    }
  }
  state.begun = true;
  out += "}]";
  if (format_.continuous_usage) fmt::format_to(std::back_inserter(out), ",\"usage\":{}", usage_of(choice));
  out += "}\n\n";
}

void AnswerBuilder::end(std::string& out) {
  if (format_.include_usage) {
    out += chunk_head_;
    fmt::format_to(std::back_inserter(out), "],\"usage\":{}", usage());
    if (format_.metrics) out += ",\"metrics\":" + metrics();
    out += "}\n\n";
  }
  out += "data: [DONE]\n\n";
}

void AnswerBuilder::failure(std::string& out, const ApiError& error) {
  fmt::format_to(std::back_inserter(out), "data: {}\n\n", error_json(error));
}

}  // namespace octet::server
