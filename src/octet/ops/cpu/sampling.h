// The CPU's sampler; see ops/sampling.h for what it draws.
#pragma once
#include "octet/base/thread_team.h"
#include "octet/ops/sampling.h"
#include "octet/tensor/tensor.h"

namespace octet::ops {

// Draws batch.tokens[i] from row i of logits, [n, vocabulary] F32 with rows possibly strided. Rows are shared out to
// the team; each row is computed by one thread, in an order fixed by the row alone. Every member keeps scratch memory
// of about 24 bytes per vocabulary entry: a second call with the same vocabulary allocates nothing.
void sample_rows(ThreadTeam& team, TensorView logits, const SamplingBatch& batch);

// Fills in the log-probabilities of a LogprobBatch; work and memory as above.
void logprob_rows(ThreadTeam& team, TensorView logits, const LogprobBatch& batch);

}  // namespace octet::ops
