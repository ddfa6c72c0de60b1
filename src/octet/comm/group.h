// Collectives over a group of ranks, enqueued on a stream; sums in rank order.
#pragma once
#include <memory>

#include "octet/ops/backend.h"

namespace octet::comm {

class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // inout = sum over ranks.
  virtual void all_reduce(ops::Stream& stream, TensorView inout) = 0;
  // The end of a row-parallel layer: x += sum over ranks of delta; out = rms_norm(x). The default reduces, then calls
  // ops.
  virtual void reduce_add_norm(ops::Backend& backend, ops::Stream& stream, TensorView delta, TensorView x,
                               TensorView weight, float epsilon, TensorView out);
};

// One rank alone: nothing to exchange.
std::unique_ptr<Group> make_solo_group();

}  // namespace octet::comm
