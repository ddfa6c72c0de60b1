// The token cursor and node pools that the two halves of the parser share.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "octet/text/jinja/ast.h"
#include "octet/text/jinja/lexer.h"

namespace octet::text::jinja {

template <typename T = void>
using Parsed = std::expected<T, SyntaxError>;

class ParserBase {
 protected:
  ParserBase(std::vector<Token> tokens, Program& program) : tokens_(std::move(tokens)), program_(program) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void advance() { at_ = std::min(at_ + 1, tokens_.size() - 1); }
  bool is(TokenKind kind) const { return current().kind == kind; }
  bool is_operator(std::string_view text) const { return is(TokenKind::kOperator) && current().text == text; }
  bool is_name(std::string_view text) const { return is(TokenKind::kName) && current().text == text; }
  bool skip_operator(std::string_view text) { return is_operator(text) && (advance(), true); }
  bool skip_name(std::string_view text) { return is_name(text) && (advance(), true); }

  std::unexpected<SyntaxError> error(std::string message) const { return error_at(current().line, std::move(message)); }
  static std::unexpected<SyntaxError> error_at(int line, std::string message) {
    return std::unexpected(SyntaxError{std::move(message), line});
  }

  // What a token is called in messages.
  static std::string describe(const Token& token) {
    switch (token.kind) {
      case TokenKind::kData:
        return "template data / text";
      case TokenKind::kVariableBegin:
        return "begin of print statement";
      case TokenKind::kVariableEnd:
        return "end of print statement";
      case TokenKind::kBlockBegin:
        return "begin of statement block";
      case TokenKind::kBlockEnd:
        return "end of statement block";
      case TokenKind::kEnd:
        return "end of template";
      default:
        return token.text;
    }
  }

  Parsed<> expect_operator(std::string_view text) {
    if (!skip_operator(text)) return unexpected_token(text);
    return {};
  }
  Parsed<> expect(TokenKind kind) {
    if (!is(kind)) return unexpected_token(describe({kind, "", 0}));
    advance();
    return {};
  }
  Parsed<std::string> expect_name() {
    if (!is(TokenKind::kName)) return unexpected_token("name");
    std::string name = current().text;
    advance();
    return name;
  }
  std::unexpected<SyntaxError> unexpected_token(std::string_view expected) const {
    if (is(TokenKind::kEnd)) return error(fmt::format("unexpected end of template, expected '{}'.", expected));
    return error(fmt::format("expected token '{}', got '{}'", expected, describe(current())));
  }

  Expression* make(Expression::Type type, int line) {
    program_.expressions.emplace_back();
    program_.expressions.back().type = type;
    program_.expressions.back().line = line;
    return &program_.expressions.back();
  }
  Expression* make(Expression::Type type, int line, std::vector<Expression*> children) {
    Expression* made = make(type, line);
    made->children = std::move(children);
    return made;
  }
  Expression* constant(Value value, int line) {
    Expression* made = make(Expression::Type::kConstant, line);
    made->constant = std::move(value);
    return made;
  }
  NameId intern(const std::string& name) {
    const auto [it, added] = ids_.emplace(name, static_cast<NameId>(program_.names.size()));
    if (added) program_.names.push_back(name);
    return it->second;
  }

  static constexpr int kMaxNesting = 300;
  // Counts nesting for as long as it lives.
  struct Nesting {
    explicit Nesting(int& counter) : depth(counter) { ++depth; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting() { --depth; }
    bool too_deep() const { return depth > kMaxNesting; }
    int& depth;
  };

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Program& program_;
  std::unordered_map<std::string, NameId> ids_;
};

}  // namespace octet::text::jinja
