#include "tests/support/byte_tokenizer.h"

#include <nlohmann/json.hpp>

#include "octet/base/check.h"

namespace octet::testing {
namespace {

// The character that stands for a byte in a byte-level vocabulary (Radford et al., GPT-2): itself where it can be
// seen, else the next free one from U+0100.
std::string byte_character(int byte) {
  const auto seen = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  int code = byte;
  if (!seen(byte)) {
    code = 256;
    for (int before = 0; before < byte; ++before) code += seen(before) ? 0 : 1;
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

}  // namespace

std::string byte_tokenizer_json() {
  nlohmann::ordered_json vocabulary = nlohmann::ordered_json::object();
  for (int byte = 0; byte < 256; ++byte) vocabulary[byte_character(byte)] = byte;
  const nlohmann::ordered_json level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const nlohmann::ordered_json end = {{"id", kByteEos},  {"content", "<|end|>"}, {"single_word", false},
                                      {"lstrip", false}, {"rstrip", false},      {"normalized", false},
                                      {"special", true}};
  const nlohmann::ordered_json model = {{"type", "BPE"},
                                        {"dropout", nullptr},
                                        {"unk_token", nullptr},
                                        {"continuing_subword_prefix", nullptr},
                                        {"end_of_word_suffix", nullptr},
                                        {"fuse_unk", false},
                                        {"byte_fallback", false},
                                        {"vocab", vocabulary},
                                        {"merges", nlohmann::ordered_json::array()}};
  return nlohmann::ordered_json{{"version", "1.0"},
                                {"truncation", nullptr},
                                {"padding", nullptr},
                                {"added_tokens", nlohmann::ordered_json::array({end})},
                                {"normalizer", nullptr},
                                {"pre_tokenizer", level},
                                {"post_processor", nullptr},
                                {"decoder", level},
                                {"model", model}}
      .dump();
}

std::unique_ptr<text::Tokenizer> make_byte_tokenizer() {
  auto tokenizer = text::Tokenizer::from_json(byte_tokenizer_json());
  OCTET_CHECK(tokenizer.has_value());
  return *std::move(tokenizer);
}

std::vector<text::TokenId> bytes_of_text(std::string_view text) {
  std::vector<text::TokenId> ids;
  for (const unsigned char byte : text) ids.push_back(byte);
  return ids;
}

}  // namespace octet::testing
