// The CPU's stream: its threads and their scratch memory. Ops run at once.
#pragma once
#include <cstddef>
#include <cstdint>

#include "octet/base/thread_team.h"
#include "octet/ops/backend.h"
#include "octet/ops/cpu/panel.h"
#include "octet/ops/cpu/sampling.h"
#include "octet/tensor/tensor.h"

namespace octet::ops::cpu {

// Memory that only grows, so that ops stop allocating once they have seen their largest shapes.
class Scratch {
 public:
  template <typename T>
  T* reserve(std::int64_t count) {
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
    if (static_cast<std::int64_t>(buffer_.bytes()) < bytes) buffer_ = Tensor(DType::kU8, {bytes + bytes / 4});
    return buffer_.data<T>();
  }

 private:
  Tensor buffer_;
};

class CpuStream final : public Stream {
 public:
  explicit CpuStream(int threads) : team_(threads), sampler_(team_) {}
  void synchronize() override {}

  ThreadTeam& team() { return team_; }
  Sampler& sampler() { return sampler_; }
  Scratch& activations() { return activations_; }  // quantised rows of a linear layer
  Scratch& tiles() { return tiles_; }              // what attention divides among threads
  Scratch& partials() { return partials_; }        // splits of attention that wait to be merged
  // What experts() keeps of a pass over (row, expert) pairs.
  struct ExpertScratch {
    Scratch plan, inputs, acts;
    Scratch quantized_inputs[kActivationKinds], quantized_acts[kActivationKinds];
  };
  ExpertScratch& experts() { return experts_; }
  // `count` floats for each member; member m's start at base + m * stride.
  struct PerMember {
    float* base;
    std::int64_t stride;
    float* of(int member) const { return base + member * stride; }
  };
  PerMember per_member(std::int64_t floats) {
    const std::int64_t stride = (floats + 31) / 16 * 16;  // a cache line apart
    return {members_.reserve<float>(stride * team_.size()), stride};
  }

 private:
  ThreadTeam team_;
  Sampler sampler_;
  Scratch activations_, tiles_, partials_, members_;
  ExpertScratch experts_;
};

}  // namespace octet::ops::cpu
