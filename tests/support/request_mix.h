// Clients of every kind at once: whole answers, streams, errors, slow readers, and those who go away in every state.
#pragma once
#include <cstdint>
#include <string>

namespace octet::testing {

struct RequestMix {
  int port = 0;
  std::string model;  // with a tokenizer and a chat template
  int requests = 0;
  int clients = 8;
  int max_tokens = 24;
  // The server has faults of its own and a short queue: 429, 500 and a stream that ends with an error are no wonder.
  bool faults = false;
  std::uint64_t seed = 1;
};

struct RequestMixOutcome {
  int answered = 0, refused = 0, abandoned = 0;  // as each request intended
  int failed = 0;                                // by the server's faults
  int turned_away = 0;                           // asked again until there was room
  int wrong = 0;                                 // anything else
  std::string first_wrong;
  int all() const { return answered + refused + abandoned + failed; }
};

// The same seed asks the same requests, though not in the same order.
RequestMixOutcome run_request_mix(const RequestMix& mix);

// How many requests a soak asks: OCTET_SOAK_REQUESTS, which the nightly run sets, or `otherwise`.
int soak_requests(int otherwise);

}  // namespace octet::testing
