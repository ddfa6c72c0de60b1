// Every way to pack gives the bits of the plain one.
#include "octet/ops/cpu/panel_pack.h"

#include "octet/ops/cpu/panel.h"
#include "tests/ops/op_test.h"

namespace octet::ops::cpu {
namespace {

TEST(PanelPack, HasTheBitsOfThePlainWay) {
  Random random(5);
  for (const DType type : linear_types()) {
    if (type == DType::kF8E4M3) continue;  // packed with its scales, in one way (e4m3_panel.h)
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

}  // namespace
}  // namespace octet::ops::cpu
