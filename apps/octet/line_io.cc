#include "apps/octet/line_io.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

using octet::ErrorCode;
using octet::fail;
using octet::Result;

namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;

// The next bytes of standard input into the buffer; 0 at its end.
Result<std::size_t> read_block(std::vector<char>& buffer) {
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) return fail(ErrorCode::kIo, "standard input: {}", std::strerror(errno));
  }
}

Result<> write_text(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return {};
  return fail(ErrorCode::kIo, "standard output: {}", std::strerror(errno));
}

Result<> flush() {
  if (std::fflush(stdout) == 0) return {};
  return fail(ErrorCode::kIo, "standard output: {}", std::strerror(errno));
}

Result<> answer_line(std::string_view line, const std::function<std::string(std::string_view)>& answer) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find_first_not_of(" \t") == std::string_view::npos) return {};
  std::string text = answer(line);
  text += '\n';
  return write_text(text);
}

}  // namespace

Result<std::string> read_input(std::size_t max_bytes) {
  std::string text;
  std::vector<char> buffer(kBlock);
  for (;;) {
    OCTET_TRY(const std::size_t count, read_block(buffer));
    if (count == 0) return text;
    if (text.size() + count > max_bytes) {
      return fail(ErrorCode::kInvalid, "standard input: more than {} bytes; --jsonl takes any number of lines",
                  max_bytes);
    }
    text.append(buffer.data(), count);
  }
}

Result<> answer_lines(std::size_t max_line_bytes, const std::function<std::string(std::string_view)>& answer) {
  std::vector<char> buffer(kBlock);
  std::string pending;  // a line whose end has not come
  for (;;) {
    OCTET_TRY_VOID(flush());
    OCTET_TRY(const std::size_t count, read_block(buffer));
    if (count == 0) break;
    std::string_view rest(buffer.data(), count);
    for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
      std::string_view line = rest.substr(0, end);
      if (!pending.empty()) {
        pending += line;
        line = pending;
      }
      OCTET_TRY_VOID(answer_line(line, answer));
      pending.clear();
    }
    pending += rest;
    if (pending.size() > max_line_bytes) {
      return fail(ErrorCode::kInvalid, "standard input: a line of more than {} bytes", max_line_bytes);
    }
  }
  OCTET_TRY_VOID(answer_line(pending, answer));
  return flush();
}

std::string json_line(const octet::Json& value) {
  const std::string text = octet::dump_json(value);
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    const bool two = rest.starts_with("\xC2\x85"),
               three = rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9");
    if (two) {
      out += "\\u0085";
    } else if (three) {
      out += rest[2] == '\xA8' ? "\\u2028" : "\\u2029";
    } else {
      out += rest[0];
    }
    at += two ? 2 : three ? 3 : 1;
  }
  return out;
}

Result<> print_output(std::string_view text) {
  OCTET_TRY_VOID(write_text(text));
  return flush();
}
