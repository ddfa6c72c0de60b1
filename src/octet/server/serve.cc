#include "octet/server/serve.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "octet/base/check.h"
#include "octet/base/json.h"
#include "octet/base/log.h"
#include "octet/server/openai_api.h"
#include "octet/server/request_log.h"
#include "octet/server/router.h"
#include "octet/server/service.h"
#include "octet/server/stats_line.h"

namespace octet::server {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kDrainPoll{20};
constexpr std::chrono::seconds kCutGrace{2};  // for clients to take the last event of a stream that was cut
constexpr std::chrono::seconds kStatsInterval{10};

// SIGINT, SIGTERM and, where asked for, SIGHUP as something to wait for. Blocks them, for threads that start later too.
class Signals {
 public:
  explicit Signals(bool hangup) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (hangup) sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    other_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    OCTET_CHECK(signals_ >= 0 && other_ >= 0);
  }
  ~Signals() {
    ::close(signals_);
    ::close(other_);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Ends a wait() without a signal. Any thread.
  void interrupt() {
    const std::uint64_t one = 1;
    OCTET_CHECK(::write(other_, &one, sizeof one) == sizeof one);
  }

  // The next signal; 0: interrupted, or the time is over.
  int wait(int timeout_ms = -1) {
    pollfd waits[] = {{signals_, POLLIN, 0}, {other_, POLLIN, 0}};
    while (::poll(waits, 2, timeout_ms) < 0) {
    }
    std::uint64_t interrupts = 0;
    [[maybe_unused]] const ssize_t taken = ::read(other_, &interrupts, sizeof interrupts);
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) == sizeof info) return static_cast<int>(info.ssi_signo);
    return 0;
  }

 private:
  int signals_ = -1, other_ = -1;
};

// Every connection takes a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// On a terminal one line that is rewritten, else a log line per phase, and one every ten seconds of a long one.
class LoadProgress {
 public:
  void operator()(std::string_view phase, std::int64_t done, std::int64_t total) {
    const auto now = Clock::now();
    if (phase != phase_) {
      finish();
      phase_ = phase;
      begin_ = now;
      next_ = terminal_ ? now : now + kLogInterval;
      if (!terminal_) log_info("loading: {}", phase_);
    }
    if ((done < total || !terminal_) && now < next_) return;
    next_ = now + (terminal_ ? kTerminalInterval : kLogInterval);
    if (!terminal_) return log_info("loading: {}", state(done, total, now));
    if (total > 0) {
      fmt::print(stderr, "\rloading: {} ", state(done, total, now));
    } else {
      fmt::print(stderr, "\rloading: {} ", phase_);
    }
    std::fflush(stderr);
    open_ = true;
  }
  void finish() {
    if (open_) fmt::print(stderr, "\n");
    open_ = false;
  }

 private:
  static constexpr std::chrono::milliseconds kTerminalInterval{100}, kLogInterval{10'000};

  std::string state(std::int64_t done, std::int64_t total, Clock::time_point now) const {
    if (total <= 0) return phase_;
    const double seconds = std::max(1e-3, std::chrono::duration<double>(now - begin_).count());
    return fmt::format("{} {:3d} % of {:.0f} MB, {:.0f} MB/s", phase_, done * 100 / total,
                       static_cast<double>(total) / 1e6, static_cast<double>(done) / 1e6 / seconds);
  }

  const bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::string phase_;
  Clock::time_point begin_{}, next_{};
  bool open_ = false;
};

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// An address that a client on this machine can use.
std::string client_url(std::string url) {
  for (const auto& [all, own] : {std::pair{"://0.0.0.0:", "://127.0.0.1:"}, std::pair{"://[::]:", "://[::1]:"}}) {
    if (const std::size_t at = url.find(all); at != std::string::npos) url.replace(at, std::strlen(all), own);
  }
  return url;
}

void announce(const ServeOptions& options, const HttpServer& http, const Service& service) {
  const engine::Replica& replica = *service.model()->replica;
  std::string urls;
  for (const std::string& url : http.urls()) urls += (urls.empty() ? "" : ", ") + url;
  fmt::print(
      "octet {} serves {} on {} ({}; weights {:.0f} MB; KV cache {:.0f} MB = {} tokens, {:.1f} requests of the full "
      "context of {} tokens)\n",
      OCTET_VERSION, service.names_text(), urls, replica.backend, static_cast<double>(replica.weight_bytes) / 1e6,
      static_cast<double>(replica.kv_bytes) / 1e6, replica.kv_tokens,
      static_cast<double>(replica.kv_tokens) / std::max(1, replica.max_model_len), replica.max_model_len);
  const std::string url = options.http.unix_path.empty() ? client_url(http.urls().front()) : http.urls().front();
  std::string example = example_curl(url, service.names().front(), replica, options.http.tls.has_value());
  if (!options.front.api_keys.empty()) example += " -H 'Authorization: Bearer KEY'";
  fmt::print("{}\n", example);
  if (options.front.chat_page && options.http.unix_path.empty()) fmt::print("chat page: {}/\n", url);
  std::fflush(stdout);
}

class Lifetime {
 public:
  explicit Lifetime(const ServeOptions& options)
      : options_(options),
        signals_(options.http.tls.has_value()),
        service_(options.names.empty() ? std::vector<std::string>{options.replica.model.string()} : options.names,
                 options.watchdog),
        api_(service_, options.api),
        front_(router_, options.front),
        log_(options.api.log, router_, front_, service_) {
    api_.add_routes(router_);
  }

  int run(const ReplicaLoader& load) {
    auto bound = HttpServer::bind(options_.http, log_);
    if (!bound) {
      fmt::print(stderr, "octet serve: {}\n", bound.error().message);
      return 1;
    }
    http_ = *std::move(bound);
    http_->start();
    for (const std::string& url : http_->urls()) log_info("listening on {}", url);
    const std::optional<int> ended = load_model(load);
    int status = 0;
    if (ended) {
      status = *ended;
    } else {
      std::optional<StatsLog> stats;
      if (options_.log_stats) stats.emplace(service_, kStatsInterval);
      status = serve_until_signal();
    }
    http_->stop();
    api_.stop();
    return status;
  }

 private:
  // A value: the exit status with which the server ends.
  std::optional<int> load_model(const ReplicaLoader& load) {
    engine::ReplicaOptions options = options_.replica;
    LoadProgress progress;
    options.progress = [&progress](std::string_view phase, std::int64_t done, std::int64_t total) {
      progress(phase, done, total);
    };
    std::optional<Result<std::unique_ptr<engine::Replica>>> loaded;
    std::thread loader([&] {
      loaded.emplace(load(options));
      signals_.interrupt();
    });
    if (const int signal = wait_for_end(); signal != 0) {
      // Nothing has been served that could be lost, and a load cannot be cut short otherwise.
      http_->stop();
      std::_Exit(128 + signal);
    }
    loader.join();
    progress.finish();
    if (!*loaded) {
      fmt::print(stderr, "octet serve: {}\n", loaded->error().message);
      return 1;
    }
    service_.publish(std::move(**loaded));
    announce(options_, *http_, service_);
    return std::nullopt;
  }

  // The signal to end; 0: interrupted.
  int wait_for_end() {
    int signal = signals_.wait();
    for (; signal == SIGHUP; signal = signals_.wait()) {
      if (const auto reloaded = http_->reload_certificate()) {
        log_info("the certificate was read again");
      } else {
        log_error("the certificate stays what it was: {}", reloaded.error().message);
      }
    }
    return signal;
  }

  int serve_until_signal() {
    while (wait_for_end() == 0) {
    }
    const auto deadline = Clock::now() + options_.shutdown_timeout;
    log_info("shutting down: {} requests to finish, at most {} s; a second signal ends at once",
             http_->busy_connections(), options_.shutdown_timeout.count() / 1000);
    service_.begin_drain();
    http_->drain();
    while (!http_->wait_idle(Clock::now() + kDrainPoll)) {
      if (const int again = signals_.wait(0); again != 0 && again != SIGHUP) return 128 + again;
      if (Clock::now() >= deadline) {
        log_warning("{} requests were cut off", http_->busy_connections());
        http_->cut();
        http_->wait_idle(Clock::now() + kCutGrace);
        return 1;
      }
    }
    return 0;
  }

  const ServeOptions& options_;
  Signals signals_;
  BackgroundLog background_;  // its thread, too, leaves signals to signals_
  Service service_;
  OpenAiApi api_;
  Router router_;
  Front front_;
  RequestLog log_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace

std::string example_curl(const std::string& url, const std::string& name, const engine::Replica& replica, bool tls) {
  Json body;
  body["model"] = name;
  std::string path = "/v1/completions";
  if (!replica.chat_templates.empty() && replica.tokenizer) {
    path = "/v1/chat/completions";
    body["messages"] = Json::array({{{"role", "user"}, {"content", "What is the capital of France?"}}});
  } else if (replica.tokenizer) {
    body["prompt"] = "The capital of France is";
  } else {
    body["prompt"] = Json::array({1, 2, 3});
    body["return_token_ids"] = true;
  }
  body["temperature"] = 0;
  body["max_tokens"] = 64;
  constexpr std::string_view kUnix = "unix:";
  const std::string target = url.starts_with(kUnix)
                                 ? fmt::format("--unix-socket {} http{}://localhost{}",
                                               shell_quoted(url.substr(kUnix.size())), tls ? "s" : "", path)
                                 : fmt::format("{}{}", url.find('[') == std::string::npos ? url : "-g " + url, path);
  return fmt::format("curl {} -H 'Content-Type: application/json' -d {}", target, shell_quoted(dump_json(body)));
}

int serve(const ServeOptions& options, const ReplicaLoader& load) {
  raise_descriptor_limit();
  Lifetime lifetime(options);
  return lifetime.run(load);
}

}  // namespace octet::server
