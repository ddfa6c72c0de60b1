#include "octet/server/http_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/status.hpp>

#include "octet/base/utf8.h"

namespace octet::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// What a client sends that takes the server for a proxy: "http://host/path" is "/path".
std::string_view origin_form(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() < scheme.size() || lower(target.substr(0, scheme.size())) != scheme) continue;
    const std::size_t end = target.find_first_of("/?", scheme.size());
    if (end == std::string_view::npos) return "/";
    return target.substr(end);
  }
  return target;
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (!is_valid_utf8(out)) return std::nullopt;
  return out;
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::string_view reason_phrase(int status) {
  const auto phrase = http::obsolete_reason(static_cast<http::status>(status));
  return {phrase.data(), phrase.size()};
}

namespace {

// "POST /v1/completions?a=b": method, path and query. False: the target is none.
bool read_target(std::string_view target, HttpRequest& into) {
  std::string_view rest = origin_form(target);
  if (const auto mark = rest.find('?'); mark != std::string_view::npos) {
    into.query = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  auto path = percent_decode(rest.empty() ? "/" : rest);
  if (path) into.path = *std::move(path);
  return path.has_value();
}

bool is_visible(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
}

// The whole lines of a head that has not come whole, or is too large. Nothing where they are none of HTTP's.
HttpRequest read_lines(std::string_view head, std::size_t max_lines) {
  constexpr std::string_view kEnd = "\r\n";
  HttpRequest out;
  std::size_t end = head.find(kEnd);
  if (end == std::string_view::npos || !is_visible(head.substr(0, end))) return out;
  const std::string_view first = head.substr(0, end);
  const std::size_t space = first.find(' '), last = first.rfind(' ');
  if (space == last || !first.substr(last + 1).starts_with("HTTP/1.")) return out;
  if (!read_target(first.substr(space + 1, last - space - 1), out)) return out;
  out.method = first.substr(0, space);
  for (std::size_t i = 0; i < max_lines; ++i) {
    head.remove_prefix(end + kEnd.size());
    end = head.find(kEnd);
    if (end == std::string_view::npos) break;
    const std::string_view line = head.substr(0, end);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_visible(line)) break;
    const std::size_t value = std::min(line.find_first_not_of(' ', colon + 1), line.size());
    out.headers.emplace_back(lower(line.substr(0, colon)), line.substr(value));
  }
  return out;
}

}  // namespace

// Beast's parser, writing straight into an HttpRequest.
class HttpParser::Messages final : public http::basic_parser<true> {
 public:
  explicit Messages(const HttpLimits& limits) : limits_(limits) {
    header_limit(static_cast<std::uint32_t>(limits.header_bytes));
    body_limit(limits.body_bytes);
  }

  HttpRequest request;
  bool too_many_headers = false;
  bool unknown_coding = false;

 private:
  void on_request_impl(http::verb, beast::string_view method, beast::string_view target, int version,
                       beast::error_code& ec) override {
    request.method.assign(method.data(), method.size());
    request.http11 = version >= 11;
    if (!read_target({target.data(), target.size()}, request)) ec = http::error::bad_target;
  }
  void on_response_impl(int, beast::string_view, int, beast::error_code&) override {}
  void on_field_impl(http::field, beast::string_view name, beast::string_view value, beast::error_code& ec) override {
    if (request.headers.size() >= limits_.header_count) {
      too_many_headers = true;
      ec = http::error::header_limit;
      return;
    }
    request.headers.emplace_back(lower({name.data(), name.size()}), std::string(value.data(), value.size()));
  }
  // Beast takes an unknown coding for an empty body, and would read the body as the next request.
  void on_header_impl(beast::error_code& ec) override {
    for (const auto& [name, value] : request.headers) {
      if (name != "transfer-encoding" || lower(value) == "chunked") continue;
      unknown_coding = true;
      ec = http::error::bad_transfer_encoding;
    }
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, beast::error_code&) override {}
  std::size_t on_body_impl(beast::string_view body, beast::error_code&) override {
    request.body.append(body.data(), body.size());
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, beast::error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body, beast::error_code&) override {
    request.body.append(body.data(), body.size());
    return body.size();
  }
  void on_finish_impl(beast::error_code&) override {}

  const HttpLimits& limits_;
};

HttpParser::HttpParser(const HttpLimits& limits) : limits_(limits), messages_(std::make_unique<Messages>(limits)) {}
HttpParser::~HttpParser() = default;

HttpParser::State HttpParser::feed(std::string& input) {
  beast::error_code ec;
  std::size_t used = 0;
  while (state_ != State::kFailed && state_ != State::kDone && used < input.size()) {
    if (state_ == State::kStart) state_ = State::kHeaders;
    const std::size_t taken = messages_->put(asio::const_buffer(input.data() + used, input.size() - used), ec);
    used += taken;
    if (state_ == State::kHeaders) header_bytes_ += taken;
    // What Beast leaves behind is part of a header line or of a chunk header; both are bounded by the same limit.
    const std::size_t unread = ec == http::error::need_more ? input.size() - used : 0;
    const std::size_t counted = state_ == State::kHeaders ? header_bytes_ + unread : unread;
    if (counted > limits_.header_bytes) ec = http::error::header_limit;
    if (ec == http::error::need_more) break;
    if (ec) {
      fail(ec.message(), ec == http::error::header_limit, ec == http::error::body_limit);
      break;
    }
    if (messages_->is_header_done() && state_ == State::kHeaders) {
      state_ = State::kBody;
      messages_->eager(true);
    }
    if (messages_->is_done()) state_ = State::kDone;
  }
  input.erase(0, used);
  return state_;
}

void HttpParser::fail(std::string_view reason, bool header_limit, bool body_limit) {
  state_ = State::kFailed;
  if (messages_->too_many_headers) {
    failure_ = {431, fmt::format("more than the limit of {} header fields", limits_.header_count)};
  } else if (messages_->unknown_coding) {
    failure_ = {501, "the only Transfer-Encoding taken is chunked"};
  } else if (header_limit) {
    failure_ = {431, fmt::format("request line and headers exceed the limit of {} bytes", limits_.header_bytes)};
  } else if (body_limit) {
    failure_ = {413, fmt::format("the body exceeds the limit of {} bytes", limits_.body_bytes)};
  } else {
    failure_ = {400, fmt::format("not a valid HTTP request: {}", reason)};
  }
}

bool HttpParser::expects_continue() const {
  return state_ == State::kBody && messages_->request.http11 &&
         lower(messages_->request.header("expect")) == "100-continue";
}

std::size_t HttpParser::body_size() const { return messages_->request.body.size(); }

HttpRequest HttpParser::begun(std::string_view unread) {
  if (messages_->request.method.empty()) return read_lines(unread, limits_.header_count);
  messages_->request.body.clear();
  return std::move(messages_->request);
}

HttpRequest HttpParser::take() {
  messages_->request.keep_alive = messages_->keep_alive();
  return std::move(messages_->request);
}

}  // namespace octet::server
