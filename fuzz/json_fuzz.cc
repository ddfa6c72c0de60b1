// JSON from clients and files: what parses must come back the same from its own text.
#include "octet/base/json.h"

#include <cstddef>
#include <cstdint>

#include "octet/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  // Small limits, so that short inputs reach them.
  auto value = octet::parse_json(text, {.max_bytes = 1 << 16, .max_depth = 16, .max_values = 1000});
  if (!value) {
    OCTET_CHECK(!value.error().message.empty());
    return 0;
  }
  auto again = octet::parse_json(octet::dump_json(*value), {.allow_duplicate_keys = false});
  OCTET_CHECK(again && *again == *value);
  return 0;
}
