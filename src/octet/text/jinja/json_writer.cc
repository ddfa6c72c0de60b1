#include "octet/text/jinja/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "octet/text/unicode.h"

namespace octet::text::jinja {
namespace {

constexpr int kMaxNesting = 200;

class Writer {
 public:
  Writer(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style) {}

  Result<SpanText> run(const Value& value) {
    OCTET_TRY_VOID(write(value, 0));
    return std::move(out_);
  }

 private:
  void literal(std::string_view text) { out_.append(text, false); }

  Result<> write(const Value& value, int depth) {
    if (depth > kMaxNesting) return fail(ErrorCode::kExhausted, "values are nested too deep");
    OCTET_TRY_VOID(budget_.step());
    OCTET_TRY_VOID(budget_.fits(out_.size()));
    switch (value.kind()) {
      case Kind::kNone:
        literal("null");
        return {};
      case Kind::kBool:
        literal(value.boolean() ? "true" : "false");
        return {};
      case Kind::kInt:
        literal(integer_repr(value.integer()));
        return {};
      case Kind::kFloat:
        literal(number(value.real()));
        return {};
      case Kind::kString:
        string(value.text());
        return budget_.step(value.text().size() / 32);
      case Kind::kSequence:
        if (value.sequence().flavour == Sequence::Flavour::kList || value.sequence().is_tuple()) {
          return array(value.sequence(), depth);
        }
        break;
      case Kind::kDict:
        return object(value.dict(), depth);
      case Kind::kUndefined:
      case Kind::kObject:
        break;
    }
    return fail(ErrorCode::kInvalid, "Object of type {} is not JSON serializable", type_name(value));
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_repr(value);
  }

  Result<> line(int depth) {
    if (!style_.indented) return {};
    OCTET_TRY_VOID(budget_.fits(out_.size() + style_.indent.size() * static_cast<std::size_t>(depth)));
    literal("\n");
    for (int i = 0; i < depth; ++i) literal(style_.indent);
    return {};
  }

  Result<> array(const Sequence& sequence, int depth) {
    if (sequence.items.empty()) {
      literal("[]");
      return {};
    }
    literal("[");
    bool first = true;
    for (const Value& item : sequence.items) {
      if (!first) literal(style_.item_separator);
      first = false;
      OCTET_TRY_VOID(line(depth + 1));
      OCTET_TRY_VOID(write(item, depth + 1));
    }
    OCTET_TRY_VOID(line(depth));
    literal("]");
    return {};
  }

  Result<> object(const Dict& dict, int depth) {
    if (dict.entries.empty()) {
      literal("{}");
      return {};
    }
    std::vector<const Dict::Entry*> entries;
    OCTET_TRY_VOID(budget_.step(dict.entries.size()));
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) OCTET_TRY_VOID(sort(entries));
    literal("{");
    bool first = true;
    for (const Dict::Entry* entry : entries) {
      if (!first) literal(style_.item_separator);
      first = false;
      OCTET_TRY_VOID(line(depth + 1));
      OCTET_TRY_VOID(key(entry->first));
      literal(style_.key_separator);
      OCTET_TRY_VOID(write(entry->second, depth + 1));
    }
    OCTET_TRY_VOID(line(depth));
    literal("}");
    return {};
  }

  // Keys of different types have no order; strings, which is what JSON has, need no comparison that can fail.
  static Result<> sort(std::vector<const Dict::Entry*>& entries) {
    for (const Dict::Entry* entry : entries) {
      if (!entry->first.is_string()) return fail(ErrorCode::kInvalid, "sort_keys needs keys that are all strings");
    }
    std::ranges::sort(entries, {}, [](const Dict::Entry* entry) -> const std::string& { return entry->first.bytes(); });
    return {};
  }

  Result<> key(const Value& key) {
    switch (key.kind()) {
      case Kind::kString:
        string(key.text());
        return {};
      case Kind::kBool:
        literal(key.boolean() ? "\"true\"" : "\"false\"");
        return {};
      case Kind::kNone:
        literal("\"null\"");
        return {};
      case Kind::kInt:
        literal('"' + integer_repr(key.integer()) + '"');
        return {};
      case Kind::kFloat:
        literal('"' + number(key.real()) + '"');
        return {};
      default:
        return fail(ErrorCode::kInvalid, "keys must be str, int, float, bool or None, not {}", type_name(key));
    }
  }

  void string(const SpanText& text) {
    literal("\"");
    std::size_t at = 0;
    for (const SpanText::Run& run : text.runs()) {
      std::string piece;
      while (at < run.end) {
        const CodePoint c = code_point_at(text.bytes(), at);
        escape(piece, c.value);
        at += c.length;
      }
      out_.append(piece, run.is_data);
    }
    literal("\"");
  }

  void escape(std::string& out, char32_t c) const {
    constexpr std::string_view kFrom = "\"\\\n\r\t\b\f", kTo = "\"\\nrtbf";
    if (c < 0x80) {
      if (const std::size_t at = kFrom.find(static_cast<char>(c)); at != std::string_view::npos) {
        out += '\\';
        out += kTo[at];
        return;
      }
    }
    const auto value = static_cast<std::uint32_t>(c);
    if (c < 0x20) {
      out += fmt::format("\\u{:04x}", value);
    } else if (c < 0x80 || !style_.ensure_ascii) {
      append_code_point(out, c);
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", value);
    } else {
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (value >> 10), 0xDC00 + (value & 0x3FF));
    }
  }

  Budget& budget_;
  const JsonStyle& style_;
  SpanText out_;
};

}  // namespace

Result<SpanText> to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  return Writer(budget, style).run(value);
}

}  // namespace octet::text::jinja
