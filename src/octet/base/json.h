// JSON from outside: one way in, with limits. Key order is kept, since chat templates print it.
#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "octet/base/error.h"

namespace octet {

using Json = nlohmann::ordered_json;

struct JsonLimits {
  std::size_t max_bytes = std::size_t{64} << 20;
  int max_depth = 64;                   // nested arrays and objects
  std::size_t max_values = 10'000'000;  // keys and values together
  bool allow_duplicate_keys = false;
};

// Parses exactly one JSON value. Errors say what is wrong and at which byte: not UTF-8, a duplicate key (named), too
// deep, too large, text after the value. error_at, where given, takes the offset at which the text stopped being JSON,
// 0 for errors of another kind.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {}, std::size_t* error_at = nullptr);

// As compact text. Strings that are no valid UTF-8 come out with U+FFFD: what is sent is always valid JSON.
std::string dump_json(const Json& value);

}  // namespace octet
