#include "octet/text/jinja/objects.h"

#include <fmt/format.h>

#include "octet/text/jinja/operators.h"

namespace octet::text::jinja {

// loop.cycle and loop.changed.
class LoopMethod final : public Object {
 public:
  LoopMethod(Loop& loop, bool cycles) : loop_(loop), cycles_(cycles) {}
  std::string type_name() const override { return "method"; }
  bool is_callable() const override { return true; }
  Result<Value> call(Interpreter& interpreter, const Arguments& arguments) override {
    return cycles_ ? loop_.cycle(arguments) : loop_.changed(interpreter, arguments);
  }

 private:
  Loop& loop_;
  bool cycles_;
};

Result<Value> Macro::attribute(Interpreter& interpreter, std::string_view name) {
  if (name == "name") return Value::literal(definition_.name);
  return Object::attribute(interpreter, name);
}

Result<Value> Loop::call(Interpreter& interpreter, const Arguments& arguments) {
  if (!statement_.recursive) {
    return fail(ErrorCode::kInvalid, "The loop must have the 'recursive' marker to be called recursively.");
  }
  OCTET_TRY_VOID(arguments.check("loop", {"iterable"}));
  const Value* items = arguments.find(0, "iterable");
  if (items == nullptr) return fail(ErrorCode::kInvalid, "loop() needs what to loop over");
  return interpreter.run_loop_again(statement_, outer_, *items, depth_ + 1);
}

Result<Value> Loop::attribute(Interpreter& interpreter, std::string_view name) {
  if (name == "index") return Value(index_ + 1);
  if (name == "index0") return Value(index_);
  if (name == "revindex") return Value(items_.size() - index_);
  if (name == "revindex0") return Value(items_.size() - index_ - 1);
  if (name == "first") return Value(index_ == 0);
  if (name == "last") return Value(index_ + 1 == items_.size());
  if (name == "length") return Value(items_.size());
  if (name == "depth") return Value(depth_ + 1);
  if (name == "depth0") return Value(depth_);
  if (name == "previtem") return index_ > 0 ? items_[index_ - 1] : Value::undefined("there is no previous item");
  if (name == "nextitem") {
    return index_ + 1 < items_.size() ? items_[index_ + 1] : Value::undefined("there is no next item");
  }
  if (name == "cycle" || name == "changed") {
    OCTET_TRY(Object* const method, interpreter.heap().object<LoopMethod>(*this, name == "cycle"));
    return Value(method);
  }
  return Object::attribute(interpreter, name);
}

Result<Value> Loop::cycle(const Arguments& arguments) const {
  if (arguments.positional.empty()) return fail(ErrorCode::kInvalid, "no items for cycling given");
  return arguments.positional[index_ % arguments.positional.size()];
}

Result<Value> Loop::changed(Interpreter& interpreter, const Arguments& arguments) {
  bool same = changed_before_ && last_changed_.size() == arguments.positional.size();
  for (std::size_t i = 0; same && i < last_changed_.size(); ++i) {
    OCTET_TRY(same, equal(interpreter.budget(), last_changed_[i], arguments.positional[i]));
  }
  changed_before_ = true;
  last_changed_ = arguments.positional;
  return Value(!same);
}

}  // namespace octet::text::jinja
