#include "octet/text/jinja/parser.h"

#include <algorithm>

#include "octet/text/jinja/expression_parser.h"

namespace octet::text::jinja {
namespace {

using Type = Statement::Type;

class Parser : public ExpressionParser {
 public:
  Parser(std::vector<Token> tokens, Program& program) : ExpressionParser(std::move(tokens), program) {}

  Parsed<> run() {
    OCTET_TRY(program_.body, body({}));
    return {};
  }

 private:
  // An open tag, for messages about missing ends.
  struct Open {
    std::string tag;
    std::vector<std::string_view> ends;
  };

  Statement* make_statement(Type type, int line) {
    program_.statements.emplace_back();
    program_.statements.back().type = type;
    program_.statements.back().line = line;
    return &program_.statements.back();
  }

  // Statements up to a tag named in `ends`, whose name is left as the current token. No ends: up to the end of the
  // template.
  Parsed<Body> body(const std::vector<std::string_view>& ends, const std::string& tag = "") {
    const Nesting nesting(depth_);
    if (nesting.too_deep()) return error("blocks are nested too deep");
    if (!ends.empty()) open_.push_back({tag, ends});
    Body out;
    for (;;) {
      const int line = current().line;
      if (is(TokenKind::kEnd)) {
        if (open_.empty()) return out;
        return error(missing_end());
      }
      if (is(TokenKind::kData)) {
        Statement* const text = make_statement(Type::kText, line);
        text->text = SpanText(current().text);
        out.push_back(text);
        advance();
      } else if (is(TokenKind::kVariableBegin)) {
        advance();
        Statement* const output = make_statement(Type::kOutput, line);
        OCTET_TRY(output->expression, tuple());
        OCTET_TRY_VOID(expect(TokenKind::kVariableEnd));
        out.push_back(output);
      } else {
        advance();
        if (!is(TokenKind::kName)) return error("tag name expected");
        if (std::ranges::find(ends, current().text) != ends.end()) {
          open_.pop_back();
          return out;
        }
        OCTET_TRY(Statement* const statement, this->statement());
        if (statement != nullptr) out.push_back(statement);
        OCTET_TRY_VOID(expect(TokenKind::kBlockEnd));
      }
    }
  }

  // The body of a tag, past its end tag's name. The tag's own end is consumed first.
  Parsed<Body> block(const std::string& tag, std::string_view end) {
    OCTET_TRY_VOID(expect(TokenKind::kBlockEnd));
    OCTET_TRY(Body inner, body({end}, tag));
    advance();
    return inner;
  }

  // The same in a scope of its own, where unknown filters are refused again.
  Parsed<Body> scoped_block(const std::string& tag, std::string_view end) {
    const bool outer = std::exchange(lenient_, false);
    auto inner = block(tag, end);
    lenient_ = outer;
    return inner;
  }

  std::string missing_end() const {
    std::string tags;
    for (std::string_view end : open_.back().ends) {
      if (!tags.empty()) tags += " or ";
      tags += fmt::format("'{}'", end);
    }
    return fmt::format(
        "Unexpected end of template. Jinja was looking for the following tags: {}. The innermost block that needs to "
        "be "
        "closed is '{}'.",
        tags, open_.back().tag);
  }

  std::string unknown_tag(const std::string& tag) const {
    std::string message = fmt::format("Encountered unknown tag '{}'.", tag);
    if (open_.empty()) return message;
    std::string tags;
    for (std::string_view end : open_.back().ends) tags += fmt::format("{}'{}'", tags.empty() ? "" : " or ", end);
    return message + fmt::format(
                         " Jinja was looking for the following tags: {}. The innermost block that needs to be "
                         "closed is '{}'.",
                         tags, open_.back().tag);
  }

  Parsed<Statement*> statement() {
    const std::string tag = current().text;
    const int line = current().line;
    advance();
    if (tag == "if") return if_statement(line);
    if (tag == "for") return for_statement(line);
    if (tag == "set") return set_statement(line);
    if (tag == "macro") return macro_statement(line);
    if (tag == "call") return call_statement(line);
    if (tag == "with") return with_statement(line);
    if (tag == "filter") {
      Statement* const made = make_statement(Type::kFilter, line);
      OCTET_TRY(made->expression, filters(nullptr, false));
      OCTET_TRY(made->body, scoped_block(tag, "endfilter"));
      return made;
    }
    if (tag == "generation") {
      Statement* const made = make_statement(Type::kScope, line);
      OCTET_TRY(made->body, scoped_block(tag, "endgeneration"));
      return made;
    }
    if (tag == "block") return block_statement(line);
    if (tag == "autoescape") {
      Statement* const made = make_statement(Type::kScope, line);
      OCTET_TRY(const Expression* const flag, expression());
      if (flag->type != Expression::Type::kConstant || truthy(flag->constant)) {
        return error_at(line, "autoescape is not supported");
      }
      OCTET_TRY(made->body, scoped_block(tag, "endautoescape"));
      return made;
    }
    if (tag == "print") {
      Statement* const made = make_statement(Type::kOutput, line);
      OCTET_TRY(made->expression, tuple());
      return made;
    }
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) return error_at(line, fmt::format("'{}' outside loop", tag));
      return make_statement(tag == "break" ? Type::kBreak : Type::kContinue, line);
    }
    if (tag == "include" || tag == "import" || tag == "from" || tag == "extends") {
      while (!is(TokenKind::kBlockEnd) && !is(TokenKind::kEnd)) advance();
      return make_statement(Type::kNoLoader, line);
    }
    return error_at(line, unknown_tag(tag));
  }

  Parsed<Statement*> block_statement(int line) {
    OCTET_TRY([[maybe_unused]] const std::string name, expect_name());
    skip_name("scoped");
    skip_name("required");
    Statement* const made = make_statement(Type::kScope, line);
    OCTET_TRY(made->body, scoped_block("block", "endblock"));
    if (is(TokenKind::kName)) advance();
    return made;
  }

  Parsed<Statement*> if_statement(int line) {
    const bool outer = std::exchange(lenient_, true);
    Statement* const first = make_statement(Type::kIf, line);
    Statement* last = first;
    for (;;) {
      OCTET_TRY(last->expression, tuple("", false));
      OCTET_TRY_VOID(expect(TokenKind::kBlockEnd));
      OCTET_TRY(last->body, body({"elif", "else", "endif"}, "if"));
      const int next_line = current().line;
      if (!skip_name("elif")) break;
      // elif chains hang on `otherwise` of the branch before; the interpreter walks them without recursion.
      Statement* const next = make_statement(Type::kIf, next_line);
      last->otherwise.push_back(next);
      last = next;
    }
    if (skip_name("else")) {
      OCTET_TRY_VOID(expect(TokenKind::kBlockEnd));
      OCTET_TRY(last->otherwise, body({"endif"}, "if"));
    }
    advance();
    lenient_ = outer;
    return first;
  }

  Parsed<Statement*> for_statement(int line) {
    Statement* const made = make_statement(Type::kFor, line);
    OCTET_TRY(made->target, target("in", false));
    if (!skip_name("in")) return unexpected_token("in");
    OCTET_TRY(made->expression, tuple("recursive", false));
    if (skip_name("if")) {
      OCTET_TRY(made->condition, expression());
    }
    made->recursive = skip_name("recursive");
    OCTET_TRY_VOID(expect(TokenKind::kBlockEnd));
    const bool outer = std::exchange(lenient_, false);
    ++loops_;
    auto inner = body({"endfor", "else"}, "for");
    --loops_;
    if (!inner) return std::unexpected(std::move(inner).error());
    made->body = *std::move(inner);
    if (skip_name("else")) {
      OCTET_TRY_VOID(expect(TokenKind::kBlockEnd));
      OCTET_TRY(made->otherwise, body({"endfor"}, "for"));
    }
    lenient_ = outer;
    advance();
    return made;
  }

  Parsed<Statement*> set_statement(int line) {
    Statement* const made = make_statement(Type::kSet, line);
    OCTET_TRY(made->target, target("", true));
    if (skip_operator("=")) {
      OCTET_TRY(made->expression, tuple());
      return made;
    }
    made->type = Type::kSetBlock;
    if (is_operator("|")) {
      OCTET_TRY(made->expression, filters(nullptr, true));
    }
    OCTET_TRY(made->body, scoped_block("set", "endset"));
    return made;
  }

  Parsed<std::vector<Parameter>> parameters() {
    std::vector<Parameter> out;
    OCTET_TRY_VOID(expect_operator("("));
    while (!is_operator(")")) {
      if (!out.empty()) OCTET_TRY_VOID(expect_operator(","));
      OCTET_TRY(const NameId name, assignable_name());
      Parameter parameter{name, nullptr};
      if (skip_operator("=")) {
        OCTET_TRY(parameter.fallback, expression());
      } else if (!out.empty() && out.back().fallback != nullptr) {
        return error("non-default argument follows default argument");
      }
      out.push_back(parameter);
    }
    advance();
    return out;
  }

  // Notes which of the special names the statements read from `first_expression` on (the pool is in source order).
  void note_special_names(Statement* macro, std::size_t first_expression) {
    for (std::size_t i = first_expression; i < program_.expressions.size(); ++i) {
      const Expression& node = program_.expressions[i];
      if (node.type != Expression::Type::kName) continue;
      const std::string& name = program_.names[node.name_id];
      macro->uses_caller |= name == "caller";
      macro->uses_varargs |= name == "varargs";
      macro->uses_kwargs |= name == "kwargs";
    }
  }

  Parsed<Statement*> macro_statement(int line) {
    Statement* const made = make_statement(Type::kMacro, line);
    OCTET_TRY(const std::string name, expect_name());
    made->name = name;
    made->name_id = intern(name);
    OCTET_TRY(made->parameters, parameters());
    const std::size_t first = program_.expressions.size();
    const int loops = std::exchange(loops_, 0);
    auto inner = scoped_block("macro", "endmacro");
    loops_ = loops;
    if (!inner) return std::unexpected(std::move(inner).error());
    made->body = *std::move(inner);
    note_special_names(made, first);
    return made;
  }

  Parsed<Statement*> call_statement(int line) {
    Statement* const made = make_statement(Type::kCall, line);
    made->name = "caller";
    if (is_operator("(")) {
      OCTET_TRY(made->parameters, parameters());
    }
    OCTET_TRY(made->expression, expression());
    if (made->expression->type != Expression::Type::kCall) return error_at(line, "expected call");
    const std::size_t first = program_.expressions.size();
    const int loops = std::exchange(loops_, 0);
    auto inner = scoped_block("call", "endcall");
    loops_ = loops;
    if (!inner) return std::unexpected(std::move(inner).error());
    made->body = *std::move(inner);
    note_special_names(made, first);
    return made;
  }

  Parsed<Statement*> with_statement(int line) {
    Statement* const made = make_statement(Type::kWith, line);
    while (!is(TokenKind::kBlockEnd)) {
      if (!made->bindings.empty()) OCTET_TRY_VOID(expect_operator(","));
      OCTET_TRY(Target* const to, target("", false));
      OCTET_TRY_VOID(expect_operator("="));
      OCTET_TRY(Expression* const value, expression());
      made->bindings.emplace_back(to, value);
    }
    OCTET_TRY(made->body, scoped_block("with", "endwith"));
    return made;
  }

  Parsed<NameId> assignable_name() {
    OCTET_TRY(const std::string name, expect_name());
    for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
      if (name == constant) return error(fmt::format("can't assign to '{}'", name));
    }
    return intern(name);
  }

  // One target, or several with commas between. until: a name that ends it.
  Parsed<Target*> target(std::string_view until, bool with_namespace) {
    OCTET_TRY(Target* const first, single_target(with_namespace));
    if (!is_operator(",")) return first;
    Target* const several = &program_.targets.emplace_back();
    several->parts.push_back(first);
    while (skip_operator(",")) {
      if (is_operator("=") || is_operator(")") || is(TokenKind::kBlockEnd) || (!until.empty() && is_name(until))) break;
      OCTET_TRY(Target* const next, single_target(with_namespace));
      several->parts.push_back(next);
    }
    return several;
  }

  Parsed<Target*> single_target(bool with_namespace) {
    const Nesting nesting(depth_);
    if (nesting.too_deep()) return error("assignment is nested too deep");
    if (skip_operator("(")) {
      OCTET_TRY(Target* const inner, target("", with_namespace));
      OCTET_TRY_VOID(expect_operator(")"));
      return inner;
    }
    OCTET_TRY(const NameId name, assignable_name());
    Target* const made = &program_.targets.emplace_back();
    made->name = name;
    if (with_namespace && skip_operator(".")) {
      OCTET_TRY(made->attribute, expect_name());
    }
    return made;
  }

  std::vector<Open> open_;
  int loops_ = 0;
};

}  // namespace

std::expected<Program, SyntaxError> parse(std::string_view source) {
  auto tokens = tokenize(source);
  if (!tokens) return std::unexpected(std::move(tokens).error());
  Program program;
  if (auto status = Parser(*std::move(tokens), program).run(); !status) {
    return std::unexpected(std::move(status).error());
  }
  return program;
}

}  // namespace octet::text::jinja
