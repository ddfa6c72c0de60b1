// The values a template computes with: those of Python that templates can reach, and nothing of the host.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "octet/base/error.h"
#include "octet/text/jinja/span_text.h"

namespace octet::text::jinja {

class Interpreter;
class Object;
class Value;
struct Dict;
struct Sequence;

using Integer = __int128;  // overflow is an error, so that no template can grow a number without end
using String = std::shared_ptr<const SpanText>;

struct None {};
// What a missing name or attribute gives: prints as nothing; most uses fail with the reason.
struct Undefined {
  std::shared_ptr<const std::string> why;
};

enum class Kind { kUndefined, kNone, kBool, kInt, kFloat, kString, kSequence, kDict, kObject };

// Sequences, dicts and objects belong to the Heap of one rendering; a Value only points there.
class Value {
 public:
  Value() : data_(None{}) {}
  Value(bool value) : data_(value) {}
  Value(Integer value) : data_(value) {}
  Value(int value) : data_(static_cast<Integer>(value)) {}
  Value(std::int64_t value) : data_(static_cast<Integer>(value)) {}
  Value(std::size_t value) : data_(static_cast<Integer>(value)) {}
  Value(double value) : data_(value) {}
  Value(String value) : data_(std::move(value)) {}
  Value(Sequence* value) : data_(value) {}
  Value(Dict* value) : data_(value) {}
  Value(Object* value) : data_(value) {}
  static Value undefined(std::string why) {
    Value value;
    value.data_ = Undefined{std::make_shared<const std::string>(std::move(why))};
    return value;
  }
  // A string written by the template or the engine.
  static Value literal(std::string_view text) { return Value(std::make_shared<const SpanText>(std::string(text))); }

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_undefined() const { return is(Kind::kUndefined); }
  bool is_none() const { return is(Kind::kNone); }
  bool is_string() const { return is(Kind::kString); }
  bool is_number() const { return is(Kind::kInt) || is(Kind::kFloat) || is(Kind::kBool); }
  bool is_integral() const { return is(Kind::kInt) || is(Kind::kBool); }

  const std::string& why() const { return *std::get<Undefined>(data_).why; }
  bool boolean() const { return std::get<bool>(data_); }
  Integer integer() const { return is(Kind::kBool) ? Integer{boolean()} : std::get<Integer>(data_); }
  double real() const { return is(Kind::kFloat) ? std::get<double>(data_) : static_cast<double>(integer()); }
  const SpanText& text() const { return *std::get<String>(data_); }
  const std::string& bytes() const { return text().bytes(); }
  Sequence& sequence() const { return *std::get<Sequence*>(data_); }
  Dict& dict() const { return *std::get<Dict*>(data_); }
  Object& object() const { return *std::get<Object*>(data_); }

 private:
  std::variant<Undefined, None, bool, Integer, double, String, Sequence*, Dict*, Object*> data_;
};

struct Sequence {
  enum class Flavour { kList, kTuple, kGroup, kRange, kKeys, kValues, kItems, kGenerator };
  Flavour flavour = Flavour::kList;
  std::vector<Value> items;
  std::size_t taken = 0;  // a generator gives each item once

  bool is_tuple() const { return flavour == Flavour::kTuple || flavour == Flavour::kGroup; }
  // Has a length and can be indexed, in Python's eyes.
  bool is_indexable() const { return flavour == Flavour::kList || flavour == Flavour::kRange || is_tuple(); }
  bool is_generator() const { return flavour == Flavour::kGenerator; }
};

// Keeps the order of insertion. Keys are hashable values (see hashable()).
struct Dict {
  using Entry = std::pair<Value, Value>;
  std::vector<Entry> entries;

  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);

 private:
  std::size_t position(const Value& key, std::size_t hash) const;
  std::unordered_multimap<std::size_t, std::size_t> index_;  // only once there are many entries
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  // The argument at place `at` or called `name`, or nullptr.
  const Value* find(std::size_t at, std::string_view name) const;
  // Error where there are more arguments than names, or one with another name. `callee` stands in the message.
  Result<> check(std::string_view callee, std::initializer_list<std::string_view> names) const;
};

// What is neither a plain value nor a container: functions, macros, loops, namespaces.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  virtual bool is_callable() const { return false; }
  virtual Result<Value> call(Interpreter& interpreter, const Arguments& arguments);
  // An attribute, or undefined.
  virtual Result<Value> attribute(Interpreter& interpreter, std::string_view name);
  // Error unless it is a namespace.
  virtual Result<> set_attribute(Interpreter& interpreter, const std::string& name, Value value);
};

// Python's name of a value's type.
std::string type_name(const Value& value);
bool hashable(const Value& value);
std::size_t hash_of(const Value& value);

}  // namespace octet::text::jinja
