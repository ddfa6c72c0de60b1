// Objects that the interpreter itself makes: macros, loops, bound methods.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "octet/text/jinja/ast.h"
#include "octet/text/jinja/interpreter.h"
#include "octet/text/jinja/value.h"

namespace octet::text::jinja {

class Macro final : public Object {
 public:
  Macro(const Statement& definition, Scope* closure) : definition_(definition), closure_(closure) {}
  std::string type_name() const override { return "Macro"; }
  bool is_callable() const override { return true; }
  Result<Value> call(Interpreter& interpreter, const Arguments& arguments) override {
    return interpreter.call_macro(definition_, closure_, arguments);
  }
  Result<Value> attribute(Interpreter& interpreter, std::string_view name) override;

 private:
  const Statement& definition_;
  Scope* closure_;
};

// The variable `loop`.
class Loop final : public Object {
 public:
  Loop(const Statement& statement, Scope* outer, std::vector<Value> items, int depth)
      : statement_(statement), outer_(outer), items_(std::move(items)), depth_(depth) {}
  std::string type_name() const override { return "LoopContext"; }
  bool is_callable() const override { return statement_.recursive; }
  Result<Value> call(Interpreter& interpreter, const Arguments& arguments) override;
  Result<Value> attribute(Interpreter& interpreter, std::string_view name) override;

  const std::vector<Value>& items() const { return items_; }
  void go_to(std::size_t index) { index_ = index; }

 private:
  friend class LoopMethod;
  Result<Value> cycle(const Arguments& arguments) const;
  Result<Value> changed(Interpreter& interpreter, const Arguments& arguments);

  const Statement& statement_;
  Scope* outer_;
  std::vector<Value> items_;
  int depth_ = 0;
  std::size_t index_ = 0;
  std::vector<Value> last_changed_;
  bool changed_before_ = false;
};

// subject.name, not called yet.
class BoundMethod final : public Object {
 public:
  BoundMethod(Value subject, const Builtin& method) : subject_(std::move(subject)), method_(method) {}
  std::string type_name() const override { return "builtin_function_or_method"; }
  bool is_callable() const override { return true; }
  Result<Value> call(Interpreter& interpreter, const Arguments& arguments) override {
    return method_.call(interpreter, subject_, arguments);
  }

 private:
  Value subject_;
  const Builtin& method_;
};

}  // namespace octet::text::jinja
