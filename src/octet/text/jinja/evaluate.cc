// Expressions.
#include <algorithm>

#include "octet/text/jinja/interpreter.h"
#include "octet/text/jinja/objects.h"
#include "octet/text/jinja/strings.h"

namespace octet::text::jinja {
namespace {

using Type = Expression::Type;

// object_type_repr: how a message about a missing attribute names its owner.
std::string owner_name(const Value& value) { return value.is_none() ? "None" : type_name(value) + " object"; }

std::string key_repr(Budget& budget, const Value& key) {
  SpanText text;
  return print_repr(budget, text, key) ? text.bytes() : "?";
}

Value missing_item(Budget& budget, const Value& subject, const Value& key) {
  if (key.is_string()) {
    return Value::undefined(fmt::format("'{}' has no attribute '{}'", owner_name(subject), key.bytes()));
  }
  return Value::undefined(fmt::format("{} has no element {}", owner_name(subject), key_repr(budget, key)));
}

// Where Python's slice(start, stop, step).indices(length) begins and ends.
struct SliceRange {
  Integer start = 0, stop = 0, step = 1;
};

Result<SliceRange> slice_range(std::size_t size, const Value& start, const Value& stop, const Value& step) {
  const auto length = static_cast<Integer>(size);
  for (const Value* part : {&start, &stop, &step}) {
    if (!part->is_none() && !part->is_integral()) {
      OCTET_TRY_VOID(defined(*part));
      return fail(ErrorCode::kInvalid, "slice indices must be integers or None or have an __index__ method");
    }
  }
  SliceRange range;
  range.step = step.is_none() ? 1 : step.integer();
  if (range.step == 0) return fail(ErrorCode::kInvalid, "slice step cannot be zero");
  const Integer low = range.step > 0 ? 0 : -1, high = range.step > 0 ? length : length - 1;
  const auto place = [&](const Value& value, Integer fallback) {
    if (value.is_none()) return fallback;
    const Integer at = value.integer() < 0 ? value.integer() + length : value.integer();
    return std::clamp(at, low, high);
  };
  range.start = place(start, range.step > 0 ? 0 : length - 1);
  range.stop = place(stop, range.step > 0 ? length : -1);
  return range;
}

}  // namespace

Result<Value> Interpreter::evaluate(const Expression& node) {
  OCTET_TRY_VOID(budget_.step());
  if (node.type == Type::kConstant) return node.constant;
  if (node.type == Type::kName) return evaluate_name(node);
  const DepthGuard guard(budget_);
  OCTET_TRY_VOID(guard.entered());
  return evaluate_compound(node);
}

Result<Value> Interpreter::evaluate_compound(const Expression& node) {
  switch (node.type) {
    case Type::kConstant:
    case Type::kName:
      break;
    case Type::kAttribute: {
      OCTET_TRY(const Value subject, evaluate(*node.children[0]));
      return attribute(subject, node.name);
    }
    case Type::kItem: {
      OCTET_TRY(const Value subject, evaluate(*node.children[0]));
      OCTET_TRY(const Value key, evaluate(*node.children[1]));
      return item(subject, key);
    }
    case Type::kSlice:
      return evaluate_slice(node);
    case Type::kCall:
      return evaluate_call(node);
    case Type::kFilter:
      return evaluate_filter(node);
    case Type::kTest:
      return evaluate_test(node);
    case Type::kNot: {
      OCTET_TRY(const Value value, evaluate(*node.children[0]));
      return Value(!truthy(value));
    }
    case Type::kNegate:
    case Type::kPlus: {
      OCTET_TRY(const Value value, evaluate(*node.children[0]));
      OCTET_TRY(const Value negative, negate(value));
      return node.type == Type::kNegate ? negative : negate(negative);
    }
    case Type::kBinary: {
      OCTET_TRY(const Value left, evaluate(*node.children[0]));
      OCTET_TRY(const Value right, evaluate(*node.children[1]));
      return apply(budget_, heap_, node.operation, left, right);
    }
    case Type::kAnd:
    case Type::kOr: {
      Value value;
      for (const Expression* child : node.children) {
        OCTET_TRY(value, evaluate(*child));
        if (truthy(value) != (node.type == Type::kAnd)) break;
      }
      return value;
    }
    case Type::kConcat:
      return evaluate_concat(node);
    case Type::kCompare:
      return evaluate_compare(node);
    case Type::kCondition: {
      OCTET_TRY(const Value test, evaluate(*node.children[0]));
      if (truthy(test)) return evaluate(*node.children[1]);
      if (node.children[2] != nullptr) return evaluate(*node.children[2]);
      return Value::undefined("the inline if-expression evaluated to false and no else section was defined.");
    }
    case Type::kList:
    case Type::kTuple:
    case Type::kDict:
      return evaluate_container(node);
  }
  return Value();
}

Result<Value> Interpreter::evaluate_name(const Expression& node) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    for (const auto& [id, value] : scope->values) {
      if (id == node.name_id) return value;
    }
  }
  if (const auto& global = globals_[node.name_id]) return *global;
  return Value::undefined(fmt::format("'{}' is undefined", program_.names[node.name_id]));
}

Result<Value> Interpreter::evaluate_slice(const Expression& node) {
  OCTET_TRY(const Value subject, evaluate(*node.children[0]));
  Value parts[3];
  for (int i = 0; i < 3; ++i) {
    if (node.children[static_cast<std::size_t>(i) + 1] == nullptr) continue;
    OCTET_TRY(parts[i], evaluate(*node.children[static_cast<std::size_t>(i) + 1]));
  }
  OCTET_TRY_VOID(defined(subject));
  if (subject.is_string()) {
    OCTET_TRY_VOID(budget_.text(subject.text().size()));
    const Characters characters(subject.text());
    OCTET_TRY(const SliceRange range, slice_range(characters.size(), parts[0], parts[1], parts[2]));
    SpanText out;
    if (range.step == 1) {
      if (range.start < range.stop) {
        out = characters.slice(static_cast<std::size_t>(range.start), static_cast<std::size_t>(range.stop));
      }
    } else {
      for (Integer i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step) {
        OCTET_TRY_VOID(budget_.step());
        const auto at = static_cast<std::size_t>(i);
        out.append(subject.text(), characters.offset(at), characters.offset(at + 1));
      }
    }
    return heap_.string(std::move(out));
  }
  if (!subject.is(Kind::kSequence) || !subject.sequence().is_indexable()) {
    return missing_item(budget_, subject, Value::literal("slice"));
  }
  const Sequence& from = subject.sequence();
  OCTET_TRY(const SliceRange range, slice_range(from.items.size(), parts[0], parts[1], parts[2]));
  std::vector<Value> items;
  for (Integer i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step) {
    items.push_back(from.items[static_cast<std::size_t>(i)]);
  }
  return heap_.sequence(from.flavour == Sequence::Flavour::kGroup ? Sequence::Flavour::kTuple : from.flavour,
                        std::move(items));
}

Result<Value> Interpreter::evaluate_call(const Expression& node, const Value* caller) {
  const Expression& callee = *node.children[0];
  if (callee.type == Type::kAttribute) {
    OCTET_TRY(const Value subject, evaluate(*callee.children[0]));
    if (const Builtin* method = find_method(subject, callee.name)) {
      OCTET_TRY(const Arguments arguments, evaluate_arguments(node.arguments));
      line_ = node.line;
      return method->call(*this, subject, arguments);
    }
    OCTET_TRY(const Value function, attribute(subject, callee.name));
    OCTET_TRY(Arguments arguments, evaluate_arguments(node.arguments));
    if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
    line_ = node.line;
    return call(function, arguments);
  }
  OCTET_TRY(const Value function, evaluate(callee));
  OCTET_TRY(Arguments arguments, evaluate_arguments(node.arguments));
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  line_ = node.line;
  return call(function, arguments);
}

Result<Value> Interpreter::call(const Value& callee, const Arguments& arguments) {
  OCTET_TRY_VOID(defined(callee));
  if (!callee.is(Kind::kObject)) return fail(ErrorCode::kInvalid, "'{}' object is not callable", type_name(callee));
  return callee.object().call(*this, arguments);
}

Result<Value> Interpreter::evaluate_filter(const Expression& node, const Value* head) {
  Value subject;
  if (node.children[0] == nullptr) {
    subject = head != nullptr ? *head : Value();
  } else if (node.children[0]->type == Type::kFilter) {
    const DepthGuard guard(budget_);
    OCTET_TRY_VOID(guard.entered());
    OCTET_TRY(subject, evaluate_filter(*node.children[0], head));
  } else {
    OCTET_TRY(subject, evaluate(*node.children[0]));
  }
  if (node.builtin == nullptr) return fail(ErrorCode::kInvalid, "No filter named '{}'.", node.name);
  OCTET_TRY(const Arguments arguments, evaluate_arguments(node.arguments));
  line_ = node.line;
  return node.builtin->call(*this, subject, arguments);
}

Result<Value> Interpreter::evaluate_test(const Expression& node) {
  OCTET_TRY(const Value subject, evaluate(*node.children[0]));
  if (node.builtin == nullptr) return fail(ErrorCode::kInvalid, "No test named '{}'.", node.name);
  OCTET_TRY(const Arguments arguments, evaluate_arguments(node.arguments));
  return node.builtin->call(*this, subject, arguments);
}

Result<Value> Interpreter::evaluate_concat(const Expression& node) {
  SpanText out;
  for (const Expression* child : node.children) {
    OCTET_TRY(const Value value, evaluate(*child));
    OCTET_TRY_VOID(print(budget_, out, value));
  }
  return heap_.string(std::move(out));
}

Result<Value> Interpreter::evaluate_compare(const Expression& node) {
  OCTET_TRY(Value left, evaluate(*node.children[0]));
  for (std::size_t i = 0; i < node.comparisons.size(); ++i) {
    OCTET_TRY(Value right, evaluate(*node.children[i + 1]));
    OCTET_TRY(const bool holds, compare(budget_, node.comparisons[i], left, right));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Result<Value> Interpreter::evaluate_container(const Expression& node) {
  if (node.type == Type::kDict) {
    OCTET_TRY(Dict* const dict, heap_.dict(node.children.size() / 2));
    for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
      OCTET_TRY(Value key, evaluate(*node.children[i]));
      OCTET_TRY(Value value, evaluate(*node.children[i + 1]));
      if (!hashable(key)) return fail(ErrorCode::kInvalid, "unhashable type: '{}'", type_name(key));
      dict->set(std::move(key), std::move(value));
    }
    return Value(dict);
  }
  std::vector<Value> items;
  items.reserve(node.children.size());
  for (const Expression* child : node.children) {
    OCTET_TRY(Value value, evaluate(*child));
    items.push_back(std::move(value));
  }
  return node.type == Type::kList ? heap_.list(std::move(items)) : heap_.tuple(std::move(items));
}

Result<Arguments> Interpreter::evaluate_arguments(const CallArguments& arguments) {
  Arguments out;
  out.positional.reserve(arguments.positional.size());
  for (const Expression* argument : arguments.positional) {
    OCTET_TRY(Value value, evaluate(*argument));
    out.positional.push_back(std::move(value));
  }
  if (arguments.star != nullptr) {
    OCTET_TRY(const Value value, evaluate(*arguments.star));
    OCTET_TRY(const std::vector<Value> items, iterate(value));
    out.positional.insert(out.positional.end(), items.begin(), items.end());
  }
  for (const auto& [name, argument] : arguments.named) {
    OCTET_TRY(Value value, evaluate(*argument));
    out.named.emplace_back(name, std::move(value));
  }
  if (arguments.star_star != nullptr) {
    OCTET_TRY(const Value value, evaluate(*arguments.star_star));
    if (!value.is(Kind::kDict)) return fail(ErrorCode::kInvalid, "argument after ** must be a mapping");
    for (const auto& [key, item] : value.dict().entries) {
      if (!key.is_string()) return fail(ErrorCode::kInvalid, "keywords must be strings");
      out.named.emplace_back(key.bytes(), item);
    }
  }
  return out;
}

Result<Value> Interpreter::attribute(const Value& subject, std::string_view name) {
  OCTET_TRY_VOID(defined(subject));
  if (subject.is(Kind::kObject)) return subject.object().attribute(*this, name);
  if (const Builtin* method = find_method(subject, name)) {
    OCTET_TRY(Object* const bound, heap_.object<BoundMethod>(subject, *method));
    return Value(bound);
  }
  if (is_unsafe_attribute(subject, name)) {
    return Value::undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(subject)));
  }
  if (subject.is(Kind::kDict)) {
    if (const Value* found = subject.dict().find(name)) return *found;
  }
  if (subject.is(Kind::kSequence) && subject.sequence().flavour == Sequence::Flavour::kGroup) {
    if (name == "grouper") return subject.sequence().items[0];
    if (name == "list") return subject.sequence().items[1];
  }
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", owner_name(subject), name));
}

Result<Value> Interpreter::item(const Value& subject, const Value& key) {
  OCTET_TRY_VOID(defined(subject));
  if (subject.is(Kind::kDict)) {
    if (const Value* found = subject.dict().find(key)) return *found;
  } else if (key.is_integral() &&
             (subject.is_string() || (subject.is(Kind::kSequence) && subject.sequence().is_indexable()))) {
    if (subject.is_string()) {
      OCTET_TRY_VOID(budget_.text(subject.text().size()));
      const Characters characters(subject.text());
      const Integer at = key.integer() < 0 ? key.integer() + static_cast<Integer>(characters.size()) : key.integer();
      if (at >= 0 && at < static_cast<Integer>(characters.size())) {
        return heap_.string(characters.slice(static_cast<std::size_t>(at), static_cast<std::size_t>(at) + 1));
      }
    } else {
      const auto& items = subject.sequence().items;
      const Integer at = key.integer() < 0 ? key.integer() + static_cast<Integer>(items.size()) : key.integer();
      if (at >= 0 && at < static_cast<Integer>(items.size())) return items[static_cast<std::size_t>(at)];
    }
  }
  if (key.is_string()) return attribute(subject, key.bytes());
  return missing_item(budget_, subject, key);
}

Result<std::vector<Value>> Interpreter::iterate(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return std::vector<Value>{};
    case Kind::kSequence: {
      Sequence& sequence = value.sequence();
      OCTET_TRY_VOID(budget_.step(sequence.items.size()));
      if (!sequence.is_generator()) return sequence.items;
      const std::size_t from = std::exchange(sequence.taken, sequence.items.size());
      return std::vector<Value>(sequence.items.begin() + static_cast<std::ptrdiff_t>(from), sequence.items.end());
    }
    case Kind::kDict: {
      std::vector<Value> keys;
      OCTET_TRY_VOID(budget_.step(value.dict().entries.size()));
      for (const auto& entry : value.dict().entries) keys.push_back(entry.first);
      return keys;
    }
    case Kind::kString: {
      const Characters characters(value.text());
      OCTET_TRY_VOID(budget_.step(characters.size()));
      std::vector<Value> out;
      for (std::size_t i = 0; i < characters.size(); ++i) {
        OCTET_TRY(Value character, heap_.string(characters.slice(i, i + 1)));
        out.push_back(std::move(character));
      }
      return out;
    }
    default:
      return fail(ErrorCode::kInvalid, "'{}' object is not iterable", type_name(value));
  }
}

}  // namespace octet::text::jinja
