#include "octet/bench/load_run.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>

#include "octet/bench/lag_histogram.h"

namespace octet::bench {
namespace {

constexpr std::int64_t kTickNs = 100'000'000;  // between two looks at whether to stop

class LoadRun final : public TransportEvents {
 public:
  LoadRun(const Workload& workload, const LoadOptions& options, Transport& transport)
      : workload_(workload), options_(options), transport_(transport), start_ns_(transport.now_ns()) {
    free_since_.assign(static_cast<std::size_t>(options.concurrency), 0);
  }

  Run run();

  void on_status(std::uint64_t id, int status) override { talk(id).reader->status(status); }
  void on_bytes(std::uint64_t id, std::int64_t ns, std::string_view bytes) override;
  void on_end(std::uint64_t id, std::int64_t ns) override;
  void on_failure(std::uint64_t id, std::int64_t ns, const std::string& reason) override;

 private:
  // A conversation that holds a place. Its turn under way has a record.
  struct Talk {
    explicit Talk(const Conversation& conversation) : history(conversation) {}
    std::int32_t conversation = 0;
    History history;
    std::unique_ptr<AnswerReader> reader;
    RequestRecord record;
  };

  Talk& talk(std::uint64_t id) { return *talks_.at(id); }
  std::int64_t now() const { return transport_.now_ns() - start_ns_; }
  bool has_place() const { return options_.concurrency == 0 || !free_since_.empty(); }
  bool planned() const { return !options_.starts.empty(); }
  std::int64_t next_start() const;  // when the next conversation may begin
  void begin_due();
  void send(std::uint64_t id, std::int64_t planned_ns, std::int64_t may_ns);
  void answered(std::uint64_t id, std::int64_t ns);
  void cut();
  void tell();

  const Workload& workload_;
  const LoadOptions& options_;
  Transport& transport_;
  const std::int64_t start_ns_;
  std::size_t next_ = 0;                 // the first conversation that has not begun
  std::deque<std::int64_t> free_since_;  // places that nobody holds, by when they became free
  std::unordered_map<std::uint64_t, std::unique_ptr<Talk>> talks_;
  LagHistogram send_lag_;
  Progress progress_;
  std::int64_t told_ns_ = 0;
  Run run_;
};

std::int64_t LoadRun::next_start() const { return planned() ? options_.starts[next_] : 0; }

void LoadRun::begin_due() {
  while (next_ < workload_.conversations.size() && has_place() && next_start() <= now()) {
    const std::uint64_t id = next_++;
    const Conversation& conversation = workload_.conversations[id];
    auto talk = std::make_unique<Talk>(conversation);
    talk->conversation = static_cast<std::int32_t>(id);
    std::int64_t free_ns = 0;
    if (options_.concurrency != 0) {
      free_ns = free_since_.front();
      free_since_.pop_front();
    }
    talks_.emplace(id, std::move(talk));
    const std::int64_t start = planned() ? options_.starts[id] : -1;
    send(id, start, std::max(start, free_ns));
  }
}

// planned_ns < 0: now. may_ns: when the client was free to send.
void LoadRun::send(std::uint64_t id, std::int64_t planned_ns, std::int64_t may_ns) {
  Talk& one = talk(id);
  std::string body = request_body(one.history, options_.body);
  one.reader = std::make_unique<AnswerReader>(options_.body.api, options_.body.stream, options_.tokenizer);
  one.record = {.conversation = one.conversation, .turn = static_cast<std::int32_t>(one.history.turn())};
  one.record.input_tokens = one.history.now().input_tokens;
  one.record.sent_ns = now();
  one.record.planned_ns = planned_ns < 0 ? one.record.sent_ns : planned_ns;
  // The first requests of a closed loop go out one after another by design.
  if (planned_ns >= 0 || may_ns > 0) send_lag_.add(std::max<std::int64_t>(one.record.sent_ns - may_ns, 0));
  transport_.send(id, std::move(body));
}

void LoadRun::on_bytes(std::uint64_t id, std::int64_t ns, std::string_view bytes) {
  AnswerReader& reader = *talk(id).reader;
  const std::int64_t before = reader.tokens_so_far();
  reader.bytes(ns - start_ns_, bytes);
  progress_.output_tokens += reader.tokens_so_far() - before;
}

void LoadRun::on_end(std::uint64_t id, std::int64_t ns) {
  Talk& one = talk(id);
  one.reader->finish(ns - start_ns_, one.record);
  answered(id, ns - start_ns_);
}

void LoadRun::on_failure(std::uint64_t id, std::int64_t ns, const std::string& reason) {
  Talk& one = talk(id);
  one.reader->fail(ns - start_ns_, reason, one.record);
  answered(id, ns - start_ns_);
}

void LoadRun::answered(std::uint64_t id, std::int64_t ns) {
  Talk& one = talk(id);
  ++progress_.done;
  const bool completed = one.record.outcome == Outcome::kCompleted;
  if (!completed) ++progress_.failed;
  std::string text = completed ? one.reader->take_text() : std::string();
  if (options_.keep_text) one.record.text = text;
  run_.records.push_back(std::move(one.record));
  if (completed) one.history.answered(std::move(text));
  if (completed && one.history.has_turn()) return send(id, -1, ns);
  // Turns that depend on one that failed are not sent.
  const std::size_t turns = workload_.conversations[id].turns.size();
  progress_.requests -= static_cast<std::int64_t>(turns - one.history.turn()) - (completed ? 0 : 1);
  talks_.erase(id);
  if (options_.concurrency != 0) free_since_.push_back(ns);
}

void LoadRun::cut() {
  transport_.cancel_all();
  for (auto& [id, one] : talks_) {
    one->reader->fail(now(), "", one->record);
    if (options_.keep_text) one->record.text = one->reader->take_text();
    run_.records.push_back(std::move(one->record));
  }
  talks_.clear();
  run_.interrupted = true;
}

void LoadRun::tell() {
  if (!options_.on_progress || now() - told_ns_ < kTickNs) return;
  told_ns_ = progress_.elapsed_ns = now();
  progress_.running = static_cast<std::int32_t>(talks_.size());
  options_.on_progress(progress_);
}

Run LoadRun::run() {
  run_.concurrency = options_.concurrency;
  run_.request_rate = options_.request_rate;
  progress_.requests = workload_.requests();
  const std::int64_t cpu_before = transport_.cpu_ns();
  for (;;) {
    begin_due();
    const bool all_begun = next_ >= workload_.conversations.size();
    if (all_begun && talks_.empty()) break;
    if (options_.stopped && options_.stopped()) {
      cut();
      break;
    }
    tell();
    std::int64_t until = now() + kTickNs;
    if (!all_begun && has_place()) until = std::min(until, next_start());
    transport_.wait(start_ns_ + until, *this);
  }
  std::ranges::sort(run_.records, {}, &RequestRecord::planned_ns);
  if (!run_.records.empty()) {
    run_.duration_ns =
        std::ranges::max(run_.records, {}, &RequestRecord::ended_ns).ended_ns - run_.records.front().planned_ns;
  }
  const std::int64_t wall = now();
  if (wall > 0) {
    run_.client.cpu_share = static_cast<double>(transport_.cpu_ns() - cpu_before) / static_cast<double>(wall);
  }
  run_.client.send_lag_p99_ns = send_lag_.percentile(99);
  run_.client.loop_lag_p99_ns = transport_.round_p99_ns();
  return std::move(run_);
}

}  // namespace

Run run_load(const Workload& workload, const LoadOptions& options, Transport& transport) {
  return LoadRun(workload, options, transport).run();
}

}  // namespace octet::bench
