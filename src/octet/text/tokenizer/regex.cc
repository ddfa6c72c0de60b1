#include "octet/text/tokenizer/regex.h"

#include <oniguruma.h>

#include <mutex>

#include "octet/text/unicode.h"

namespace octet::text {
namespace {

// Backtracking steps within one match. The published patterns need a few per character.
constexpr unsigned long kRetriesInMatch = 4'000'000;
constexpr unsigned long kRetriesInSearch = 50'000'000;  // over all places where a match may begin
constexpr unsigned int kStackLimit = 16'000'000;        // entries
constexpr std::size_t kMaxPattern = 256 << 10;

const OnigUChar* bytes_of(std::string_view text) { return reinterpret_cast<const OnigUChar*>(text.data()); }

std::string message_of(int code, OnigErrorInfo* info) {
  OnigUChar buffer[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length =
      info != nullptr ? onig_error_code_to_str(buffer, code, info) : onig_error_code_to_str(buffer, code);
  return {reinterpret_cast<const char*>(buffer), static_cast<std::size_t>(length)};
}

void start_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
  });
}

}  // namespace

struct Regex::Compiled {
  regex_t* regex = nullptr;
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    if (regex != nullptr) onig_free(regex);
  }
};

Regex::Regex(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kMaxPattern) {
    return fail(ErrorCode::kExhausted, "regex of {} bytes, more than {}", pattern.size(), kMaxPattern);
  }
  start_library();
  auto compiled = std::make_unique<Compiled>();
  OnigErrorInfo info{};
  const int code = onig_new(&compiled->regex, bytes_of(pattern), bytes_of(pattern) + pattern.size(), ONIG_OPTION_NONE,
                            ONIG_ENCODING_UTF8, ONIG_SYNTAX_RUBY, &info);
  if (code != ONIG_NORMAL) {
    compiled->regex = nullptr;
    return fail(ErrorCode::kInvalid, "regex \"{}\": {}", pattern.substr(0, 200), message_of(code, &info));
  }
  return Regex(std::move(compiled));
}

Result<> Regex::find_all(std::string_view text, FunctionRef<void(std::size_t, std::size_t)> found) const {
  const std::unique_ptr<OnigRegion, void (*)(OnigRegion*)> region(onig_region_new(),
                                                                  [](OnigRegion* old) { onig_region_free(old, 1); });
  const std::unique_ptr<OnigMatchParam, void (*)(OnigMatchParam*)> limits(onig_new_match_param(),
                                                                          &onig_free_match_param);
  onig_initialize_match_param(limits.get());
  onig_set_retry_limit_in_match_of_match_param(limits.get(), kRetriesInMatch);
  onig_set_retry_limit_in_search_of_match_param(limits.get(), kRetriesInSearch);
  onig_set_match_stack_limit_size_of_match_param(limits.get(), kStackLimit);
  const OnigUChar* const begin = bytes_of(text);
  const OnigUChar* const end = begin + text.size();
  std::size_t from = 0, last_end = text.size() + 1;
  while (from <= text.size()) {
    const int at = onig_search_with_param(compiled_->regex, begin, end, begin + from, end, region.get(),
                                          ONIG_OPTION_NONE, limits.get());
    if (at == ONIG_MISMATCH) return {};
    if (at < 0) {
      const bool limit = at == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER || at == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER ||
                         at == ONIGERR_MATCH_STACK_LIMIT_OVER;
      return fail(limit ? ErrorCode::kExhausted : ErrorCode::kInvalid, "splitting the text: {}",
                  message_of(at, nullptr));
    }
    const auto match_begin = static_cast<std::size_t>(region->beg[0]),
               match_end = static_cast<std::size_t>(region->end[0]);
    const bool empty = match_begin == match_end;
    // An empty match right behind the last one is none.
    if (!empty || match_end != last_end) found(match_begin, match_end);
    last_end = match_end;
    from = match_end;
    if (empty) from += from < text.size() ? code_point_at(text, from).length : 1;
  }
  return {};
}

}  // namespace octet::text
