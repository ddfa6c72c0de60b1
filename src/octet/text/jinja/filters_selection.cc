// map, select, reject and their attribute forms.
#include <algorithm>
#include <array>

#include "octet/text/jinja/arguments.h"
#include "octet/text/jinja/attribute_path.h"
#include "octet/text/jinja/filters.h"

namespace octet::text::jinja {
namespace {

// The arguments from `from` on: those of the filter or test that is named before.
Arguments rest_of(const Arguments& arguments, std::size_t from) {
  Arguments rest;
  if (arguments.positional.size() > from) {
    rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(from),
                           arguments.positional.end());
  }
  rest.named = arguments.named;
  return rest;
}

Result<Value> map_attribute(Interpreter& interpreter, std::vector<Value> items, const Arguments& arguments) {
  const Value *attribute = nullptr, *fallback = nullptr;
  for (const auto& [name, value] : arguments.named) {
    if (name == "attribute") {
      attribute = &value;
    } else if (name == "default") {
      fallback = &value;
    } else {
      return fail(ErrorCode::kInvalid, "Unexpected keyword argument '{}'", name);
    }
  }
  if (attribute == nullptr) return fail(ErrorCode::kInvalid, "map requires a filter argument");
  const AttributePath path = AttributePath::parse(*attribute);
  for (Value& item : items) {
    OCTET_TRY(item, path.read(interpreter, item, fallback));
  }
  return interpreter.heap().generator(std::move(items));
}

Result<Value> map(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  // Nothing to loop over, none included, is no error here.
  if (!truthy(subject)) return interpreter.heap().generator({});
  OCTET_TRY(std::vector<Value> items, interpreter.iterate(subject));
  if (arguments.positional.empty()) return map_attribute(interpreter, std::move(items), arguments);
  const Value& name = arguments.positional[0];
  const Builtin* filter = name.is_string() ? find_filter(name.bytes()) : nullptr;
  if (filter == nullptr) {
    return fail(ErrorCode::kInvalid, "No filter named '{}'.", name.is_string() ? name.bytes() : type_name(name));
  }
  const Arguments rest = rest_of(arguments, 1);
  const DepthGuard guard(interpreter.budget());
  OCTET_TRY_VOID(guard.entered());
  for (Value& item : items) {
    OCTET_TRY_VOID(interpreter.budget().step());
    OCTET_TRY(item, filter->call(interpreter, item, rest));
  }
  return interpreter.heap().generator(std::move(items));
}

Result<Value> choose(Interpreter& interpreter, const Value& subject, const Arguments& arguments, bool by_attribute,
                     bool keep) {
  if (!truthy(subject)) return interpreter.heap().generator({});
  OCTET_TRY(std::vector<Value> items, interpreter.iterate(subject));
  const std::size_t skip = by_attribute ? 1 : 0;
  if (arguments.positional.size() < skip) return fail(ErrorCode::kInvalid, "Missing parameter for attribute name");
  const AttributePath path = AttributePath::parse(by_attribute ? arguments.positional[0] : Value());
  const Builtin* test = nullptr;
  if (arguments.positional.size() > skip) {
    const Value& name = arguments.positional[skip];
    test = name.is_string() ? find_test(name.bytes()) : nullptr;
    if (test == nullptr) {
      return fail(ErrorCode::kInvalid, "No test named '{}'.", name.is_string() ? name.bytes() : type_name(name));
    }
  }
  const Arguments rest = rest_of(arguments, skip + 1);
  std::vector<Value> chosen;
  for (Value& item : items) {
    OCTET_TRY_VOID(interpreter.budget().step());
    OCTET_TRY(Value value, path.read(interpreter, item));
    if (test != nullptr) {
      OCTET_TRY(value, test->call(interpreter, value, rest));
    }
    if (truthy(value) == keep) chosen.push_back(std::move(item));
  }
  return interpreter.heap().generator(std::move(chosen));
}

Result<Value> select(Interpreter& i, const Value& subject, const Arguments& a) {
  return choose(i, subject, a, false, true);
}
Result<Value> reject(Interpreter& i, const Value& subject, const Arguments& a) {
  return choose(i, subject, a, false, false);
}
Result<Value> select_attribute(Interpreter& i, const Value& subject, const Arguments& a) {
  return choose(i, subject, a, true, true);
}
Result<Value> reject_attribute(Interpreter& i, const Value& subject, const Arguments& a) {
  return choose(i, subject, a, true, false);
}

constexpr std::array kFilters = std::to_array<Builtin>({
    {"map", map},
    {"reject", reject},
    {"rejectattr", reject_attribute},
    {"select", select},
    {"selectattr", select_attribute},
});
static_assert(std::ranges::is_sorted(kFilters, {}, &Builtin::name));

}  // namespace

std::span<const Builtin> selection_filters() { return kFilters; }

}  // namespace octet::text::jinja
