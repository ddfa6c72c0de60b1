// The CPU's sampler; see ops/sampling.h for what it draws.
#pragma once
#include <memory>

#include "octet/base/thread_team.h"
#include "octet/ops/sampling.h"
#include "octet/tensor/tensor.h"

namespace octet::ops {

struct SamplingScratch;  // of one member of the team

// Rows are shared out to the team; each row is computed by one thread, in an order fixed by the row alone. There is
// scratch memory of about 24 bytes per vocabulary entry for every member: a second call with the same vocabulary
// allocates nothing.
class Sampler {
 public:
  explicit Sampler(ThreadTeam& team);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Draws batch.tokens[i] from row i of logits, [n, vocabulary] F32 with rows possibly strided.
  void sample(TensorView logits, const SamplingBatch& batch);
  // Fills in the log-probabilities.
  void logprobs(TensorView logits, const LogprobBatch& batch);

 private:
  template <typename Work>
  void share_rows(std::int64_t count, std::int64_t vocabulary, const Work& work);

  ThreadTeam& team_;
  std::unique_ptr<SamplingScratch[]> scratch_;
};

}  // namespace octet::ops
