// The parsed template. Nodes live in the Program's pools and point to each other.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "octet/text/jinja/builtins.h"
#include "octet/text/jinja/operators.h"
#include "octet/text/jinja/value.h"

namespace octet::text::jinja {

using NameId = std::uint32_t;  // index into Program::names

struct Expression;

struct CallArguments {
  std::vector<Expression*> positional;
  std::vector<std::pair<std::string, Expression*>> named;
  Expression* star = nullptr;       // *args
  Expression* star_star = nullptr;  // **kwargs
  bool empty() const { return positional.empty() && named.empty() && star == nullptr && star_star == nullptr; }
};

struct Expression {
  enum class Type {
    kConstant,   // constant
    kName,       // name_id
    kAttribute,  // children[0].name
    kItem,       // children[0][children[1]]
    kSlice,      // children[0][children[1]:children[2]:children[3]], any of the last three may be null
    kCall,       // children[0](arguments)
    kFilter,     // children[0] | filter(arguments); children[0] is null at the head of a filter block
    kTest,       // children[0] is test(arguments)
    kNot,
    kNegate,
    kPlus,
    kBinary,  // children[0] operation children[1]
    kAnd,
    kOr,
    kConcat,     // children[0] ~ children[1] ~ ...
    kCompare,    // children[0] comparisons[0] children[1] comparisons[1] ...
    kCondition,  // children[1] if children[0] else children[2], which may be null
    kList,
    kTuple,
    kDict,  // keys and values in turn
  };
  Type type = Type::kConstant;
  int line = 1;
  std::string name;
  NameId name_id = 0;
  Value constant;
  std::vector<Expression*> children;
  CallArguments arguments;
  const Builtin* builtin = nullptr;  // of a filter or test; null where it is unknown and may never be reached
  BinaryOperator operation = BinaryOperator::kAdd;
  std::vector<Comparison> comparisons;
};

// Where an assignment goes: a name, an attribute of a namespace, or several targets.
struct Target {
  NameId name = 0;
  std::string attribute;       // not empty: name.attribute
  std::vector<Target*> parts;  // not empty: unpacking
};

struct Statement;
using Body = std::vector<Statement*>;

struct Parameter {
  NameId name = 0;
  Expression* fallback = nullptr;
};

struct Statement {
  enum class Type {
    kText,      // text
    kOutput,    // expression
    kIf,        // expression, body, otherwise
    kFor,       // target in expression if condition: body, else: otherwise; recursive
    kSet,       // target = expression
    kSetBlock,  // target = body | expression (a filter chain, or null)
    kMacro,     // name_id, parameters, body
    kCall,      // expression is a call, given a caller() of parameters and body
    kFilter,    // expression is a filter chain without a head
    kWith,      // targets and values in pairs, body
    kScope,     // body in a scope of its own
    kBreak,
    kContinue,
    kNoLoader,  // include, import, extends: there is nothing to load from
  };
  Type type = Type::kText;
  int line = 1;
  SpanText text;
  Expression* expression = nullptr;
  Expression* condition = nullptr;
  Target* target = nullptr;
  std::vector<std::pair<Target*, Expression*>> bindings;
  NameId name_id = 0;
  std::string name;
  std::vector<Parameter> parameters;
  bool recursive = false;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;  // of a macro
  Body body, otherwise;
};

struct Program {
  std::vector<std::string> names;
  Body body;
  std::deque<Expression> expressions;
  std::deque<Statement> statements;
  std::deque<Target> targets;
};

}  // namespace octet::text::jinja
