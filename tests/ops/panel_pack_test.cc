// Every way to pack gives the bits of the plain one.
#include "octet/ops/cpu/panel_pack.h"

#include "octet/ops/cpu/e4m3_panel.h"
#include "octet/ops/cpu/kernels.h"
#include "octet/ops/cpu/panel.h"
#include "tests/ops/op_test.h"

namespace octet::ops::cpu {
namespace {

TEST(PanelPack, HasTheBitsOfThePlainWay) {
  Random random(5);
  for (const DType type : linear_types()) {
    if (type == DType::kF8E4M3) continue;  // packed with its scales: below
    SCOPED_TRACE(dtype_info(type).name);
    for (const std::int64_t wanted : {1, 7, 8, 9, 33, 64, 250, 256, 800}) {
      const std::int64_t inputs = is_block_type(type) ? whole_blocks(type, wanted) : wanted;
      const std::int64_t row_bytes = bytes_of(type, inputs);
      for (const int rows : {16, 1, 15, 16, 7}) {
        // Rows at any address and distance, of random bits; nothing behind the last one may be read.
        const std::int64_t stride = row_bytes + static_cast<std::int64_t>(random() % 2 * 6);
        const std::size_t offset = random() % 4;
        std::vector<std::byte> stored(offset + static_cast<std::size_t>((rows - 1) * stride + row_bytes));
        for (std::byte& value : stored) value = static_cast<std::byte>(random());
        const StoredRows from{stored.data() + offset, stride, rows};
        const auto bytes = static_cast<std::size_t>(panel_bytes(type, inputs));
        std::vector<std::byte> plain(bytes), fast(bytes);
        pack_panel_plain(type, from, inputs, plain.data());
        pack_panel(type, from, inputs, fast.data());
        ASSERT_EQ(fast, plain) << rows << " rows of " << inputs;
      }
    }
  }
}

// Rows of all codes, of small ones, of zeros, and one with a code that is no number.
TEST(PanelPack, OfE4M3HasTheBitsOfThePlainWay) {
  const Kernels* fast = avx2_kernels();
  Random random(6);
  for (const std::int64_t inputs : {1, 31, 32, 33, 64, 250, 800}) {
    for (const int rows : {16, 15}) {
      const std::int64_t stride = inputs + static_cast<std::int64_t>(random() % 2 * 5);
      std::vector<std::byte> stored(static_cast<std::size_t>((rows - 1) * stride + inputs));
      for (std::size_t i = 0; i < stored.size(); ++i) {
        const auto row = static_cast<unsigned>(static_cast<std::int64_t>(i) / stride);
        const unsigned largest = row % 4 == 0 ? 0x7e : row % 4 == 1 ? 0x20 : row % 4 == 2 ? 0x09 : row == 3 ? 0 : 7;
        stored[i] = static_cast<std::byte>(random() % (largest + 1) | (random() & 0x80));
      }
      stored[0] = std::byte{0xff};
      std::vector<float> scales(16, 0.5f);
      const WeightScale scale{make_view(scales.data(), DType::kF32, {rows, 1}), 1, inputs};
      const E4M3Layout layout(scale, rows, inputs);
      const auto bytes = static_cast<std::size_t>(layout.panel_bytes());
      const Tensor plain(DType::kU8, {layout.panel_bytes()}), quick(DType::kU8, {layout.panel_bytes()});
      const StoredRows from{stored.data(), stride, rows};
      pack_e4m3_panel(layout, scale, from, 0, nullptr, plain.data<std::byte>());
      pack_e4m3_panel(layout, scale, from, 0, fast, quick.data<std::byte>());
      ASSERT_EQ(std::memcmp(plain.data<std::byte>(), quick.data<std::byte>(), bytes), 0) << rows << " x " << inputs;
    }
  }
}

}  // namespace
}  // namespace octet::ops::cpu
