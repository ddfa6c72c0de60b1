// The loaded replica as the server sees it: absent while it loads, closed to new requests while the server drains.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/engine/replica.h"
#include "octet/server/api_error.h"

namespace octet::server {

struct ServedModel {
  std::unique_ptr<engine::Replica> replica;
  std::size_t longest_token = 1;   // bytes that one token can stand for, at most
  std::string configuration_hash;  // for fingerprints
};

// Thread-safe.
class Service {
 public:
  // names: what clients may call the model; the first is its own. At least one.
  // watchdog: see alive(); none: the engine is never taken for stuck.
  explicit Service(std::vector<std::string> names,
                   std::optional<std::chrono::nanoseconds> watchdog = std::chrono::seconds(60));

  void publish(std::unique_ptr<engine::Replica> replica);  // it can serve from here on
  void begin_drain();                                      // no new requests from here on

  // Null while loading. Stays the same once it is there.
  std::shared_ptr<ServedModel> model() const;
  // Says why the server is not alive: its engine has had work and has made no progress for the watchdog's time.
  ApiResult<> alive() const;
  // The model if a new request may come, else 503 with Retry-After. admit() counts refusals.
  ApiResult<std::shared_ptr<ServedModel>> available() const;
  ApiResult<std::shared_ptr<ServedModel>> admit();
  void count_full_queue() { ++full_queue_; }

  // Answers by route and status; status 499: the client left before there was one.
  using AnswerCounts = std::map<std::pair<std::string, int>, std::uint64_t>;
  void count_answer(std::string_view route, int status);
  AnswerCounts answers() const;

  const std::vector<std::string>& names() const { return names_; }
  bool serves(std::string_view name) const;
  std::string names_text() const;                    // for messages
  std::int64_t created() const { return created_; }  // Unix time
  std::uint64_t rejected_unavailable() const { return unavailable_; }
  std::uint64_t rejected_full_queue() const { return full_queue_; }

 private:
  std::vector<std::string> names_;
  std::optional<std::chrono::nanoseconds> watchdog_;
  std::int64_t created_;
  mutable std::mutex mutex_;
  std::shared_ptr<ServedModel> model_;
  AnswerCounts answers_;
  std::atomic<bool> draining_ = false;
  std::atomic<std::uint64_t> unavailable_ = 0, full_queue_ = 0;
};

}  // namespace octet::server
