// Statements.
#include <algorithm>

#include "octet/text/jinja/interpreter.h"
#include "octet/text/jinja/objects.h"

namespace octet::text::jinja {

using Type = Statement::Type;

void Interpreter::set_variable(std::string_view name, Value value) {
  variables_.emplace_back(std::string(name), std::move(value));
}

Result<SpanText> Interpreter::run() {
  globals_.resize(program_.names.size());
  for (std::size_t i = 0; i < globals_.size(); ++i) {
    OCTET_TRY(globals_[i], find_global(*this, program_.names[i]));
    for (const auto& [name, value] : variables_) {
      if (name == program_.names[i]) globals_[i] = value;
    }
  }
  OCTET_TRY(scope_, make_scope(nullptr));
  SpanText out;
  out_ = &out;
  OCTET_TRY([[maybe_unused]] const Flow flow, execute(program_.body));
  return out;
}

Result<Scope*> Interpreter::make_scope(Scope* parent) {
  OCTET_TRY_VOID(budget_.allocate(sizeof(Scope) + sizeof(void*)));
  scopes_.push_back(std::make_unique<Scope>());
  scopes_.back()->parent = parent;
  return scopes_.back().get();
}

void Interpreter::set_in(Scope& scope, NameId name, Value value) {
  for (auto& [id, old] : scope.values) {
    if (id == name) {
      old = std::move(value);
      return;
    }
  }
  scope.values.emplace_back(name, std::move(value));
}

void Interpreter::mark_captured() {
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent) scope->captured = true;
}

Result<Interpreter::Flow> Interpreter::execute(const Body& body) {
  const DepthGuard guard(budget_);
  OCTET_TRY_VOID(guard.entered());
  for (const Statement* statement : body) {
    OCTET_TRY(const Flow flow, execute(*statement));
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Result<Interpreter::Flow> Interpreter::execute(const Statement& statement) {
  OCTET_TRY_VOID(budget_.step());
  line_ = statement.line;
  switch (statement.type) {
    case Type::kText:
      OCTET_TRY_VOID(budget_.fits(out_->size() + statement.text.size()));
      out_->append(statement.text);
      break;
    case Type::kOutput: {
      OCTET_TRY(const Value value, evaluate(*statement.expression));
      OCTET_TRY_VOID(print(budget_, *out_, value));
      break;
    }
    case Type::kIf:
      return execute_if(statement);
    case Type::kFor: {
      OCTET_TRY(const Value iterable, evaluate(*statement.expression));
      return execute_for(statement, scope_, iterable, 0);
    }
    case Type::kSet:
      OCTET_TRY_VOID(execute_set(statement));
      break;
    case Type::kSetBlock:
      OCTET_TRY_VOID(execute_set_block(statement));
      break;
    case Type::kMacro:
      OCTET_TRY_VOID(define_macro(statement));
      break;
    case Type::kCall:
      OCTET_TRY_VOID(execute_call(statement));
      break;
    case Type::kFilter:
      OCTET_TRY_VOID(execute_filter(statement));
      break;
    case Type::kWith:
      return execute_with(statement);
    case Type::kScope:
      return execute_scope(statement.body);
    case Type::kBreak:
      return Flow::kBreak;
    case Type::kContinue:
      return Flow::kContinue;
    case Type::kNoLoader:
      return fail(ErrorCode::kUnsupported,
                  "no loader for this environment specified: a template cannot bring in others");
  }
  return Flow::kNormal;
}

Result<Interpreter::Flow> Interpreter::execute_if(const Statement& statement) {
  const Statement* branch = &statement;
  for (;;) {
    OCTET_TRY_VOID(budget_.step());
    OCTET_TRY(const Value test, evaluate(*branch->expression));
    if (truthy(test)) return execute(branch->body);
    const Body& otherwise = branch->otherwise;
    // A chain of elif is walked, not nested.
    if (otherwise.size() != 1 || otherwise[0]->type != Type::kIf) return execute(otherwise);
    branch = otherwise[0];
    line_ = branch->line;
  }
}

Result<Interpreter::Flow> Interpreter::execute_for(const Statement& statement, Scope* outer, const Value& iterable,
                                                   int depth) {
  OCTET_TRY(std::vector<Value> items, iterate(iterable));
  OCTET_TRY_VOID(budget_.step(items.size()));
  if (statement.condition != nullptr) {
    OCTET_TRY(items, select(statement, outer, std::move(items)));
  }
  Scope* const before = std::exchange(scope_, outer);
  Result<Flow> flow = Flow::kNormal;
  if (items.empty()) {
    flow = execute_scope(statement.otherwise);
  } else if (auto ran = execute_turns(statement, outer, std::move(items), depth); !ran) {
    flow = std::unexpected(std::move(ran).error());
  }
  scope_ = before;
  return flow;
}

Result<std::vector<Value>> Interpreter::select(const Statement& statement, Scope* outer, std::vector<Value> items) {
  std::vector<Value> chosen;
  OCTET_TRY(Scope* const scope, make_scope(outer));
  Scope* const before = std::exchange(scope_, scope);
  for (Value& item : items) {
    OCTET_TRY_VOID(assign(*statement.target, item));
    OCTET_TRY(const Value test, evaluate(*statement.condition));
    if (truthy(test)) chosen.push_back(std::move(item));
  }
  scope_ = before;
  return chosen;
}

Result<bool> Interpreter::execute_turns(const Statement& statement, Scope* outer, std::vector<Value> items, int depth) {
  static constexpr std::string_view kLoop = "loop";
  const auto name = std::ranges::find(program_.names, kLoop);
  const bool named = name != program_.names.end();
  const auto loop_id = static_cast<NameId>(name - program_.names.begin());
  OCTET_TRY_VOID(budget_.allocate(items.capacity() * sizeof(Value)));
  OCTET_TRY(Loop* const loop, heap_.object<Loop>(statement, outer, std::move(items), depth));
  OCTET_TRY(Scope * scope, make_scope(outer));
  for (std::size_t i = 0; i < loop->items().size(); ++i) {
    OCTET_TRY_VOID(budget_.step());
    if (scope->captured) {
      OCTET_TRY(scope, make_scope(outer));
    } else {
      scope->values.clear();
    }
    scope_ = scope;
    loop->go_to(i);
    if (named) set_in(*scope, loop_id, Value(static_cast<Object*>(loop)));
    OCTET_TRY_VOID(assign(*statement.target, loop->items()[i]));
    OCTET_TRY(const Flow flow, execute(statement.body));
    if (flow == Flow::kBreak) break;
  }
  scope_ = outer;
  return true;
}

Result<Value> Interpreter::run_loop_again(const Statement& statement, Scope* outer, const Value& items, int depth) {
  SpanText text;
  SpanText* const before = std::exchange(out_, &text);
  auto flow = execute_for(statement, outer, items, depth);
  out_ = before;
  if (!flow) return std::unexpected(std::move(flow).error());
  return heap_.string(std::move(text));
}

Result<> Interpreter::assign(const Target& target, Value value) {
  if (!target.parts.empty()) {
    OCTET_TRY(std::vector<Value> items, iterate(value));
    if (items.size() != target.parts.size()) {
      return fail(ErrorCode::kInvalid, "{} values to unpack (expected {}, got {})",
                  items.size() < target.parts.size() ? "not enough" : "too many", target.parts.size(), items.size());
    }
    for (std::size_t i = 0; i < items.size(); ++i) OCTET_TRY_VOID(assign(*target.parts[i], std::move(items[i])));
    return {};
  }
  if (target.attribute.empty()) {
    set_in(*scope_, target.name, std::move(value));
    return {};
  }
  Expression name;
  name.type = Expression::Type::kName;
  name.name_id = target.name;
  OCTET_TRY(const Value owner, evaluate_name(name));
  if (!owner.is(Kind::kObject)) {
    return fail(ErrorCode::kInvalid, "cannot assign attribute on non-namespace object");
  }
  return owner.object().set_attribute(*this, target.attribute, std::move(value));
}

Result<> Interpreter::execute_set(const Statement& statement) {
  OCTET_TRY(Value value, evaluate(*statement.expression));
  return assign(*statement.target, std::move(value));
}

Result<SpanText> Interpreter::capture(const Body& body) {
  SpanText text;
  SpanText* const before = std::exchange(out_, &text);
  auto flow = execute_scope(body);
  out_ = before;
  if (!flow) return std::unexpected(std::move(flow).error());
  return text;
}

Result<> Interpreter::execute_set_block(const Statement& statement) {
  OCTET_TRY(SpanText text, capture(statement.body));
  OCTET_TRY(Value value, heap_.string(std::move(text)));
  if (statement.expression != nullptr) {
    OCTET_TRY(value, evaluate_filter(*statement.expression, &value));
  }
  return assign(*statement.target, std::move(value));
}

Result<> Interpreter::execute_filter(const Statement& statement) {
  OCTET_TRY(SpanText text, capture(statement.body));
  OCTET_TRY(const Value value, heap_.string(std::move(text)));
  OCTET_TRY(const Value filtered, evaluate_filter(*statement.expression, &value));
  return print(budget_, *out_, filtered);
}

Result<Interpreter::Flow> Interpreter::execute_scope(const Body& body) {
  OCTET_TRY(Scope* const inner, make_scope(scope_));
  Scope* const before = std::exchange(scope_, inner);
  auto flow = execute(body);
  scope_ = before;
  return flow;
}

Result<Interpreter::Flow> Interpreter::execute_with(const Statement& statement) {
  std::vector<Value> values;
  for (const auto& [target, expression] : statement.bindings) {
    OCTET_TRY(Value value, evaluate(*expression));
    values.push_back(std::move(value));
  }
  OCTET_TRY(Scope* const inner, make_scope(scope_));
  Scope* const before = std::exchange(scope_, inner);
  for (std::size_t i = 0; i < values.size(); ++i) {
    OCTET_TRY_VOID(assign(*statement.bindings[i].first, std::move(values[i])));
  }
  auto flow = execute(statement.body);
  scope_ = before;
  return flow;
}

Result<> Interpreter::define_macro(const Statement& statement) {
  mark_captured();
  OCTET_TRY(Object* const macro, heap_.object<Macro>(statement, scope_));
  set_in(*scope_, statement.name_id, Value(macro));
  return {};
}

Result<> Interpreter::execute_call(const Statement& statement) {
  mark_captured();
  OCTET_TRY(Object* const caller, heap_.object<Macro>(statement, scope_));
  const Value value(caller);
  OCTET_TRY(const Value result, evaluate_call(*statement.expression, &value));
  return print(budget_, *out_, result);
}

Result<> Interpreter::bind_parameters(const Statement& macro, const Arguments& arguments) {
  const auto& parameters = macro.parameters;
  std::vector<bool> used(arguments.named.size(), false);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = program_.names[parameters[i].name];
    std::optional<Value> value;
    if (i < arguments.positional.size()) value = arguments.positional[i];
    for (std::size_t k = 0; k < used.size() && !value; ++k) {
      if (arguments.named[k].first != name) continue;
      value = arguments.named[k].second;
      used[k] = true;
    }
    if (!value && parameters[i].fallback != nullptr) {
      OCTET_TRY(value, evaluate(*parameters[i].fallback));
    }
    if (!value) value = Value::undefined(fmt::format("parameter '{}' was not provided", name));
    set_in(*scope_, parameters[i].name, *std::move(value));
  }
  const auto bind = [&](std::string_view special, Value value) {
    const auto name = std::ranges::find(program_.names, special);
    if (name != program_.names.end()) {
      set_in(*scope_, static_cast<NameId>(name - program_.names.begin()), std::move(value));
    }
  };
  std::vector<Value> extra;
  if (arguments.positional.size() > parameters.size()) {
    if (!macro.uses_varargs) {
      return fail(ErrorCode::kInvalid, "macro '{}' takes not more than {} argument(s)", macro.name, parameters.size());
    }
    extra.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(parameters.size()),
                 arguments.positional.end());
  }
  if (macro.uses_varargs) {
    OCTET_TRY(Value tuple, heap_.tuple(std::move(extra)));
    bind("varargs", std::move(tuple));
  }
  OCTET_TRY(Dict* const rest, heap_.dict(used.size()));
  for (std::size_t k = 0; k < used.size(); ++k) {
    if (used[k]) continue;
    const auto& [name, value] = arguments.named[k];
    if (name == "caller" && macro.uses_caller) {
      bind("caller", value);
    } else if (macro.uses_kwargs) {
      rest->set(Value::literal(name), value);
    } else {
      return fail(ErrorCode::kInvalid, "macro '{}' takes no keyword argument '{}'", macro.name, name);
    }
  }
  if (macro.uses_kwargs) bind("kwargs", Value(rest));
  return {};
}

Result<Value> Interpreter::call_macro(const Statement& macro, Scope* closure, const Arguments& arguments) {
  const DepthGuard guard(budget_);
  if (!guard.entered()) return endless(guard.entered().error());
  OCTET_TRY(Scope* const inner, make_scope(closure));
  active_macros_.push_back(&macro);
  Scope* const before = std::exchange(scope_, inner);
  const int line = line_;
  SpanText text;
  SpanText* const out = std::exchange(out_, &text);
  OCTET_TRY_VOID(bind_parameters(macro, arguments));
  auto flow = execute(macro.body);
  out_ = out;
  scope_ = before;
  if (!flow) {
    if (budget_.too_deep()) return endless(std::move(flow).error());
    return std::unexpected(std::move(flow).error());
  }
  active_macros_.pop_back();
  line_ = line;
  return heap_.string(std::move(text));
}

// Names the macro that led too deep, where one did: schemas of tools are the usual cause.
std::unexpected<Error> Interpreter::endless(Error error) {
  constexpr std::ptrdiff_t kOften = 8;
  if (!active_macros_.empty()) {
    const Statement* const last = active_macros_.back();
    if (std::ranges::count(active_macros_, last) >= kOften) {
      error.message += fmt::format(": macro {} calls itself without end", program_.names[last->name_id]);
    }
    active_macros_.clear();
  }
  return std::unexpected(std::move(error));
}

}  // namespace octet::text::jinja
