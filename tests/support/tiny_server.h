// The settings of a TestServer whose model is a tiny real one: a forward pass with attention over a paged cache, not a
// script. Tokens are bytes.
#pragma once
#include <cstdint>
#include <optional>

#include "tests/support/test_server.h"

namespace octet::testing {

struct TinyServerSpec {
  std::int32_t slots = 32, max_rows = 64, context = 512;
  std::int32_t blocks = 512;         // of 16 tokens
  std::optional<DType> cache_dtype;  // else as the activations
};

TestServerOptions tiny_server(const TinyServerSpec& spec = {});

}  // namespace octet::testing
