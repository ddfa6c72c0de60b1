// Regular expressions as the reference tokenizers use them: Oniguruma, Ruby syntax, UTF-8.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "octet/base/error.h"
#include "octet/base/function_ref.h"

namespace octet::text {

// Searching is thread-safe.
class Regex {
 public:
  // Error: the pattern does not compile; its message is Oniguruma's.
  static Result<Regex> compile(std::string_view pattern);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // Calls found(begin, end) for each match in UTF-8 text from left to right; they do not overlap, and may be empty.
  // Error: a match needs more backtracking than the limit allows.
  Result<> find_all(std::string_view text, FunctionRef<void(std::size_t begin, std::size_t end)> found) const;

 private:
  struct Compiled;
  explicit Regex(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace octet::text
