#include "octet/text/jinja/pretty_print.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "octet/text/jinja/arguments.h"
#include "octet/text/jinja/strings.h"
#include "octet/text/unicode.h"

namespace octet::text::jinja {
namespace {

using Width = std::ptrdiff_t;
constexpr Width kWidth = 80;

Width length_of(const SpanText& text) { return static_cast<Width>(count_code_points(text.bytes())); }

// Follows the layout rules of CPython's PrettyPrinter with its default settings.
class PrettyPrinter {
 public:
  explicit PrettyPrinter(Interpreter& interpreter) : interpreter_(interpreter), budget_(interpreter.budget()) {}

  Result<SpanText> text(const Value& value) {
    OCTET_TRY(const Value sorted, sorted_copy(value));
    OCTET_TRY_VOID(write(sorted, 0, 0, 0));
    return std::move(out_);
  }

 private:
  Result<Value> sorted_copy(const Value& value);
  Result<> sort_entries(std::vector<Dict::Entry>& entries);
  Result<SpanText> repr(const Value& value) {
    SpanText text;
    OCTET_TRY_VOID(print_repr(budget_, text, value));
    return text;
  }
  Result<> write(const Value& value, Width indent, Width allowance, int level);
  Result<> write_dict(const Dict& dict, Width indent, Width allowance, int level);
  Result<> write_sequence(const Sequence& sequence, Width indent, Width allowance, int level);
  Result<> write_string(const SpanText& text, Width indent, Width allowance, int level);
  Result<> split_string(const SpanText& text, Width width, Width allowance, std::vector<SpanText>& chunks);
  Result<> new_line(Width indent) {
    OCTET_TRY_VOID(budget_.text(static_cast<std::size_t>(indent) + 1));
    out_.append("\n" + std::string(static_cast<std::size_t>(indent), ' '), false);
    return budget_.fits(out_.size());
  }
  Result<SpanText> quoted(const SpanText& text) {
    OCTET_TRY(const Value value, interpreter_.heap().string(text));
    return repr(value);
  }

  Interpreter& interpreter_;
  Budget& budget_;
  SpanText out_;
};

Result<> PrettyPrinter::sort_entries(std::vector<Dict::Entry>& entries) {
  OCTET_TRY_VOID(budget_.step(entries.size() * 8));
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto before = [&](std::size_t a, std::size_t b) {
    const Value &left = entries[a].first, &right = entries[b].first;
    const auto first = less(budget_, left, right), second = less(budget_, right, left);
    if (first && second) return *first || (!*second && a < b);
    // Types without an order between them.
    const std::string left_type = type_name(left), right_type = type_name(right);
    return left_type < right_type || (left_type == right_type && a < b);
  };
  // Keys such as NaN have no consistent order, which a heap endures.
  std::ranges::make_heap(order, before);
  std::ranges::sort_heap(order, before);
  std::vector<Dict::Entry> sorted;
  sorted.reserve(entries.size());
  for (const std::size_t at : order) sorted.push_back(std::move(entries[at]));
  entries = std::move(sorted);
  return {};
}

Result<Value> PrettyPrinter::sorted_copy(const Value& value) {
  const DepthGuard guard(budget_);
  OCTET_TRY_VOID(guard.entered());
  if (value.is(Kind::kDict)) {
    std::vector<Dict::Entry> entries = value.dict().entries;
    OCTET_TRY_VOID(sort_entries(entries));
    OCTET_TRY(Dict* const copy, interpreter_.heap().dict(entries.size()));
    for (auto& [key, item] : entries) {
      OCTET_TRY(Value sorted, sorted_copy(item));
      copy->set(std::move(key), std::move(sorted));
    }
    return Value(copy);
  }
  if (!value.is(Kind::kSequence)) return value;
  const Sequence& sequence = value.sequence();
  if (sequence.flavour != Sequence::Flavour::kList && !sequence.is_tuple()) return value;
  std::vector<Value> items;
  items.reserve(sequence.items.size());
  for (const Value& item : sequence.items) {
    OCTET_TRY(Value sorted, sorted_copy(item));
    items.push_back(std::move(sorted));
  }
  return interpreter_.heap().sequence(sequence.flavour, std::move(items));
}

Result<> PrettyPrinter::write(const Value& value, Width indent, Width allowance, int level) {
  const DepthGuard guard(budget_);
  OCTET_TRY_VOID(guard.entered());
  OCTET_TRY(const SpanText whole, repr(value));
  if (length_of(whole) > kWidth - indent - allowance) {
    if (value.is(Kind::kDict)) return write_dict(value.dict(), indent, allowance, level + 1);
    if (value.is_string()) return write_string(value.text(), indent, allowance, level + 1);
    const bool listed = value.is(Kind::kSequence) && (value.sequence().flavour == Sequence::Flavour::kList ||
                                                      value.sequence().flavour == Sequence::Flavour::kTuple);
    if (listed) return write_sequence(value.sequence(), indent, allowance, level + 1);
  }
  OCTET_TRY_VOID(budget_.fits(out_.size() + whole.size()));
  out_.append(whole);
  return {};
}

Result<> PrettyPrinter::write_dict(const Dict& dict, Width indent, Width allowance, int level) {
  out_.append("{", false);
  for (std::size_t i = 0; i < dict.entries.size(); ++i) {
    const bool last = i + 1 == dict.entries.size();
    OCTET_TRY(const SpanText key, repr(dict.entries[i].first));
    out_.append(key);
    out_.append(": ", false);
    OCTET_TRY_VOID(write(dict.entries[i].second, indent + 1 + length_of(key) + 2, last ? allowance + 1 : 1, level));
    if (last) break;
    out_.append(",", false);
    OCTET_TRY_VOID(new_line(indent + 1));
  }
  out_.append("}", false);
  return {};
}

Result<> PrettyPrinter::write_sequence(const Sequence& sequence, Width indent, Width allowance, int level) {
  const std::string_view close = !sequence.is_tuple() ? "]" : sequence.items.size() == 1 ? ",)" : ")";
  out_.append(sequence.is_tuple() ? "(" : "[", false);
  for (std::size_t i = 0; i < sequence.items.size(); ++i) {
    const bool last = i + 1 == sequence.items.size();
    OCTET_TRY_VOID(
        write(sequence.items[i], indent + 1, last ? allowance + static_cast<Width>(close.size()) : 1, level));
    if (last) break;
    out_.append(",", false);
    OCTET_TRY_VOID(new_line(indent + 1));
  }
  out_.append(close, false);
  return {};
}

// A line that is too long, at its spaces.
Result<> PrettyPrinter::split_string(const SpanText& text, Width width, Width allowance,
                                     std::vector<SpanText>& chunks) {
  SpanText current;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    bool space = false;
    while (end < text.size()) {
      const CodePoint c = code_point_at(text.bytes(), end);
      if (space && !is_python_space(c.value)) break;
      space = is_python_space(c.value);
      end += c.length;
    }
    if (end == text.size()) width -= allowance;
    SpanText candidate = current;
    candidate.append(text, at, end);
    OCTET_TRY(const SpanText shown, quoted(candidate));
    if (length_of(shown) > width) {
      if (!current.empty()) {
        OCTET_TRY(SpanText chunk, quoted(current));
        chunks.push_back(std::move(chunk));
      }
      current = text.slice(at, end);
    } else {
      current = std::move(candidate);
    }
    at = end;
  }
  if (current.empty()) return {};
  OCTET_TRY(SpanText chunk, quoted(current));
  chunks.push_back(std::move(chunk));
  return {};
}

Result<> PrettyPrinter::write_string(const SpanText& text, Width indent, Width allowance, int level) {
  if (level == 1) ++indent, ++allowance;
  std::vector<SpanText> chunks;
  const std::vector<SpanText> lines = split_lines(text, true);
  SpanText shown;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool last = i + 1 == lines.size();
    OCTET_TRY(shown, quoted(lines[i]));
    if (length_of(shown) <= kWidth - indent - (last ? allowance : 0)) {
      chunks.push_back(shown);
    } else {
      OCTET_TRY_VOID(split_string(lines[i], kWidth - indent, last ? allowance : 0, chunks));
    }
  }
  if (chunks.size() == 1) {
    out_.append(shown);
    return {};
  }
  if (level == 1) out_.append("(", false);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (i > 0) OCTET_TRY_VOID(new_line(indent));
    out_.append(chunks[i]);
  }
  if (level == 1) out_.append(")", false);
  return {};
}

}  // namespace

Result<SpanText> pretty_text(Interpreter& interpreter, const Value& value) {
  return PrettyPrinter(interpreter).text(value);
}

}  // namespace octet::text::jinja
