#include "apps/octet/hub_transfer.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <random>
#include <thread>

#include "octet/base/log.h"

namespace octet::hub {
namespace {

using std::chrono::milliseconds;

constexpr long kConnectSeconds = 15;
constexpr long kMaxRedirects = 10;
constexpr long kBufferBytes = 512 << 10;
constexpr std::size_t kMaxErrorBytes = 4096;
constexpr int kTries = 6;       // without a byte of progress between them
constexpr int kFirstTries = 3;  // where nothing was ever reached
constexpr milliseconds kFirstWait{500}, kLongestWait{30'000}, kLongestAsked{600'000}, kSlice{50};
constexpr milliseconds kNoticeable{5'000};  // a wait that a person should be told of

void start_library() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(started);
}

bool is_passing(long status) {
  return status == 408 || status == 425 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

// Faults of the line, which the next try may not meet; not those of names, certificates and settings.
bool is_passing(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

// Is there nobody at that address, or no way to it?
bool is_unreachable(CURLcode code) {
  return code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT;
}

bool same_letters(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// "55", or a date; within bounds.
milliseconds seconds_asked(const std::string& value) {
  std::int64_t seconds = 0;
  const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (fault != std::errc() || end != value.data() + value.size()) {
    seconds = curl_getdate(value.c_str(), nullptr) - std::time(nullptr);
  }
  const std::int64_t longest = kLongestAsked.count() / 1000;
  return milliseconds(std::clamp<std::int64_t>(seconds, 0, longest) * 1000);
}

// "bytes 100-199/1000"
bool is_range_of(std::string_view text, std::int64_t begin, std::int64_t total) {
  return text.starts_with(fmt::format("bytes {}-", begin)) && text.ends_with(fmt::format("/{}", total));
}

}  // namespace

struct Connection::State {
  // One request as the library's callbacks see it.
  struct Transfer {
    Reply reply;
    std::size_t max_bytes = kMaxErrorBytes;
    std::string content_range;
    milliseconds asked_wait{0};
    // Of ranges:
    const Sink* sink = nullptr;
    std::int64_t begin = 0, end = 0, total = 0;
    std::int64_t position = 0;  // in the file, of the next byte that comes
    std::optional<Error> error;
  };

  State(const Settings& the_settings, std::function<bool()> asked_to_stop)
      : settings(the_settings), stopped(std::move(asked_to_stop)) {
    start_library();
    curl = curl_easy_init();
    if (!settings.token.empty()) {
      headers = curl_slist_append(nullptr, ("Authorization: Bearer " + settings.token).c_str());
    }
  }
  ~State() {
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
  }

  void set_up(Transfer& transfer, const std::string& url);
  CURLcode perform(Transfer& transfer, const std::string& url);
  Error line_error(CURLcode code, const std::string& url) const;
  // False: asked to stop meanwhile.
  bool wait(milliseconds time) const;
  // Repeats `once` until its transfer ends for good. `once` prepares a transfer; progress() starts the count anew.
  Result<Reply> repeat(const std::string& url, const std::function<void(Transfer&)>& prepare,
                       const std::function<std::int64_t()>& progress);

  static std::size_t on_header(char* data, std::size_t one, std::size_t size, void* target);
  static std::size_t on_body(char* data, std::size_t one, std::size_t size, void* target);
  static std::size_t on_range(Transfer& transfer, std::span<const std::byte> bytes);

  const Settings& settings;
  std::function<bool()> stopped;
  CURL* curl = nullptr;
  curl_slist* headers = nullptr;
  bool connected = false;  // to anyone, once
  char message[CURL_ERROR_SIZE] = {};
  std::minstd_rand random{std::random_device{}()};
};

std::size_t Connection::State::on_header(char* data, std::size_t one, std::size_t size, void* target) {
  auto& transfer = *static_cast<Transfer*>(target);
  std::string_view line(data, one * size);
  if (line.starts_with("HTTP/")) {  // of each answer on the way
    const std::size_t space = line.find(' ');
    transfer.reply.status = 0;
    if (space != line.npos) {
      std::from_chars(line.data() + space + 1, line.data() + line.size(), transfer.reply.status);
    }
    transfer.reply.error_code.clear();
    transfer.reply.error_message.clear();
    transfer.content_range.clear();
    transfer.asked_wait = milliseconds(0);
    return size;
  }
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return size;
  const std::string_view name = line.substr(0, colon);
  std::string value(line.substr(colon + 1));
  value.erase(0, value.find_first_not_of(" \t"));
  value.erase(value.find_last_not_of(" \t\r\n") + 1);
  if (same_letters(name, "x-error-code")) transfer.reply.error_code = value;
  if (same_letters(name, "x-error-message")) transfer.reply.error_message = value;
  if (same_letters(name, "content-range")) transfer.content_range = value;
  if (same_letters(name, "retry-after")) transfer.asked_wait = seconds_asked(value);
  // The hub's own: "api";r=0;t=55, with the seconds until there are requests again.
  if (same_letters(name, "ratelimit") && transfer.reply.status == 429) {
    const std::size_t at = value.find(";t=");
    if (at != value.npos) transfer.asked_wait = std::max(transfer.asked_wait, seconds_asked(value.substr(at + 3)));
  }
  return size;
}

// Bytes of a file. A server that knows no ranges sends all of it: what was not asked for is passed over.
std::size_t Connection::State::on_range(Transfer& transfer, std::span<const std::byte> bytes) {
  const std::size_t taken = bytes.size();
  if (transfer.reply.status == 206 && transfer.position == transfer.begin &&
      !is_range_of(transfer.content_range, transfer.begin, transfer.total)) {
    transfer.error = Error{ErrorCode::kIo, fmt::format("asked for bytes from {} of {}, the server sends {}",
                                                       transfer.begin, transfer.total, transfer.content_range)};
    return 0;
  }
  const auto skipped = std::min<std::int64_t>(std::max<std::int64_t>(transfer.begin - transfer.position, 0),
                                              static_cast<std::int64_t>(bytes.size()));
  transfer.position += skipped;
  bytes = bytes.subspan(static_cast<std::size_t>(skipped));
  const std::int64_t left = std::max<std::int64_t>(transfer.end - transfer.position, 0);
  const bool surplus = static_cast<std::int64_t>(bytes.size()) > left;
  if (surplus) bytes = bytes.first(static_cast<std::size_t>(left));
  if (!bytes.empty()) {
    auto stored = (*transfer.sink)(bytes);
    if (!stored) {
      transfer.error = std::move(stored).error();
      return 0;
    }
    transfer.position += static_cast<std::int64_t>(bytes.size());
  }
  return surplus ? 0 : taken;
}

std::size_t Connection::State::on_body(char* data, std::size_t one, std::size_t size, void* target) {
  auto& transfer = *static_cast<Transfer*>(target);
  size *= one;
  const long status = transfer.reply.status;
  if (transfer.sink != nullptr && (status == 200 || status == 206)) {
    if (status == 206 && transfer.position == 0) transfer.position = transfer.begin;
    return on_range(transfer, std::as_bytes(std::span(data, size)));
  }
  std::string& body = transfer.reply.body;
  if (body.size() + size > transfer.max_bytes) {
    if (status >= 400) return size;  // enough for a message
    transfer.error = Error{ErrorCode::kIo, fmt::format("the answer has more than {} bytes", transfer.max_bytes)};
    return 0;
  }
  body.append(data, size);
  return size;
}

void Connection::State::set_up(Transfer& transfer, const std::string& url) {
  curl_easy_reset(curl);  // keeps its open connections
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "octet/" OCTET_VERSION);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  const bool secure = url.starts_with("https:");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMaxRedirects);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings.stall.count()));
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kBufferBytes);
  if (!settings.certificates.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, settings.certificates.c_str());
  // The library leaves this header out where a redirect leads to another host, port or protocol.
  if (headers != nullptr) curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
  curl_easy_setopt(
      curl, CURLOPT_XFERINFOFUNCTION, +[](void* state, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
        return static_cast<State*>(state)->stopped() ? 1 : 0;
      });
}

CURLcode Connection::State::perform(Transfer& transfer, const std::string& url) {
  set_up(transfer, url);
  const std::string range = fmt::format("{}-{}", transfer.begin, transfer.end - 1);
  if (transfer.sink != nullptr) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  message[0] = '\0';
  const CURLcode code = curl_easy_perform(curl);
  long redirects = 0;
  curl_easy_getinfo(curl, CURLINFO_REDIRECT_COUNT, &redirects);
  transfer.reply.redirected = redirects > 0;
  return code;
}

Error Connection::State::line_error(CURLcode code, const std::string& url) const {
  const std::string reason = message[0] != '\0' ? message : curl_easy_strerror(code);
  const bool certificate = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
  return {ErrorCode::kIo, fmt::format("{}: {}{}", url, reason,
                                      certificate ? "; SSL_CERT_FILE names the file of the authorities to trust" : "")};
}

bool Connection::State::wait(milliseconds time) const {
  const auto until = std::chrono::steady_clock::now() + time;
  while (!stopped()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= until) return true;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(until - now, kSlice));
  }
  return false;
}

Result<Reply> Connection::State::repeat(const std::string& url, const std::function<void(Transfer&)>& prepare,
                                        const std::function<std::int64_t()>& progress) {
  const std::unexpected<Error> cancelled = fail(ErrorCode::kCancelled, "stopped");
  milliseconds pause = kFirstWait;
  std::int64_t before = progress();
  for (int tries = 1;; ++tries) {
    Transfer transfer;
    prepare(transfer);
    const CURLcode code = perform(transfer, url);
    if (stopped()) return cancelled;
    connected = connected || !is_unreachable(code);
    if (transfer.error) return within(url, *transfer.error);
    const bool whole =
        transfer.sink != nullptr && transfer.reply.status / 100 == 2 && transfer.position == transfer.end;
    if (whole) return transfer.reply;
    const bool lapsed = transfer.sink != nullptr && transfer.reply.redirected && transfer.reply.status / 100 == 4;
    if (code == CURLE_OK && !is_passing(transfer.reply.status) && !lapsed &&
        (transfer.sink == nullptr || transfer.reply.status / 100 != 2)) {
      return transfer.reply;
    }
    if (code != CURLE_OK && !is_passing(code)) return std::unexpected(line_error(code, url));
    if (progress() > before) {
      before = progress();
      tries = 1;
      pause = kFirstWait;
    }
    if (tries == (connected ? kTries : kFirstTries)) {
      if (code != CURLE_OK) return std::unexpected(line_error(code, url));
      if (transfer.reply.status / 100 != 2) return transfer.reply;
      return fail(ErrorCode::kIo, "{}: the file ends before its length", url);
    }
    const std::string reason =
        code == CURLE_OK ? fmt::format("status {}", transfer.reply.status) : line_error(code, url).message;
    // Spread out, so that many clients do not come back together.
    const milliseconds spread{random() % static_cast<std::uint64_t>(pause.count() / 2 + 1)};
    const milliseconds time = std::max(transfer.asked_wait, pause + spread);
    log_message(tries < kFirstTries && time < kNoticeable ? LogLevel::kDebug : LogLevel::kWarning,
                fmt::format("{}: {}; again in {:.1f} s", url, reason, static_cast<double>(time.count()) / 1000));
    if (!wait(time)) return cancelled;
    pause = std::min(pause * 2, kLongestWait);
  }
}

Connection::Connection(const Settings& settings, std::function<bool()> stopped)
    : state_(std::make_unique<State>(settings, std::move(stopped))) {}
Connection::~Connection() = default;

Result<Reply> Connection::get(const std::string& url, std::size_t max_bytes) {
  return state_->repeat(url, [&](State::Transfer& transfer) { transfer.max_bytes = max_bytes; }, [] { return 0; });
}

Result<Reply> Connection::get_range(const std::string& url, std::int64_t begin, std::int64_t end, std::int64_t total,
                                    const Sink& sink) {
  std::int64_t at = begin;
  const Sink counting = [&](std::span<const std::byte> bytes) {
    auto stored = sink(bytes);
    if (stored) at += static_cast<std::int64_t>(bytes.size());
    return stored;
  };
  const auto prepare = [&](State::Transfer& transfer) {
    transfer.sink = &counting;
    transfer.begin = at;
    transfer.end = end;
    transfer.total = total;
  };
  return state_->repeat(url, prepare, [&] { return at; });
}

std::string url_encoded(std::string_view text, bool slashes) {
  constexpr std::string_view kPlain = "-._~";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kPlain.find(c) != kPlain.npos || (slashes && c == '/');
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace octet::hub
