// A replica: scheduler and executor driven by one thread, requests in from any thread, outputs out through sinks.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "octet/base/clock.h"
#include "octet/base/error.h"
#include "octet/engine/batch.h"
#include "octet/engine/request.h"
#include "octet/engine/scheduler.h"
#include "octet/engine/stats.h"
#include "octet/text/tokenizer.h"

namespace octet::engine {

struct EngineConfig {
  SchedulerConfig scheduler;
  std::int32_t vocabulary_size = 0;    // ids a client may name
  std::int32_t max_logprobs = 20;      // the most that a request may ask for
  std::int32_t max_admitted = 0;       // sequences that run and wait; 0: what runs and SchedulerConfig::max_waiting
  std::int64_t max_queued_tokens = 0;  // of prompts not computed yet: from there on nobody is taken in; 0: no limit
  int steps_in_flight = 1;             // 2: the next step is planned while one runs
  std::uint64_t seed = 0;              // for requests without one
  HistogramBuckets histogram_buckets;
};

class Engine {
 public:
  // tokenizer may be null (no text, no stop strings); it and the clock must outlive the engine. Starts its thread.
  Engine(const EngineConfig& config, std::unique_ptr<Executor> executor, const text::Tokenizer* tokenizer,
         const Clock& clock = SteadyClock::instance());
  ~Engine();  // ends all requests with kAbort

  // Thread-safe. kExhausted: queue full. kInvalid: never fits, an id outside the vocabulary. The sink may be called
  // before submit returns, gets one output with a finish reason per choice, and is not called again after the last of
  // them.
  Result<RequestId> submit(Request request);
  // All of them or, where one is refused, none; each as in submit(). The engine takes them up together, so that a step
  // which has room for all begins with all of them. The value is the first one's id, the others' count on from there.
  Result<RequestId> submit_all(std::vector<Request> requests);
  void cancel(RequestId id);  // thread-safe; unknown ids are ignored
  // No new requests (kExhausted); returns when all running ones have ended or the deadline passed.
  void drain(std::int64_t deadline_ns);
  EngineStats stats() const;    // thread-safe
  std::int32_t places() const;  // for sequences that run and wait
  // How long there has been work, but no progress: neither has the engine's thread got on, nor has the executor told of
  // any since this was asked last. 0: no work. Thread-safe.
  std::int64_t stalled_ns() const;
  const EngineConfig& config() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet::engine
