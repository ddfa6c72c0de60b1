// system_fingerprint of OpenAI's answers: equal where the same program serves the same model with the same arithmetic,
// so that the same seed gives the same tokens.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "octet/engine/replica.h"

namespace octet::server {

struct FingerprintOptions {
  // kFull: "octet-VERSION-BACKEND-TYPE-HASH"; kHash: "octet-VERSION-HASH"; kCustom: `value`; kNone: null.
  enum class Mode : std::uint8_t { kFull, kHash, kCustom, kNone } mode = Mode::kFull;
  std::optional<std::string> value;  // none: null
};

// Eight hexadecimal digits over what decides a model's answers: its configuration and size, the type of its
// activations, the back end. Not over the weights themselves.
std::string configuration_hash(const engine::Replica& replica);

// The value as JSON: a string or null. hash: of configuration_hash().
std::string fingerprint_json(const FingerprintOptions& options, const engine::Replica& replica,
                             const std::string& hash);

}  // namespace octet::server
