// Functions and classes that every template can name.
#include <fmt/format.h>

#include <array>
#include <ctime>

#include "octet/text/jinja/arguments.h"
#include "octet/text/jinja/builtins.h"

namespace octet::text::jinja {
namespace {

constexpr Integer kMaxRange = 100'000;

class Function final : public Object {
 public:
  using Body = Result<Value> (*)(Interpreter&, const Arguments&);
  explicit Function(Body body) : body_(body) {}
  std::string type_name() const override { return "function"; }
  bool is_callable() const override { return true; }
  Result<Value> call(Interpreter& interpreter, const Arguments& arguments) override {
    return body_(interpreter, arguments);
  }

 private:
  Body body_;
};

Result<Value> unsafe_or_missing(const Object& object, std::string_view name) {
  return Value::undefined(fmt::format("'{} object' has no attribute '{}'", object.type_name(), name));
}

class Namespace final : public Object {
 public:
  std::string type_name() const override { return "Namespace"; }
  Result<Value> attribute(Interpreter&, std::string_view name) override {
    for (const auto& [key, value] : values_) {
      if (key == name) return value;
    }
    return unsafe_or_missing(*this, name);
  }
  Result<> set_attribute(Interpreter& interpreter, const std::string& name, Value value) override {
    if (name.starts_with('_')) {
      return fail(ErrorCode::kInvalid,
                  "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '{}'. Please "
                  "rename the attribute.",
                  name);
    }
    for (auto& [key, old] : values_) {
      if (key != name) continue;
      old = std::move(value);
      return {};
    }
    OCTET_TRY_VOID(interpreter.budget().allocate(sizeof(std::pair<std::string, Value>) + name.size()));
    values_.emplace_back(name, std::move(value));
    return {};
  }

 private:
  std::vector<std::pair<std::string, Value>> values_;
};

class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string type_name() const override { return "Joiner"; }
  bool is_callable() const override { return true; }
  Result<Value> call(Interpreter&, const Arguments&) override {
    return std::exchange(used_, true) ? separator_ : Value::literal("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

class Cycler final : public Object {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}
  std::string type_name() const override { return "Cycler"; }
  Result<Value> attribute(Interpreter& interpreter, std::string_view name) override;
  Value next() {
    const Value value = items_[at_];
    at_ = (at_ + 1) % items_.size();
    return value;
  }
  void reset() { at_ = 0; }

 private:
  std::vector<Value> items_;
  std::size_t at_ = 0;
};

class CyclerMethod final : public Object {
 public:
  CyclerMethod(Cycler& cycler, bool resets) : cycler_(cycler), resets_(resets) {}
  std::string type_name() const override { return "method"; }
  bool is_callable() const override { return true; }
  Result<Value> call(Interpreter&, const Arguments&) override {
    if (!resets_) return cycler_.next();
    cycler_.reset();
    return Value();
  }

 private:
  Cycler& cycler_;
  bool resets_;
};

Result<Value> Cycler::attribute(Interpreter& interpreter, std::string_view name) {
  if (name == "current") return items_[at_];
  if (name != "next" && name != "reset") return unsafe_or_missing(*this, name);
  OCTET_TRY(Object* const method, interpreter.heap().object<CyclerMethod>(*this, name == "reset"));
  return Value(method);
}

Result<Value> make_range(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.empty() || arguments.positional.size() > 3 || !arguments.named.empty()) {
    return fail(ErrorCode::kInvalid, "range expected 1 to 3 arguments, got {}", arguments.positional.size());
  }
  Integer bounds[3] = {0, 0, 1};
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    OCTET_TRY(bounds[i], integer_or(&arguments.positional[i], 0));
  }
  if (arguments.positional.size() == 1) std::swap(bounds[0], bounds[1]);
  const auto [start, stop, step] = bounds;
  if (step == 0) return fail(ErrorCode::kInvalid, "range() arg 3 must not be zero");
  for (const Integer bound : bounds) {
    if (bound > (Integer{1} << 62) || bound < -(Integer{1} << 62)) {
      return fail(ErrorCode::kExhausted, "range bounds are too large");
    }
  }
  const Integer count = step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
  if (count > kMaxRange) {
    return fail(ErrorCode::kExhausted, "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).",
                integer_repr(kMaxRange));
  }
  std::vector<Value> items;
  for (Integer i = 0; i < count; ++i) items.emplace_back(start + i * step);
  return interpreter.heap().sequence(Sequence::Flavour::kRange, std::move(items));
}

// dict(pairs or a dict, name=value...) into entries.
Result<std::vector<Dict::Entry>> collect_entries(Interpreter& interpreter, const Arguments& arguments) {
  std::vector<Dict::Entry> entries;
  if (arguments.positional.size() > 1) {
    return fail(ErrorCode::kInvalid, "dict expected at most 1 argument, got {}", arguments.positional.size());
  }
  if (!arguments.positional.empty() && arguments.positional[0].is(Kind::kDict)) {
    entries = arguments.positional[0].dict().entries;
  } else if (!arguments.positional.empty()) {
    OCTET_TRY_VOID(defined(arguments.positional[0]));
    OCTET_TRY(const std::vector<Value> pairs, interpreter.iterate(arguments.positional[0]));
    for (const Value& pair : pairs) {
      OCTET_TRY(std::vector<Value> two, interpreter.iterate(pair));
      if (two.size() != 2 || !hashable(two[0])) {
        return fail(ErrorCode::kInvalid, "dictionary update sequence element has length {}; 2 is required", two.size());
      }
      entries.emplace_back(std::move(two[0]), std::move(two[1]));
    }
  }
  for (const auto& [name, value] : arguments.named) entries.emplace_back(Value::literal(name), value);
  return entries;
}

Result<Value> make_dict(Interpreter& interpreter, const Arguments& arguments) {
  OCTET_TRY(auto entries, collect_entries(interpreter, arguments));
  OCTET_TRY(Dict* const dict, interpreter.heap().dict(entries.size()));
  for (auto& [key, value] : entries) dict->set(std::move(key), std::move(value));
  return Value(dict);
}

Result<Value> make_namespace(Interpreter& interpreter, const Arguments& arguments) {
  OCTET_TRY(auto entries, collect_entries(interpreter, arguments));
  OCTET_TRY(Object* const made, interpreter.heap().object<Namespace>());
  for (auto& [key, value] : entries) {
    if (!key.is_string()) continue;
    OCTET_TRY_VOID(made->set_attribute(interpreter, key.bytes(), std::move(value)));
  }
  return Value(made);
}

Result<Value> make_joiner(Interpreter& interpreter, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("joiner", {"sep"}));
  const Value* separator = arguments.find(0, "sep");
  OCTET_TRY(Object* const made,
            interpreter.heap().object<Joiner>(separator != nullptr ? *separator : Value::literal(", ")));
  return Value(made);
}

Result<Value> make_cycler(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.empty()) return fail(ErrorCode::kInvalid, "at least one item has to be provided");
  OCTET_TRY(Object* const made, interpreter.heap().object<Cycler>(arguments.positional));
  return Value(made);
}

Result<Value> raise_exception(Interpreter& interpreter, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("raise_exception", {"message"}));
  const Value* message = arguments.find(0, "message");
  if (message == nullptr) return fail(ErrorCode::kInvalid, "raise_exception() needs a message");
  OCTET_TRY(const SpanText text, to_text(interpreter, *message));
  return fail(ErrorCode::kInvalid, "{}", text.bytes());
}

Result<Value> strftime_now(Interpreter& interpreter, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("strftime_now", {"format"}));
  const Value* format = arguments.find(0, "format");
  if (format == nullptr || !format->is_string()) {
    return fail(ErrorCode::kInvalid, "strftime_now() argument must be str");
  }
  const auto seconds = static_cast<std::time_t>(interpreter.now());
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  OCTET_TRY_VOID(interpreter.budget().text(format->text().size() * 8));
  SpanText out;
  const std::string& bytes = format->bytes();
  for (std::size_t at = 0; at < bytes.size();) {
    if (bytes[at] != '%' || at + 1 >= bytes.size()) {
      out.append(format->text(), at, at + 1);
      ++at;
      continue;
    }
    const std::size_t length = std::string_view("-_0^#").find(bytes[at + 1]) != std::string_view::npos ? 3 : 2;
    const std::string directive = bytes.substr(at, length);
    char buffer[64];
    const std::size_t written = std::strftime(buffer, sizeof buffer, directive.c_str(), &parts);
    out.append(std::string_view(buffer, written), format->text().is_data(at));
    at += directive.size();
  }
  return interpreter.heap().string(std::move(out));
}

constexpr std::array<std::pair<std::string_view, Function::Body>, 7> kFunctions{{
    {"range", make_range},
    {"dict", make_dict},
    {"namespace", make_namespace},
    {"joiner", make_joiner},
    {"cycler", make_cycler},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
}};

}  // namespace

Result<std::optional<Value>> find_global(Interpreter& interpreter, std::string_view name) {
  for (const auto& [key, body] : kFunctions) {
    if (key != name) continue;
    OCTET_TRY(Object* const function, interpreter.heap().object<Function>(body));
    return Value(function);
  }
  return std::nullopt;
}

}  // namespace octet::text::jinja
