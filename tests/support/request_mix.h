// Clients of every kind at once: whole answers, streams, errors, and those who go away.
#pragma once
#include <cstdint>
#include <string>

namespace octet::testing {

struct RequestMix {
  int port = 0;
  std::string model;  // with a tokenizer
  int requests = 0;
  int clients = 8;
  int max_tokens = 24;
  std::uint64_t seed = 1;
};

struct RequestMixOutcome {
  int answered = 0, refused = 0, abandoned = 0;  // as each request intended
  int wrong = 0;                                 // anything else
  std::string first_wrong;
};

// The same seed asks the same requests, though not in the same order.
RequestMixOutcome run_request_mix(const RequestMix& mix);

}  // namespace octet::testing
