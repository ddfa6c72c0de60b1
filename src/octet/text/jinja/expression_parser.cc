#include "octet/text/jinja/expression_parser.h"

#include <charconv>
#include <optional>

namespace octet::text::jinja {
namespace {

using Type = Expression::Type;

std::optional<Comparison> comparison_of(const Token& token) {
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  if (token.text == "==") return Comparison::kEqual;
  if (token.text == "!=") return Comparison::kNotEqual;
  if (token.text == "<") return Comparison::kLess;
  if (token.text == "<=") return Comparison::kLessEqual;
  if (token.text == ">") return Comparison::kGreater;
  if (token.text == ">=") return Comparison::kGreaterEqual;
  return std::nullopt;
}

std::optional<Integer> parse_integer(std::string_view text) {
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && text[1] > '9') {
    base = (text[1] | 0x20) == 'x' ? 16 : (text[1] | 0x20) == 'o' ? 8 : 2;
    text.remove_prefix(2);
  }
  Integer value = 0;
  for (const char c : text) {
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    if (digit >= base || __builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value)) {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace

Parsed<Expression*> ExpressionParser::tuple(std::string_view until, bool with_condition, bool in_parentheses) {
  const int line = current().line;
  std::vector<Expression*> items;
  bool is_tuple = false;
  while (!ends_tuple(until)) {
    OCTET_TRY(Expression* const item, with_condition ? condition() : disjunction());
    items.push_back(item);
    if (!skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return items[0];
    if (!in_parentheses) return error(fmt::format("Expected an expression, got '{}'", describe(current())));
  }
  return make(Type::kTuple, line, std::move(items));
}

bool ExpressionParser::ends_tuple(std::string_view until) const {
  return is(TokenKind::kVariableEnd) || is(TokenKind::kBlockEnd) || is_operator(")") ||
         (!until.empty() && is_name(until));
}

Parsed<Expression*> ExpressionParser::condition() {
  const Nesting nesting(depth_);
  if (nesting.too_deep()) return error("expression is nested too deep");
  const int line = current().line;
  OCTET_TRY(Expression * value, disjunction());
  while (skip_name("if")) {
    const bool outer = std::exchange(lenient_, true);
    OCTET_TRY(Expression* const test, disjunction());
    Expression* otherwise = nullptr;
    if (skip_name("else")) {
      OCTET_TRY(otherwise, condition());
    }
    lenient_ = outer;
    value = make(Type::kCondition, line, {test, value, otherwise});
  }
  return value;
}

Parsed<Expression*> ExpressionParser::disjunction() {
  const int line = current().line;
  OCTET_TRY(Expression * left, conjunction());
  if (!is_name("or")) return left;
  left = make(Type::kOr, line, {left});
  while (skip_name("or")) {
    OCTET_TRY(Expression* const right, conjunction());
    left->children.push_back(right);
  }
  return left;
}

Parsed<Expression*> ExpressionParser::conjunction() {
  const int line = current().line;
  OCTET_TRY(Expression * left, negation());
  if (!is_name("and")) return left;
  left = make(Type::kAnd, line, {left});
  while (skip_name("and")) {
    OCTET_TRY(Expression* const right, negation());
    left->children.push_back(right);
  }
  return left;
}

Parsed<Expression*> ExpressionParser::negation() {
  if (!is_name("not")) return comparison();
  const Nesting nesting(depth_);
  if (nesting.too_deep()) return error("expression is nested too deep");
  const int line = current().line;
  advance();
  OCTET_TRY(Expression* const inner, negation());
  return make(Type::kNot, line, {inner});
}

Parsed<Expression*> ExpressionParser::comparison() {
  const int line = current().line;
  OCTET_TRY(Expression * left, sum());
  Expression* chain = nullptr;
  for (;;) {
    std::optional<Comparison> found = comparison_of(current());
    if (found) {
      advance();
    } else if (skip_name("in")) {
      found = Comparison::kIn;
    } else if (is_name("not") && ahead().kind == TokenKind::kName && ahead().text == "in") {
      advance();
      advance();
      found = Comparison::kNotIn;
    } else {
      return chain != nullptr ? chain : left;
    }
    if (chain == nullptr) chain = make(Type::kCompare, line, {left});
    OCTET_TRY(Expression* const right, sum());
    chain->children.push_back(right);
    chain->comparisons.push_back(*found);
  }
}

Parsed<Expression*> ExpressionParser::sum() {
  OCTET_TRY(Expression * left, concatenation());
  while (is_operator("+") || is_operator("-")) {
    const int line = current().line;
    const BinaryOperator op = is_operator("+") ? BinaryOperator::kAdd : BinaryOperator::kSubtract;
    advance();
    OCTET_TRY(Expression* const right, concatenation());
    left = make(Type::kBinary, line, {left, right});
    left->operation = op;
  }
  return left;
}

Parsed<Expression*> ExpressionParser::concatenation() {
  const int line = current().line;
  OCTET_TRY(Expression * left, product());
  if (!is_operator("~")) return left;
  left = make(Type::kConcat, line, {left});
  while (skip_operator("~")) {
    OCTET_TRY(Expression* const right, product());
    left->children.push_back(right);
  }
  return left;
}

Parsed<Expression*> ExpressionParser::product() {
  OCTET_TRY(Expression * left, power());
  for (;;) {
    BinaryOperator op = BinaryOperator::kMultiply;
    if (is_operator("/")) {
      op = BinaryOperator::kDivide;
    } else if (is_operator("//")) {
      op = BinaryOperator::kFloorDivide;
    } else if (is_operator("%")) {
      op = BinaryOperator::kModulo;
    } else if (!is_operator("*")) {
      return left;
    }
    const int line = current().line;
    advance();
    OCTET_TRY(Expression* const right, power());
    left = make(Type::kBinary, line, {left, right});
    left->operation = op;
  }
}

Parsed<Expression*> ExpressionParser::power() {
  OCTET_TRY(Expression * left, unary());
  while (is_operator("**")) {
    const int line = current().line;
    advance();
    OCTET_TRY(Expression* const right, unary());
    left = make(Type::kBinary, line, {left, right});
    left->operation = BinaryOperator::kPower;
  }
  return left;
}

Parsed<Expression*> ExpressionParser::unary(bool with_filters) {
  const Nesting nesting(depth_);
  if (nesting.too_deep()) return error("expression is nested too deep");
  const int line = current().line;
  Expression* node = nullptr;
  if (is_operator("-") || is_operator("+")) {
    const Type type = is_operator("-") ? Type::kNegate : Type::kPlus;
    advance();
    OCTET_TRY(Expression* const inner, unary(false));
    node = make(type, line, {inner});
  } else {
    OCTET_TRY(node, primary());
  }
  OCTET_TRY(node, postfix(node));
  if (!with_filters) return node;
  return filter_or_test(node);
}

Parsed<Expression*> ExpressionParser::number() {
  const Token& token = current();
  Value value;
  if (token.kind == TokenKind::kInteger) {
    const auto parsed = parse_integer(token.text);
    if (!parsed) return error(fmt::format("number '{}' is too large", token.text));
    value = Value(*parsed);
  } else {
    double parsed = 0;
    std::from_chars(token.text.data(), token.text.data() + token.text.size(), parsed);
    value = Value(parsed);
  }
  Expression* const made = constant(std::move(value), token.line);
  advance();
  return made;
}

Parsed<Expression*> ExpressionParser::primary() {
  const Token& token = current();
  const int line = token.line;
  if (token.kind == TokenKind::kName) {
    const std::string name = token.text;
    advance();
    if (name == "true" || name == "True") return constant(Value(true), line);
    if (name == "false" || name == "False") return constant(Value(false), line);
    if (name == "none" || name == "None") return constant(Value(), line);
    Expression* const made = make(Type::kName, line);
    made->name_id = intern(name);
    return made;
  }
  if (token.kind == TokenKind::kString) {
    std::string text;
    for (; is(TokenKind::kString); advance()) text += current().text;
    return constant(Value::literal(text), line);
  }
  if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) return number();
  if (skip_operator("(")) {
    OCTET_TRY(Expression* const inner, tuple("", true, true));
    OCTET_TRY_VOID(expect_operator(")"));
    return inner;
  }
  if (skip_operator("[")) return literal_list();
  if (skip_operator("{")) return literal_dict();
  if (token.kind == TokenKind::kEnd || token.kind == TokenKind::kVariableEnd || token.kind == TokenKind::kBlockEnd) {
    return error(fmt::format("Expected an expression, got '{}'", describe(token)));
  }
  return error(fmt::format("unexpected '{}'", describe(token)));
}

Parsed<Expression*> ExpressionParser::literal_list() {
  Expression* const list = make(Type::kList, current().line);
  while (!is_operator("]")) {
    if (!list->children.empty()) OCTET_TRY_VOID(expect_operator(","));
    if (is_operator("]")) break;
    OCTET_TRY(Expression* const item, condition());
    list->children.push_back(item);
  }
  advance();
  return list;
}

Parsed<Expression*> ExpressionParser::literal_dict() {
  Expression* const dict = make(Type::kDict, current().line);
  while (!is_operator("}")) {
    if (!dict->children.empty()) OCTET_TRY_VOID(expect_operator(","));
    if (is_operator("}")) break;
    OCTET_TRY(Expression* const key, condition());
    OCTET_TRY_VOID(expect_operator(":"));
    OCTET_TRY(Expression* const value, condition());
    dict->children.push_back(key);
    dict->children.push_back(value);
  }
  advance();
  return dict;
}

Parsed<Expression*> ExpressionParser::postfix(Expression* node) {
  // A chain of calls and subscripts nests as deep as it is long.
  for (int length = 0;; ++length) {
    if (length > kMaxNesting) return error("expression is nested too deep");
    const int line = current().line;
    if (is_operator(".") || is_operator("[")) {
      OCTET_TRY(node, subscript(node));
    } else if (is_operator("(")) {
      node = make(Type::kCall, line, {node});
      OCTET_TRY(node->arguments, call_arguments());
    } else {
      return node;
    }
  }
}

Parsed<Expression*> ExpressionParser::subscript(Expression* node) {
  const int line = current().line;
  if (!skip_operator(".")) return bracket(node);
  if (is(TokenKind::kInteger)) {
    OCTET_TRY(Expression* const index, number());
    return make(Type::kItem, line, {node, index});
  }
  if (!is(TokenKind::kName)) return error("expected name or number");
  Expression* const made = make(Type::kAttribute, line, {node});
  made->name = current().text;
  advance();
  return made;
}

Parsed<Expression*> ExpressionParser::bracket(Expression* node) {
  const int line = current().line;
  advance();
  Expression* parts[3] = {nullptr, nullptr, nullptr};
  int colons = 0;
  std::vector<Expression*> items;
  while (!is_operator("]")) {
    if (skip_operator(":")) {
      if (++colons > 2) return error("too many ':' in a subscript");
      continue;
    }
    if (skip_operator(",")) {
      if (items.empty() || colons > 0) return error("unexpected ','");
      continue;
    }
    OCTET_TRY(Expression* const part, condition());
    parts[colons] = part;
    items.push_back(part);
  }
  advance();
  if (colons > 0) return make(Type::kSlice, line, {node, parts[0], parts[1], parts[2]});
  if (items.empty()) return error_at(line, "Expected subscript expression");
  if (items.size() == 1) return make(Type::kItem, line, {node, items[0]});
  return make(Type::kItem, line, {node, make(Type::kTuple, line, std::move(items))});
}

Parsed<bool> ExpressionParser::one_argument(CallArguments& arguments) {
  if (skip_operator("**")) {
    if (arguments.star_star != nullptr) return error("invalid syntax for function call expression");
    OCTET_TRY(arguments.star_star, condition());
  } else if (skip_operator("*")) {
    if (arguments.star != nullptr || arguments.star_star != nullptr) {
      return error("invalid syntax for function call expression");
    }
    OCTET_TRY(arguments.star, condition());
  } else if (is(TokenKind::kName) && ahead().kind == TokenKind::kOperator && ahead().text == "=") {
    const std::string name = current().text;
    advance();
    advance();
    OCTET_TRY(Expression* const value, condition());
    arguments.named.emplace_back(name, value);
  } else {
    if (!arguments.named.empty() || arguments.star_star != nullptr) {
      return error("invalid syntax for function call expression");
    }
    OCTET_TRY(Expression* const value, condition());
    arguments.positional.push_back(value);
  }
  return true;
}

Parsed<CallArguments> ExpressionParser::call_arguments() {
  CallArguments arguments;
  OCTET_TRY_VOID(expect_operator("("));
  bool first = true;
  while (!is_operator(")")) {
    if (!first) {
      OCTET_TRY_VOID(expect_operator(","));
      if (is_operator(")")) break;
    }
    first = false;
    OCTET_TRY([[maybe_unused]] const bool parsed, one_argument(arguments));
  }
  advance();
  return arguments;
}

Parsed<Expression*> ExpressionParser::filter_or_test(Expression* node) {
  for (int length = 0;; ++length) {
    if (length > kMaxNesting) return error("expression is nested too deep");
    if (is_operator("|")) {
      OCTET_TRY(node, filters(node, true));
    } else if (skip_name("is")) {
      OCTET_TRY(node, test(node));
    } else if (is_operator("(")) {
      // A call may follow a filter: value | filter(...)(...).
      Expression* const call = make(Type::kCall, current().line, {node});
      OCTET_TRY(call->arguments, call_arguments());
      node = call;
    } else {
      return node;
    }
  }
}

Parsed<Expression*> ExpressionParser::filters(Expression* head, bool leading_pipe) {
  bool first = !leading_pipe;
  for (int length = 0; is_operator("|") || first; ++length) {
    if (length > kMaxNesting) return error("expression is nested too deep");
    if (!std::exchange(first, false)) advance();
    const int line = current().line;
    OCTET_TRY(std::string name, expect_name());
    while (skip_operator(".")) {
      OCTET_TRY(const std::string part, expect_name());
      name += "." + part;
    }
    Expression* const node = make(Type::kFilter, line, {head});
    node->name = name;
    node->builtin = find_filter(name);
    if (node->builtin == nullptr && !lenient_) return error_at(line, fmt::format("No filter named '{}'.", name));
    if (is_operator("(")) {
      OCTET_TRY(node->arguments, call_arguments());
    }
    head = node;
  }
  return head;
}

bool ExpressionParser::starts_operand() const {
  if (is(TokenKind::kName)) return !is_name("else") && !is_name("or") && !is_name("and");
  return is(TokenKind::kString) || is(TokenKind::kInteger) || is(TokenKind::kFloat) || is_operator("(") ||
         is_operator("[") || is_operator("{");
}

Parsed<Expression*> ExpressionParser::test(Expression* node) {
  const int line = current().line;
  const bool negated = skip_name("not");
  OCTET_TRY(std::string name, expect_name());
  while (skip_operator(".")) {
    OCTET_TRY(const std::string part, expect_name());
    name += "." + part;
  }
  Expression* made = make(Type::kTest, line, {node});
  made->name = name;
  made->builtin = find_test(name);
  if (made->builtin == nullptr && !lenient_) return error_at(line, fmt::format("No test named '{}'.", name));
  if (is_operator("(")) {
    OCTET_TRY(made->arguments, call_arguments());
  } else if (starts_operand()) {
    if (is_name("is")) return error("You cannot chain multiple tests with is");
    OCTET_TRY(Expression * operand, primary());
    OCTET_TRY(operand, postfix(operand));
    made->arguments.positional.push_back(operand);
  }
  return negated ? make(Type::kNot, line, {made}) : made;
}

}  // namespace octet::text::jinja
