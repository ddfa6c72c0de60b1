#include "octet/formats/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

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
    NamePair{"input_layernorm", "attn_norm"},
    NamePair{"self_attn.q_proj", "attn_q"},
    NamePair{"self_attn.k_proj", "attn_k"},
    NamePair{"self_attn.v_proj", "attn_v"},
    NamePair{"self_attn.o_proj", "attn_output"},
    NamePair{"self_attn.q_norm", "attn_q_norm"},
    NamePair{"self_attn.k_norm", "attn_k_norm"},
    NamePair{"post_attention_layernorm", "ffn_norm"},
    NamePair{"mlp.gate_proj", "ffn_gate"},
    NamePair{"mlp.up_proj", "ffn_up"},
    NamePair{"mlp.down_proj", "ffn_down"},
    NamePair{"mlp.gate", "ffn_gate_inp"},
    NamePair{"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    NamePair{"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    NamePair{"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    NamePair{"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    NamePair{"block_sparse_moe.gate", "ffn_gate_inp"},
};
// Of one expert, after "experts.N.".
constexpr std::array kInExpert = {
    NamePair{"gate_proj", "ffn_gate"}, NamePair{"up_proj", "ffn_up"}, NamePair{"down_proj", "ffn_down"},
    NamePair{"w1", "ffn_gate"},        NamePair{"w3", "ffn_up"},      NamePair{"w2", "ffn_down"},
};
constexpr std::array kExpertBlocks = {std::string_view("mlp.experts."), std::string_view("block_sparse_moe.experts.")};
constexpr NamePair kLayer = {"model.layers.", "blk."};

// Takes digits and a dot off the text.
std::optional<std::string_view> take_number(std::string_view& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits == text.size() || text[digits] != '.') return std::nullopt;
  const std::string_view number = text.substr(0, digits);
  text.remove_prefix(digits + 1);
  return number;
}

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
  std::string_view rest = stem.substr((kLayer.*from).size());
  const auto layer = take_number(rest);
  if (!layer) return std::nullopt;
  const auto part = std::ranges::find(kInLayer, rest, from);
  if (part == kInLayer.end()) return std::nullopt;
  return fmt::format("{}{}.{}{}", kLayer.*to, *layer, (*part).*to, suffix);
}

}  // namespace

std::optional<std::string> gguf_name(std::string_view hf_name) {
  return translate(hf_name, &NamePair::hf, &NamePair::gguf);
}

std::optional<std::string> hf_name(std::string_view gguf_name) {
  return translate(gguf_name, &NamePair::gguf, &NamePair::hf);
}

std::optional<GgufExpertName> gguf_expert_name(std::string_view hf_name) {
  constexpr std::string_view kSuffix = ".weight";
  if (!hf_name.starts_with(kLayer.hf) || !hf_name.ends_with(kSuffix)) return std::nullopt;
  std::string_view rest = hf_name.substr(kLayer.hf.size());
  rest.remove_suffix(kSuffix.size());
  const auto layer = take_number(rest);
  if (!layer) return std::nullopt;
  const auto* block =
      std::ranges::find_if(kExpertBlocks, [&](std::string_view name) { return rest.starts_with(name); });
  if (block == kExpertBlocks.end()) return std::nullopt;
  rest.remove_prefix(block->size());
  const auto number = take_number(rest);
  const auto* part = std::ranges::find(kInExpert, rest, &NamePair::hf);
  if (!number || part == kInExpert.end()) return std::nullopt;
  GgufExpertName name{.stacked = fmt::format("{}{}.{}_exps{}", kLayer.gguf, *layer, part->gguf, kSuffix),
                      .separate = fmt::format("{}{}.{}.{}{}", kLayer.gguf, *layer, part->gguf, *number, kSuffix)};
  const auto [end, error] = std::from_chars(number->data(), number->data() + number->size(), name.expert);
  if (error != std::errc()) return std::nullopt;
  return name;
}

std::string gguf_shared_gate(std::int64_t layer) {
  return fmt::format("{}{}.ffn_gate_inp_shexp.weight", kLayer.gguf, layer);
}

std::array<std::string, 3> gguf_expert_stacks(std::int64_t layer) {
  const auto stack = [&](std::string_view part) {
    return fmt::format("{}{}.{}_exps.weight", kLayer.gguf, layer, part);
  };
  return {stack("ffn_gate"), stack("ffn_up"), stack("ffn_down")};
}

}  // namespace octet::formats
