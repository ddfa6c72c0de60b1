#include "octet/comm/group.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace octet::comm {
namespace {

TEST(SoloGroup, IsOneRank) {
  const std::unique_ptr<Group> group = make_solo_group();
  EXPECT_EQ(group->rank(), 0);
  EXPECT_EQ(group->size(), 1);
}

TEST(SoloGroup, ReducesToItself) {
  const std::unique_ptr<ops::Backend> backend = ops::make_cpu_backend(1);
  const std::unique_ptr<ops::Stream> stream = backend->create_stream();
  std::vector<float> values{1.0f, -2.0f, 3.5f};
  make_solo_group()->all_reduce(*stream, make_view(values.data(), DType::kF32, {1, 3}));
  EXPECT_EQ(values, (std::vector<float>{1.0f, -2.0f, 3.5f}));
}

TEST(SoloGroup, ReduceAddNormIsAddNorm) {
  const std::unique_ptr<ops::Backend> backend = ops::make_cpu_backend(1);
  const std::unique_ptr<ops::Stream> stream = backend->create_stream();
  std::vector<float> x{1, 2, 3, 4}, delta{0.5f, -1, 2, 0}, weight{1, 2, 3, 4}, out(4), expected_x = x, expected_out(4);
  const auto view = [](std::vector<float>& values) { return make_view(values.data(), DType::kF32, {1, 4}); };
  const TensorView weights = make_view(weight.data(), DType::kF32, {4});
  backend->add_norm(*stream, view(expected_x), view(delta), weights, 1e-5f, view(expected_out));
  make_solo_group()->reduce_add_norm(*backend, *stream, view(delta), view(x), weights, 1e-5f, view(out));
  EXPECT_EQ(x, expected_x);
  EXPECT_EQ(out, expected_out);
}

// Ranks that hold the same numbers: the sum is size times one of them.
class EqualRanks final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 4; }
  void all_reduce(ops::Stream&, TensorView inout) override {
    for (std::int64_t i = 0; i < inout.size(); ++i) inout.as<float>()[i] *= 4;
  }
};

TEST(Group, DefaultReducesBeforeItAdds) {
  const std::unique_ptr<ops::Backend> backend = ops::make_cpu_backend(1);
  const std::unique_ptr<ops::Stream> stream = backend->create_stream();
  std::vector<float> x{1, 1}, delta{0.25f, 0.5f}, weight{1, 1}, out(2);
  const auto view = [](std::vector<float>& values) { return make_view(values.data(), DType::kF32, {1, 2}); };
  EqualRanks().reduce_add_norm(*backend, *stream, view(delta), view(x), make_view(weight.data(), DType::kF32, {2}),
                               0.0f, view(out));
  EXPECT_EQ(x, (std::vector<float>{2, 3}));
  EXPECT_NEAR(out[0], 2 / std::sqrt(6.5), 1e-6);
  EXPECT_NEAR(out[1], 3 / std::sqrt(6.5), 1e-6);
}

}  // namespace
}  // namespace octet::comm
