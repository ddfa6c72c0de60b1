// Runs a Program over values. One rendering, one thread.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/text/jinja/ast.h"
#include "octet/text/jinja/budget.h"
#include "octet/text/jinja/heap.h"

namespace octet::text::jinja {

// Variables of one block; inner ones hide outer ones.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<NameId, Value>> values;
  bool captured = false;  // a macro refers to it
};

class Interpreter {
 public:
  // now: what strftime_now takes as the time, in seconds since 1970.
  Interpreter(const Program& program, Budget& budget, Heap& heap, std::int64_t now)
      : program_(program), budget_(budget), heap_(heap), now_(now) {}

  // A variable the template sees. Before run().
  void set_variable(std::string_view name, Value value);
  Result<SpanText> run();

  Budget& budget() { return budget_; }
  Heap& heap() { return heap_; }
  std::int64_t now() const { return now_; }
  // The template line of what ran last.
  int line() const { return line_; }

  // subject.name and subject[key]; undefined where there is none.
  Result<Value> attribute(const Value& subject, std::string_view name);
  Result<Value> item(const Value& subject, const Value& key);
  // The items of whatever Python can loop over, as a copy; a generator is used up.
  Result<std::vector<Value>> iterate(const Value& value);
  Result<Value> call(const Value& callee, const Arguments& arguments);

  // A macro's body with arguments bound: its output as a string.
  Result<Value> call_macro(const Statement& macro, Scope* closure, const Arguments& arguments);
  // A for statement over items, as loop(...) runs it again one level deeper.
  Result<Value> run_loop_again(const Statement& statement, Scope* outer, const Value& items, int depth);

 private:
  enum class Flow { kNormal, kBreak, kContinue };

  Result<Flow> execute(const Body& body);
  Result<Flow> execute(const Statement& statement);
  Result<Flow> execute_if(const Statement& statement);
  Result<Flow> execute_for(const Statement& statement, Scope* outer, const Value& iterable, int depth);
  Result<bool> execute_turns(const Statement& statement, Scope* outer, std::vector<Value> items, int depth);
  Result<> execute_set(const Statement& statement);
  Result<> execute_set_block(const Statement& statement);
  Result<> define_macro(const Statement& statement);
  Result<> execute_call(const Statement& statement);
  Result<> execute_filter(const Statement& statement);
  Result<Flow> execute_with(const Statement& statement);
  Result<Flow> execute_scope(const Body& body);
  // Output of a body in a scope of its own.
  Result<SpanText> capture(const Body& body);
  Result<std::vector<Value>> select(const Statement& statement, Scope* outer, std::vector<Value> items);
  Result<> bind_parameters(const Statement& macro, const Arguments& arguments);
  Result<> assign(const Target& target, Value value);

  Result<Value> evaluate(const Expression& node);
  Result<Value> evaluate_compound(const Expression& node);
  Result<Value> evaluate_name(const Expression& node);
  Result<Value> evaluate_slice(const Expression& node);
  Result<Value> evaluate_call(const Expression& node, const Value* caller = nullptr);
  // A filter over `head`, which takes the place of a missing operand at the start of the chain.
  Result<Value> evaluate_filter(const Expression& node, const Value* head = nullptr);
  Result<Value> evaluate_test(const Expression& node);
  Result<Value> evaluate_concat(const Expression& node);
  Result<Value> evaluate_compare(const Expression& node);
  Result<Value> evaluate_container(const Expression& node);
  Result<Arguments> evaluate_arguments(const CallArguments& arguments);

  std::unexpected<Error> endless(Error error);
  Result<Scope*> make_scope(Scope* parent);
  static void set_in(Scope& scope, NameId name, Value value);
  void mark_captured();

  const Program& program_;
  Budget& budget_;
  Heap& heap_;
  std::int64_t now_ = 0;
  int line_ = 1;
  std::vector<std::pair<std::string, Value>> variables_;
  std::vector<std::optional<Value>> globals_;  // by NameId
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<const Statement*> active_macros_;  // innermost last
  Scope* scope_ = nullptr;
  SpanText* out_ = nullptr;
};

}  // namespace octet::text::jinja
