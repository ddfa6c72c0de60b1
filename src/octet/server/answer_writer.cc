#include "octet/server/answer_writer.h"

#include <fmt/format.h>

#include <iterator>

#include "octet/base/utf8.h"

namespace octet::server {

using engine::FinishReason;

void append_json_string(std::string& out, std::string_view text) {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = repair_utf8(text);
    text = repaired;
  }
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte >= 0x20) {
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    }
  }
  out += '"';
}

std::string_view finish_text(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "null";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAbort:
      return "abort";
    case FinishReason::kError:
      return "error";
  }
  return "null";
}

}  // namespace octet::server
