#include "apps/octet/template_flag.h"

#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <optional>

#include "octet/base/file.h"
#include "octet/base/utf8.h"
#include "octet/text/chat_template.h"
#include "octet/text/unicode.h"

using octet::ErrorCode;
using octet::fail;
using octet::Result;

namespace {

constexpr std::size_t kMaxTemplateBytes = std::size_t{4} << 20;

std::optional<char> plain_escape(char letter) {
  constexpr std::string_view kLetters = "ntr\\'\"", kMeant = "\n\t\r\\'\"";
  const std::size_t at = kLetters.find(letter);
  return at == std::string_view::npos ? std::nullopt : std::optional(kMeant[at]);
}

// Backslash escapes of Python; an unknown one stays as it is.
std::string unescape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text[0] != '\\' || text.size() < 2) {
      out += text[0];
      text.remove_prefix(1);
      continue;
    }
    if (const auto meant = plain_escape(text[1])) {
      out += *meant;
      text.remove_prefix(2);
      continue;
    }
    const std::size_t digits = text[1] == 'x' ? 2 : text[1] == 'u' ? 4 : text[1] == 'U' ? 8 : 0;
    std::uint32_t code = 0;
    const char* const begin = text.data() + 2;
    const bool good = digits > 0 && text.size() >= 2 + digits &&
                      std::from_chars(begin, begin + digits, code, 16).ptr == begin + digits;
    if (good) octet::text::append_code_point(out, code);
    out += good ? "" : "\\";
    text.remove_prefix(good ? 2 + digits : 1);
  }
  return out;
}

// Reads digits, at most `most` of them, and the mark behind them.
bool take_number(std::string_view& text, std::size_t most, int& value) {
  const std::size_t size = std::min(text.find_first_not_of("0123456789"), text.size());
  if (size == 0 || size > most) return false;
  std::from_chars(text.data(), text.data() + size, value);
  text.remove_prefix(size);
  return true;
}

bool take_mark(std::string_view& text, std::string_view marks) {
  if (text.empty() || marks.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// "Z", "+01:00", "-0500": seconds east of Greenwich.
bool take_offset(std::string_view& text, int& seconds) {
  if (take_mark(text, "Zz")) return true;
  const bool west = text.starts_with('-');
  if (!take_mark(text, "+-") || text.size() < 4) return false;
  std::string_view hour_text = text.substr(0, 2);
  text.remove_prefix(2);
  take_mark(text, ":");
  int hours = 0, minutes = 0;
  if (!take_number(hour_text, 2, hours) || !take_number(text, 2, minutes) || hours > 23 || minutes > 59) return false;
  seconds = (hours * 60 + minutes) * (west ? -60 : 60);
  return true;
}

std::optional<std::int64_t> calendar_time(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, offset = 0;
  if (!take_number(text, 4, year) || !take_mark(text, "-") || !take_number(text, 2, month) || !take_mark(text, "-") ||
      !take_number(text, 2, day)) {
    return std::nullopt;
  }
  if (take_mark(text, "T ")) {
    if (!take_number(text, 2, hour) || !take_mark(text, ":") || !take_number(text, 2, minute)) return std::nullopt;
    if (take_mark(text, ":") && !take_number(text, 2, second)) return std::nullopt;
  }
  const bool is_moment = !text.empty();
  if (is_moment && !take_offset(text, offset)) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!text.empty() || !date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const std::int64_t time = ((days * 24 + hour) * 60 + minute) * 60 + second;
  return is_moment ? octet::text::local_time(time - offset) : time;
}

}  // namespace

Result<std::string> chat_template_source(const std::string& value) {
  std::error_code error;
  if (std::filesystem::exists(value, error)) {
    auto text = octet::read_file(value, kMaxTemplateBytes);
    if (!text) return within("--chat-template", text.error());
    return text;
  }
  if (value.find_first_of("{}\n") == std::string::npos) {
    return fail(ErrorCode::kNotFound, "--chat-template {}: there is no such file, and a template it is not either",
                value);
  }
  return unescape(value);
}

Result<std::int64_t> parse_time(std::string_view text) {
  std::int64_t seconds = 0;
  constexpr std::int64_t kLatest = 253402300799;  // the end of the year 9999
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size() && seconds >= 0 && seconds <= kLatest) {
    return octet::text::local_time(seconds);
  }
  if (const auto time = calendar_time(text)) return *time;
  return fail(ErrorCode::kInvalid, "--now {}: expected seconds since 1970 or a time such as 2025-03-14 09:26:53", text);
}
