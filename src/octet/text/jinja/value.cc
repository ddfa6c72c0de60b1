#include "octet/text/jinja/value.h"

#include <functional>
#include <limits>

#include "octet/text/jinja/operators.h"

namespace octet::text::jinja {
namespace {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kIndexFrom = 9;  // a search through fewer entries is as fast

bool same_key(const Value& a, const Value& b) { return equal(a, b).value_or(false); }

std::size_t hash_bytes(std::string_view bytes) { return std::hash<std::string_view>{}(bytes); }

}  // namespace

std::size_t hash_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return std::hash<double>{}(value.real());  // equal numbers of different types are one key
    case Kind::kString:
      return hash_bytes(value.bytes());
    case Kind::kSequence: {
      std::size_t hash = 1;
      for (const Value& item : value.sequence().items) hash = hash * 31 + hash_of(item);
      return hash;
    }
    default:
      return 0;
  }
}

bool hashable(const Value& value) {
  if (value.is(Kind::kDict)) return false;
  if (!value.is(Kind::kSequence)) return true;
  if (!value.sequence().is_tuple()) return false;
  for (const Value& item : value.sequence().items) {
    // One level of tuples in tuples is all that templates use; more would recurse without a bound.
    if (item.is(Kind::kSequence) || item.is(Kind::kDict)) return false;
  }
  return true;
}

std::size_t Dict::position(const Value& key, std::size_t hash) const {
  if (entries.size() < kIndexFrom) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (same_key(entries[i].first, key)) return i;
    }
    return kNowhere;
  }
  const auto [from, to] = index_.equal_range(hash);
  for (auto it = from; it != to; ++it) {
    if (same_key(entries[it->second].first, key)) return it->second;
  }
  return kNowhere;
}

const Value* Dict::find(const Value& key) const {
  if (!hashable(key)) return nullptr;
  const std::size_t at = position(key, entries.size() < kIndexFrom ? 0 : hash_of(key));
  return at == kNowhere ? nullptr : &entries[at].second;
}

const Value* Dict::find(std::string_view key) const {
  const auto matches = [&](const Entry& entry) { return entry.first.is_string() && entry.first.bytes() == key; };
  if (entries.size() < kIndexFrom) {
    for (const Entry& entry : entries) {
      if (matches(entry)) return &entry.second;
    }
    return nullptr;
  }
  const auto [from, to] = index_.equal_range(hash_bytes(key));
  for (auto it = from; it != to; ++it) {
    if (matches(entries[it->second])) return &entries[it->second].second;
  }
  return nullptr;
}

void Dict::set(Value key, Value value) {
  const std::size_t hash = hash_of(key);
  const std::size_t at = position(key, hash);
  if (at != kNowhere) {
    entries[at].second = std::move(value);
    return;
  }
  entries.emplace_back(std::move(key), std::move(value));
  if (entries.size() == kIndexFrom) {
    for (std::size_t i = 0; i < entries.size(); ++i) index_.emplace(hash_of(entries[i].first), i);
  } else if (entries.size() > kIndexFrom) {
    index_.emplace(hash, entries.size() - 1);
  }
}

const Value* Arguments::find(std::size_t at, std::string_view name) const {
  if (at < positional.size()) return &positional[at];
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

Result<> Arguments::check(std::string_view callee, std::initializer_list<std::string_view> names) const {
  if (positional.size() > names.size()) {
    return fail(ErrorCode::kInvalid, "{}() takes at most {} arguments ({} given)", callee, names.size(),
                positional.size());
  }
  for (const auto& [key, value] : named) {
    std::size_t at = 0;
    for (std::string_view name : names) {
      if (name == key) break;
      ++at;
    }
    if (at == names.size()) {
      return fail(ErrorCode::kInvalid, "{}() got an unexpected keyword argument '{}'", callee, key);
    }
    if (at < positional.size()) {
      return fail(ErrorCode::kInvalid, "{}() got multiple values for argument '{}'", callee, key);
    }
  }
  return {};
}

Result<Value> Object::call(Interpreter&, const Arguments&) {
  return fail(ErrorCode::kInvalid, "'{}' object is not callable", type_name());
}

Result<Value> Object::attribute(Interpreter&, std::string_view name) {
  return Value::undefined(fmt::format("'{} object' has no attribute '{}'", type_name(), name));
}

Result<> Object::set_attribute(Interpreter&, const std::string&, Value) {
  return fail(ErrorCode::kInvalid, "cannot assign attribute on non-namespace object");
}

std::string type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kDict:
      return "dict";
    case Kind::kObject:
      return value.object().type_name();
    case Kind::kSequence:
      break;
  }
  switch (value.sequence().flavour) {
    case Sequence::Flavour::kList:
      return "list";
    case Sequence::Flavour::kTuple:
    case Sequence::Flavour::kGroup:
      return "tuple";
    case Sequence::Flavour::kRange:
      return "range";
    case Sequence::Flavour::kKeys:
      return "dict_keys";
    case Sequence::Flavour::kValues:
      return "dict_values";
    case Sequence::Flavour::kItems:
      return "dict_items";
    case Sequence::Flavour::kGenerator:
      break;
  }
  return "generator";
}

}  // namespace octet::text::jinja
