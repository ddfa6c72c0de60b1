#include "octet/text/tokenizer/known_encodings.h"

#include <array>
#include <initializer_list>

#include "octet/text/tokenizer/patterns.h"
#include "octet/text/tokenizer/word_matcher.h"

namespace octet::text {
namespace {

using Names = std::initializer_list<std::string_view>;

AddedToken special(std::string_view content, TokenId id) {
  return {.content = std::string(content), .id = id, .normalized = false, .special = true};
}

std::vector<AddedToken> numbered(TokenId first, Names names) {
  std::vector<AddedToken> tokens;
  for (const std::string_view name : names) tokens.push_back(special(name, first++));
  return tokens;
}

// Names that end with a number, up to `end` tokens in all.
void add_numbered(std::vector<AddedToken>& tokens, std::string_view prefix, int number, std::size_t end) {
  for (; tokens.size() < end; ++number) {
    tokens.push_back(special(fmt::format("{}{}|>", prefix, number), tokens.back().id + 1));
  }
}

// Llama 3.1 and later; Llama 3 had other names for a few of the reserved ones.
KnownEncoding llama3() {
  auto tokens =
      numbered(128000, {"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
                        "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>", "<|step_id|>",
                        "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>"});
  add_numbered(tokens, "<|reserved_special_token_", 2, 256);
  return {"llama3", patterns::kLlama3, false, std::move(tokens), "<|begin_of_text|>"};
}

KnownEncoding qwen() {
  auto tokens = numbered(151643, {"<|endoftext|>", "<|im_start|>", "<|im_end|>"});
  add_numbered(tokens, "<|extra_", 0, 208);
  return {"qwen", patterns::kQwen2, true, std::move(tokens), ""};
}

KnownEncoding qwen35() {
  auto tokens = numbered(248044, {"<|endoftext|>",
                                  "<|im_start|>",
                                  "<|im_end|>",
                                  "<|object_ref_start|>",
                                  "<|object_ref_end|>",
                                  "<|box_start|>",
                                  "<|box_end|>",
                                  "<|quad_start|>",
                                  "<|quad_end|>",
                                  "<|vision_start|>",
                                  "<|vision_end|>",
                                  "<|vision_pad|>",
                                  "<|image_pad|>",
                                  "<|video_pad|>",
                                  "<tool_call>",
                                  "</tool_call>",
                                  "<|fim_prefix|>",
                                  "<|fim_middle|>",
                                  "<|fim_suffix|>",
                                  "<|fim_pad|>",
                                  "<|repo_name|>",
                                  "<|file_sep|>",
                                  "<tool_response>",
                                  "</tool_response>",
                                  "<think>",
                                  "</think>",
                                  "<|audio_start|>",
                                  "<|audio_end|>",
                                  "<tts_pad>",
                                  "<tts_text_bos>",
                                  "<tts_text_eod>",
                                  "<tts_text_bos_single>",
                                  "<|audio_pad|>"});
  // As in the models' tokenizer_config.json: what a tool call, code completion and thinking write is text.
  constexpr auto kText = std::to_array<std::string_view>(
      {"<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
       "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"});
  for (AddedToken& token : tokens) {
    for (const std::string_view text : kText) token.special = token.special && token.content != text;
  }
  return {"qwen3.5", patterns::kQwen35, true, std::move(tokens), ""};
}

KnownEncoding cl100k() {
  auto tokens = numbered(100257, {"<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"});
  tokens.push_back(special("<|endofprompt|>", 100276));
  return {"cl100k_base", patterns::kLlama3, false, std::move(tokens), ""};
}

KnownEncoding o200k() {
  return {"o200k_base",
          patterns::kO200k,
          false,
          {special("<|endoftext|>", 199999), special("<|endofprompt|>", 200018)},
          ""};
}

KnownEncoding r50k() { return {"r50k_base", patterns::kGpt2, false, {special("<|endoftext|>", 50256)}, ""}; }
KnownEncoding p50k() { return {"p50k_base", patterns::kGpt2, false, {special("<|endoftext|>", 50256)}, ""}; }

struct Entry {
  std::string_view sha256;
  KnownEncoding (*make)();
};

constexpr auto kEntries = std::to_array<Entry>({
    {"82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55", llama3},
    {"b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186", qwen},
    {"8dde380a6405e935f5de16a99eb61c824f3f814dd1ed298784c72babb7a03cdd", qwen35},
    {"223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", cl100k},
    {"446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", o200k},
    {"306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930", r50k},
    {"94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069", p50k},
});

}  // namespace

std::optional<KnownEncoding> known_encoding(std::string_view sha256) {
  for (const Entry& entry : kEntries) {
    if (entry.sha256 == sha256) return entry.make();
  }
  return std::nullopt;
}

std::optional<KnownImplementation> known_implementation(std::string_view name) {
  if (name == "tokenization_kimi.TikTokenTokenizer") {
    return KnownImplementation{patterns::kKimi, false, 258, "<|reserved_token_"};
  }
  if (name == "tokenization_qwen.QWenTokenizer" || name == "QWenTokenizer") {
    return KnownImplementation{patterns::kQwen2, true, 0, ""};
  }
  return std::nullopt;
}

}  // namespace octet::text
