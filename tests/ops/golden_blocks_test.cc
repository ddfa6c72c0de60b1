#include <filesystem>

#include "octet/formats/safetensors.h"
#include "tests/ops/op_test.h"

namespace octet::ops {
namespace {

// Blocks that the formats' own library wrote and decoded, among them zero, negative and subnormal scales and every
// code: what the packed panels give back has the same bits.
TEST(GoldenBlocks, PackedWeightsDecodeToTheSameBits) {
  const auto file =
      formats::SafetensorsFile::open(std::filesystem::path(OCTET_TEST_DATA) / "quant" / "gguf_blocks.safetensors");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  for (DType type : kBlockTypes) {
    const std::int64_t width = dtype_info(type).block_values;
    const std::string name(dtype_info(type).name);
    const formats::StoredTensor& blocks = file->tensors().at(name + ".blocks");
    const formats::StoredTensor& decoded = file->tensors().at(name + ".f32");
    const std::int64_t rows = blocks.shape[0];
    std::vector<float> expected(static_cast<std::size_t>(rows * width));
    std::memcpy(expected.data(), decoded.data.data(), expected.size() * sizeof(float));
    std::vector<std::byte> stored(blocks.data.begin(), blocks.data.end());
    const LinearPart part{.weight = make_view(stored.data(), type, {rows, width}), .bias = {}, .scale = {}};
    std::vector<std::int32_t> all(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
    std::vector<float> identity(static_cast<std::size_t>(width * width), 0.0f);
    for (std::int64_t i = 0; i < width; ++i) identity[static_cast<std::size_t>(i * (width + 1))] = 1.0f;

    for (const std::string& isa : instruction_sets()) {
      SCOPED_TRACE(isa + " " + name);
      Machine machine(isa, 1);
      const std::unique_ptr<Linear> packed =
          machine.backend->pack(*machine.stream, std::span(&part, 1), Activations::kFloat32);
      std::vector<float> rows_out(expected.size());
      machine.backend->embed(*machine.stream, *packed, ids(all), matrix(rows_out, rows));
      // Products with unit vectors: what the kernels make of a block. Where a block holds infinities, these are NaN.
      std::vector<float> columns(expected.size());
      machine.backend->linear(*machine.stream, *packed, matrix(identity, width), matrix(columns, width));
      for (std::int64_t row = 0; row < rows; ++row) {
        bool finite = true;
        for (std::int64_t k = 0; k < width; ++k) finite = finite && std::isfinite(expected[row * width + k]);
        for (std::int64_t k = 0; k < width; ++k) {
          const float value = expected[row * width + k];
          if (std::isnan(value)) {
            ASSERT_TRUE(std::isnan(rows_out[row * width + k])) << "block " << row;
          } else {
            ASSERT_EQ(rows_out[row * width + k], value) << "block " << row << " value " << k;
          }
          if (finite) {
            ASSERT_EQ(columns[k * rows + row], value) << "block " << row << " value " << k;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace octet::ops
