// What happened to the requests of one run. All times are of one monotonic clock, in nanoseconds from the start of the
// run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace octet::bench {

enum class Outcome : std::uint8_t {
  kCompleted,
  kFailed,  // a refused connection, a status other than 200, an error event, a stream that broke off
  kCut,     // the run ended first
};

// Tokens that came in one piece of the answer. Reasoning counts as tokens; role-only chunks, comments and usage do not.
struct Arrival {
  std::int64_t ns = 0;
  std::int32_t tokens = 0;
};

// Where output_tokens is from.
enum class TokenSource : std::uint8_t { kUsage, kTokenizer, kChunks };

struct RequestRecord {
  std::int32_t conversation = 0, turn = 0;
  std::int64_t planned_ns = 0;  // when it was to be sent; latency counts from here
  std::int64_t sent_ns = 0;     // when it was: the difference is the client's own lag
  std::int64_t ended_ns = 0;
  Outcome outcome = Outcome::kCut;
  std::string error;                  // its reason in one line, named first: "connection refused: ..."; empty: none
  std::int32_t status = 0;            // of HTTP; 0: no answer
  std::vector<Arrival> arrivals;      // ascending; tokens scaled so that they sum to output_tokens
  std::int64_t first_answer_ns = -1;  // the first piece that is no reasoning; -1: none
  std::int32_t input_tokens = 0;      // by usage, else as planned
  std::int32_t output_tokens = 0;
  std::int32_t cached_tokens = -1;  // of the prompt, by usage; -1: the server does not tell
  TokenSource token_source = TokenSource::kChunks;
  std::string text;  // the answer, without reasoning; kept where the run asks for it
};

// How the client itself did, so that a run in which it was the bottleneck can say so.
struct ClientLoad {
  double cpu_share = 0;              // of one core, over the run
  std::int64_t send_lag_p99_ns = 0;  // planned to sent, where the plan left the client free to send
  std::int64_t loop_lag_p99_ns = 0;  // one round of its event loop: what a time stamp may be late by
};

// One point: a load, and what came of it.
struct Run {
  std::int32_t concurrency = 0;  // most requests at once; 0: no limit
  double request_rate = 0;       // per second; 0: as soon as the concurrency allows
  std::int64_t duration_ns = 0;  // from the first request planned to the last one ended
  bool interrupted = false;      // Ctrl-C: the records are what there was
  std::vector<RequestRecord> records;
  ClientLoad client;
};

}  // namespace octet::bench
