#include "octet/server/fingerprint.h"

#include <fmt/format.h>

#include <string_view>

#include "octet/base/sha256.h"
#include "octet/server/answer_writer.h"

namespace octet::server {
namespace {

constexpr std::size_t kHashDigits = 8;

// "avx2" of "cpu/avx2, 2 threads": how many threads there are changes no answer.
std::string_view instruction_set(std::string_view backend) {
  backend = backend.substr(0, backend.find(','));
  return backend.substr(backend.rfind('/') + 1);
}

}  // namespace

std::string configuration_hash(const engine::Replica& replica) {
  const formats::ModelConfig& c = replica.config;
  const std::string computation = fmt::format("{} {} {} {} {}", OCTET_VERSION, instruction_set(replica.backend),
                                              replica.dtype, replica.cache_dtype, c.quantization.name);
  const std::string shape =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", c.architecture, c.layers, c.hidden_size, c.heads,
                  c.kv_heads, c.head_dim, c.intermediate_size, c.vocab_size, c.norm_epsilon, c.rope.theta,
                  c.rope.factor, static_cast<int>(c.rope.scaling), replica.weight_bytes, replica.max_model_len);
  const std::string experts = fmt::format("{} {} {} {} {}", c.moe.experts, c.moe.top_k, c.moe.intermediate_size,
                                          c.moe.renormalize, c.moe.factor);
  return sha256_hex(computation + " " + shape + " " + experts).substr(0, kHashDigits);
}

std::string fingerprint_json(const FingerprintOptions& options, const engine::Replica& replica,
                             const std::string& hash) {
  using Mode = FingerprintOptions::Mode;
  if (options.mode == Mode::kNone || (options.mode == Mode::kCustom && !options.value)) return "null";
  std::string text = options.mode == Mode::kCustom ? *options.value : "octet-" OCTET_VERSION;
  if (options.mode == Mode::kFull) {
    for (const std::string_view part : {instruction_set(replica.backend), std::string_view(replica.dtype)}) {
      if (!part.empty()) text += fmt::format("-{}", part);
    }
  }
  if (options.mode != Mode::kCustom) text += "-" + hash;
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace octet::server
