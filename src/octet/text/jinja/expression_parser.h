// Expressions: from conditional expressions down to literals.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "octet/text/jinja/parser_base.h"

namespace octet::text::jinja {

class ExpressionParser : public ParserBase {
 protected:
  using ParserBase::ParserBase;

  Parsed<Expression*> expression() { return condition(); }
  // One expression, or a tuple where a comma follows. until: a name that ends it.
  Parsed<Expression*> tuple(std::string_view until = "", bool with_condition = true, bool in_parentheses = false);
  // | name(...) | name(...): applied to `head`, which is null for a block.
  Parsed<Expression*> filters(Expression* head, bool leading_pipe);
  Parsed<Expression*> postfix(Expression* node);
  Parsed<CallArguments> call_arguments();

  // Within an if, an unknown filter or test is an error only when it is reached.
  bool lenient_ = false;

 private:
  Parsed<Expression*> condition();
  Parsed<Expression*> disjunction();
  Parsed<Expression*> conjunction();
  Parsed<Expression*> negation();
  Parsed<Expression*> comparison();
  Parsed<Expression*> sum();
  Parsed<Expression*> concatenation();
  Parsed<Expression*> product();
  Parsed<Expression*> power();
  Parsed<Expression*> unary(bool with_filters = true);
  Parsed<Expression*> primary();
  Parsed<Expression*> literal_list();
  Parsed<Expression*> literal_dict();
  Parsed<Expression*> subscript(Expression* node);
  Parsed<Expression*> bracket(Expression* node);
  Parsed<Expression*> test(Expression* node);
  Parsed<Expression*> filter_or_test(Expression* node);
  Parsed<bool> one_argument(CallArguments& arguments);
  Parsed<Expression*> number();
  bool starts_operand() const;
  bool ends_tuple(std::string_view until) const;
};

}  // namespace octet::text::jinja
