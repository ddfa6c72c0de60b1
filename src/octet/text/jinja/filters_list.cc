// Filters over sequences and dicts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "octet/text/jinja/arguments.h"
#include "octet/text/jinja/attribute_path.h"
#include "octet/text/jinja/filters.h"
#include "octet/text/jinja/strings.h"
#include "octet/text/unicode.h"

namespace octet::text::jinja {
namespace {

Result<Value> length(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("length", {}));
  switch (subject.kind()) {
    case Kind::kUndefined:
      return Value(0);
    case Kind::kString:
      OCTET_TRY_VOID(interpreter.budget().text(subject.text().size()));
      return Value(count_code_points(subject.bytes()));
    case Kind::kDict:
      return Value(subject.dict().entries.size());
    case Kind::kSequence:
      if (!subject.sequence().is_generator()) return Value(subject.sequence().items.size());
      break;
    default:
      break;
  }
  return fail(ErrorCode::kInvalid, "object of type '{}' has no len()", type_name(subject));
}

Result<Value> first(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("first", {}));
  if (subject.is(Kind::kSequence)) {
    Sequence& sequence = subject.sequence();
    const std::size_t at = sequence.is_generator() ? sequence.taken : 0;
    if (at >= sequence.items.size()) return Value::undefined("No first item, sequence was empty.");
    if (sequence.is_generator()) ++sequence.taken;
    return sequence.items[at];
  }
  OCTET_TRY(const std::vector<Value> items, interpreter.iterate(subject));
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Result<Value> last(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("last", {}));
  if (subject.is(Kind::kSequence) && subject.sequence().is_generator()) {
    return fail(ErrorCode::kInvalid, "'generator' object is not reversible");
  }
  OCTET_TRY(const std::vector<Value> items, interpreter.iterate(subject));
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Result<Value> to_list(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("list", {}));
  OCTET_TRY(std::vector<Value> items, interpreter.iterate(subject));
  return interpreter.heap().list(std::move(items));
}

Result<Value> join(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("join", {"d", "attribute"}));
  SpanText separator;
  if (const Value* given = arguments.find(0, "d")) {
    OCTET_TRY(separator, to_text(interpreter, *given));
  }
  OCTET_TRY(const std::vector<Value> items, interpreter.iterate(subject));
  const Value* attribute = arguments.find(1, "attribute");
  const AttributePath path = AttributePath::parse(attribute != nullptr ? *attribute : Value());
  SpanText out;
  bool is_first = true;
  for (const Value& item : items) {
    OCTET_TRY(const Value value, path.read(interpreter, item));
    if (!std::exchange(is_first, false)) out.append(separator);
    OCTET_TRY_VOID(print(interpreter.budget(), out, value));
    OCTET_TRY_VOID(interpreter.budget().fits(out.size()));
  }
  return interpreter.heap().string(std::move(out));
}

using Keyed = std::pair<std::vector<Value>, Value>;  // what to order by, and the item

Result<std::vector<Keyed>> with_keys(Interpreter& interpreter, std::vector<Value> items, const Value* attribute,
                                     bool case_sensitive) {
  const std::vector<AttributePath> paths = AttributePath::parse_list(attribute);
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (Value& item : items) {
    std::vector<Value> keys;
    for (const AttributePath& path : paths) {
      OCTET_TRY(const Value key, path.read(interpreter, item));
      keys.push_back(sort_key(key, case_sensitive));
    }
    keyed.emplace_back(std::move(keys), std::move(item));
  }
  return keyed;
}

Result<bool> before(Budget& budget, const std::vector<Value>& a, const std::vector<Value>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    OCTET_TRY(const bool same, equal(budget, a[i], b[i]));
    if (!same || a[i].is_undefined()) return less(budget, a[i], b[i]);
  }
  return false;
}

// Stable; reversed keeps equal items in their order, as Python does. The order may be inconsistent, so this is a merge
// of its own.
Result<> sort_keyed(Interpreter& interpreter, std::vector<Keyed>& items, bool reverse) {
  std::vector<Keyed> buffer(items.size());
  for (std::size_t width = 1; width < items.size(); width *= 2) {
    for (std::size_t from = 0; from < items.size(); from += 2 * width) {
      const std::size_t middle = std::min(from + width, items.size()), end = std::min(from + 2 * width, items.size());
      std::size_t left = from, right = middle, out = from;
      while (left < middle && right < end) {
        Budget& budget = interpreter.budget();
        OCTET_TRY(const bool take_right, reverse ? before(budget, items[left].first, items[right].first)
                                                 : before(budget, items[right].first, items[left].first));
        buffer[out++] = std::move(take_right ? items[right++] : items[left++]);
      }
      while (left < middle) buffer[out++] = std::move(items[left++]);
      while (right < end) buffer[out++] = std::move(items[right++]);
    }
    items.swap(buffer);
  }
  return {};
}

std::vector<Value> values_of(std::vector<Keyed> items) {
  std::vector<Value> out;
  out.reserve(items.size());
  for (Keyed& item : items) out.push_back(std::move(item.second));
  return out;
}

Result<Value> sort(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("sort", {"reverse", "case_sensitive", "attribute"}));
  OCTET_TRY(std::vector<Value> items, interpreter.iterate(subject));
  OCTET_TRY(auto keyed, with_keys(interpreter, std::move(items), arguments.find(2, "attribute"),
                                  flag_or(arguments.find(1, "case_sensitive"), false)));
  OCTET_TRY_VOID(sort_keyed(interpreter, keyed, flag_or(arguments.find(0, "reverse"), false)));
  return interpreter.heap().list(values_of(std::move(keyed)));
}

Result<Value> sort_dict(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("dictsort", {"case_sensitive", "by", "reverse"}));
  if (!subject.is(Kind::kDict)) {
    OCTET_TRY_VOID(defined(subject));
    return fail(ErrorCode::kInvalid, "'{}' object has no attribute 'items'", type_name(subject));
  }
  const Value* by = arguments.find(1, "by");
  const bool by_value = by != nullptr && by->is_string() && by->bytes() == "value";
  const bool case_sensitive = flag_or(arguments.find(0, "case_sensitive"), false);
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : subject.dict().entries) {
    OCTET_TRY(Value pair, interpreter.heap().tuple({key, value}));
    keyed.emplace_back(std::vector<Value>{sort_key(by_value ? value : key, case_sensitive)}, std::move(pair));
  }
  OCTET_TRY_VOID(sort_keyed(interpreter, keyed, flag_or(arguments.find(2, "reverse"), false)));
  return interpreter.heap().list(values_of(std::move(keyed)));
}

Result<Value> items(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("items", {}));
  if (subject.is_undefined()) return interpreter.heap().generator({});
  if (!subject.is(Kind::kDict)) return fail(ErrorCode::kInvalid, "Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const auto& [key, value] : subject.dict().entries) {
    OCTET_TRY(Value pair, interpreter.heap().tuple({key, value}));
    pairs.push_back(std::move(pair));
  }
  return interpreter.heap().generator(std::move(pairs));
}

Result<Value> group_by(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("groupby", {"attribute", "default", "case_sensitive"}));
  const Value* attribute = arguments.find(0, "attribute");
  if (attribute == nullptr) return fail(ErrorCode::kInvalid, "groupby needs an attribute");
  const AttributePath path = AttributePath::parse(*attribute);
  const bool case_sensitive = flag_or(arguments.find(2, "case_sensitive"), false);
  OCTET_TRY(const std::vector<Value> all, interpreter.iterate(subject));
  std::vector<Keyed> keyed;
  for (const Value& item : all) {
    OCTET_TRY(const Value key, path.read(interpreter, item, arguments.find(1, "default")));
    keyed.emplace_back(std::vector<Value>{sort_key(key, case_sensitive), key}, item);
  }
  for (Keyed& item : keyed) item.first.pop_back();
  OCTET_TRY_VOID(sort_keyed(interpreter, keyed, false));
  std::vector<Value> groups;
  for (std::size_t from = 0, to = 0; from < keyed.size(); from = to) {
    std::vector<Value> members;
    for (to = from; to < keyed.size(); ++to) {
      OCTET_TRY(const bool same, equal(interpreter.budget(), keyed[from].first[0], keyed[to].first[0]));
      if (!same) break;
      members.push_back(keyed[to].second);
    }
    OCTET_TRY(Value key, path.read(interpreter, members.front(), arguments.find(1, "default")));
    OCTET_TRY(Value list, interpreter.heap().list(std::move(members)));
    OCTET_TRY(Value group, interpreter.heap().sequence(Sequence::Flavour::kGroup, {std::move(key), std::move(list)}));
    groups.push_back(std::move(group));
  }
  return interpreter.heap().list(std::move(groups));
}

Result<Value> unique(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("unique", {"case_sensitive", "attribute"}));
  OCTET_TRY(const std::vector<Value> all, interpreter.iterate(subject));
  const Value* attribute = arguments.find(1, "attribute");
  const AttributePath path = AttributePath::parse(attribute != nullptr ? *attribute : Value());
  const bool case_sensitive = flag_or(arguments.find(0, "case_sensitive"), false);
  Dict seen;
  std::vector<Value> out;
  for (const Value& item : all) {
    OCTET_TRY(const Value value, path.read(interpreter, item));
    const Value key = sort_key(value, case_sensitive);
    if (!hashable(key)) return fail(ErrorCode::kInvalid, "unhashable type: '{}'", type_name(key));
    if (seen.find(key) != nullptr) continue;
    seen.set(key, Value());
    out.push_back(item);
  }
  return interpreter.heap().generator(std::move(out));
}

Result<Value> batch(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("batch", {"linecount", "fill_with"}));
  OCTET_TRY(const Integer wanted, integer_or(arguments.find(0, "linecount"), 0));
  OCTET_TRY(const std::vector<Value> all, interpreter.iterate(subject));
  const std::size_t size = std::max<std::size_t>(1, clamp_size(wanted));
  const Value* fill = arguments.find(1, "fill_with");
  std::vector<Value> batches;
  for (std::size_t from = 0; from < all.size(); from += size) {
    const std::size_t to = std::min(from + size, all.size());
    std::vector<Value> part(all.begin() + static_cast<std::ptrdiff_t>(from),
                            all.begin() + static_cast<std::ptrdiff_t>(to));
    if (fill != nullptr && !fill->is_none()) {
      OCTET_TRY_VOID(interpreter.budget().step(size));
      part.resize(size, *fill);
    }
    OCTET_TRY(Value list, interpreter.heap().list(std::move(part)));
    batches.push_back(std::move(list));
  }
  return interpreter.heap().generator(std::move(batches));
}

Result<Value> slice(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("slice", {"slices", "fill_with"}));
  OCTET_TRY(const Integer wanted, integer_or(arguments.find(0, "slices"), 0));
  if (wanted <= 0) return fail(ErrorCode::kInvalid, "slices must be positive");
  OCTET_TRY(const std::vector<Value> all, interpreter.iterate(subject));
  const std::size_t count = clamp_size(wanted), each = all.size() / count, longer = all.size() % count;
  OCTET_TRY_VOID(interpreter.budget().step(count));
  const Value* fill = arguments.find(1, "fill_with");
  std::vector<Value> slices;
  std::size_t from = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t to = from + each + (i < longer ? 1 : 0);
    std::vector<Value> part(all.begin() + static_cast<std::ptrdiff_t>(from),
                            all.begin() + static_cast<std::ptrdiff_t>(to));
    if (fill != nullptr && !fill->is_none() && longer > 0 && i >= longer) part.push_back(*fill);
    OCTET_TRY(Value list, interpreter.heap().list(std::move(part)));
    slices.push_back(std::move(list));
    from = to;
  }
  return interpreter.heap().generator(std::move(slices));
}

Result<Value> extreme(Interpreter& interpreter, const Value& subject, const Arguments& arguments, bool largest) {
  OCTET_TRY_VOID(arguments.check(largest ? "max" : "min", {"case_sensitive", "attribute"}));
  OCTET_TRY(std::vector<Value> all, interpreter.iterate(subject));
  if (all.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  OCTET_TRY(auto keyed, with_keys(interpreter, std::move(all), arguments.find(1, "attribute"),
                                  flag_or(arguments.find(0, "case_sensitive"), false)));
  std::size_t best = 0;
  for (std::size_t i = 1; i < keyed.size(); ++i) {
    Budget& budget = interpreter.budget();
    OCTET_TRY(const bool better, largest ? before(budget, keyed[best].first, keyed[i].first)
                                         : before(budget, keyed[i].first, keyed[best].first));
    if (better) best = i;
  }
  return std::move(keyed[best].second);
}
Result<Value> minimum(Interpreter& i, const Value& subject, const Arguments& a) {
  return extreme(i, subject, a, false);
}
Result<Value> maximum(Interpreter& i, const Value& subject, const Arguments& a) { return extreme(i, subject, a, true); }

Result<Value> sum(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("sum", {"attribute", "start"}));
  OCTET_TRY(const std::vector<Value> all, interpreter.iterate(subject));
  const Value *attribute = arguments.find(0, "attribute"), *start = arguments.find(1, "start");
  const AttributePath path = AttributePath::parse(attribute != nullptr ? *attribute : Value());
  Value total = start != nullptr ? *start : Value(0);
  if (total.is_string()) return fail(ErrorCode::kInvalid, "sum() can't sum strings");
  for (const Value& item : all) {
    OCTET_TRY(const Value value, path.read(interpreter, item));
    OCTET_TRY(total, apply(interpreter.budget(), interpreter.heap(), BinaryOperator::kAdd, total, value));
  }
  return total;
}

Result<Value> reverse(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("reverse", {}));
  if (subject.is_string()) {
    OCTET_TRY_VOID(interpreter.budget().text(subject.text().size()));
    SpanText out;
    for (std::size_t end = subject.text().size(); end > 0;) {
      const std::size_t begin = previous_code_point(subject.bytes(), end);
      out.append(subject.text(), begin, end);
      end = begin;
    }
    return interpreter.heap().string(std::move(out));
  }
  OCTET_TRY_VOID(defined(subject));
  OCTET_TRY(std::vector<Value> all, interpreter.iterate(subject));
  std::ranges::reverse(all);
  return interpreter.heap().generator(std::move(all));
}

constexpr std::array kFilters = std::to_array<Builtin>({
    {"batch", batch},
    {"count", length},
    {"dictsort", sort_dict},
    {"first", first},
    {"groupby", group_by},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length},
    {"list", to_list},
    {"max", maximum},
    {"min", minimum},
    {"reverse", reverse},
    {"slice", slice},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
});
static_assert(std::ranges::is_sorted(kFilters, {}, &Builtin::name));

}  // namespace

std::span<const Builtin> list_filters() { return kFilters; }

}  // namespace octet::text::jinja
