#include "octet/comm/group.h"

namespace octet::comm {
namespace {

class SoloGroup final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(ops::Stream&, TensorView) override {}  // a sum of one
};

}  // namespace

void Group::reduce_add_norm(ops::Backend& backend, ops::Stream& stream, TensorView delta, TensorView x,
                            TensorView weight, float epsilon, TensorView out) {
  all_reduce(stream, delta);
  backend.add_norm(stream, x, delta, weight, epsilon, out);
}

std::unique_ptr<Group> make_solo_group() { return std::make_unique<SoloGroup>(); }

}  // namespace octet::comm
