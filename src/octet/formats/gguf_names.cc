#include "octet/formats/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace octet::formats {
namespace {

struct NamePair {
  std::string_view hf, gguf;
};

// Before ".weight" or ".bias".
constexpr std::array kWhole = {
    NamePair{"model.embed_tokens", "token_embd"},
    NamePair{"model.norm", "output_norm"},
    NamePair{"lm_head", "output"},
};
constexpr std::array kInLayer = {
    NamePair{"input_layernorm", "attn_norm"},    NamePair{"self_attn.q_proj", "attn_q"},
    NamePair{"self_attn.k_proj", "attn_k"},      NamePair{"self_attn.v_proj", "attn_v"},
    NamePair{"self_attn.o_proj", "attn_output"}, NamePair{"self_attn.q_norm", "attn_q_norm"},
    NamePair{"self_attn.k_norm", "attn_k_norm"}, NamePair{"post_attention_layernorm", "ffn_norm"},
    NamePair{"mlp.gate_proj", "ffn_gate"},       NamePair{"mlp.up_proj", "ffn_up"},
    NamePair{"mlp.down_proj", "ffn_down"},
};
constexpr NamePair kLayer = {"model.layers.", "blk."};

using Side = std::string_view NamePair::*;

std::optional<std::string> translate(std::string_view name, Side from, Side to) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view suffix = name.substr(dot);
  if (suffix != ".weight" && suffix != ".bias") return std::nullopt;
  const std::string_view stem = name.substr(0, dot);
  if (const auto whole = std::ranges::find(kWhole, stem, from); whole != kWhole.end()) {
    return fmt::format("{}{}", (*whole).*to, suffix);
  }
  if (!stem.starts_with(kLayer.*from)) return std::nullopt;
  const std::string_view rest = stem.substr((kLayer.*from).size());
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0 || digits == rest.size() || rest[digits] != '.') return std::nullopt;
  const auto part = std::ranges::find(kInLayer, rest.substr(digits + 1), from);
  if (part == kInLayer.end()) return std::nullopt;
  return fmt::format("{}{}.{}{}", kLayer.*to, rest.substr(0, digits), (*part).*to, suffix);
}

}  // namespace

std::optional<std::string> gguf_name(std::string_view hf_name) {
  return translate(hf_name, &NamePair::hf, &NamePair::gguf);
}

std::optional<std::string> hf_name(std::string_view gguf_name) {
  return translate(gguf_name, &NamePair::gguf, &NamePair::hf);
}

}  // namespace octet::formats
