// JSON that a rendering is given, as values.
#pragma once
#include "octet/base/json.h"
#include "octet/text/jinja/heap.h"
#include "octet/text/jinja/value.h"

namespace octet::text::jinja {

enum class Origin {
  kTemplate,  // the operator's: counts as written by the template
  kData,      // a client's
  kMessages,  // a client's, but for the known names of roles: templates build control tokens from them ("<|" + role +
              // "|>")
};

class InputReader {
 public:
  explicit InputReader(Heap& heap) : heap_(heap) {}
  // Error: nested too deep.
  Result<Value> read(const Json& json, Origin origin) const { return read(json, origin, 0); }

 private:
  Result<Value> read(const Json& json, Origin origin, int depth) const;

  Heap& heap_;
};

}  // namespace octet::text::jinja
