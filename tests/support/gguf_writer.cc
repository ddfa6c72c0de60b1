#include "tests/support/gguf_writer.h"

#include <cstring>

namespace octet::testing {
namespace {

constexpr std::size_t kAlignment = 32;
constexpr std::uint32_t kF32 = 0;

template <typename T>
std::string packed(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string text(std::string_view value) { return packed<std::uint64_t>(value.size()) + std::string(value); }

void pad(std::string& bytes) { bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment); }

}  // namespace

GgufWriter& GgufWriter::raw(std::string_view key, formats::GgufType type, std::string_view bytes) {
  pairs_ += text(key) + packed(static_cast<std::uint32_t>(type));
  pairs_ += bytes;
  ++pair_count_;
  return *this;
}
GgufWriter& GgufWriter::u16(std::string_view key, std::uint16_t value) {
  return raw(key, formats::GgufType::kU16, packed(value));
}
GgufWriter& GgufWriter::u32(std::string_view key, std::uint32_t value) {
  return raw(key, formats::GgufType::kU32, packed(value));
}
GgufWriter& GgufWriter::i32(std::string_view key, std::int32_t value) {
  return raw(key, formats::GgufType::kI32, packed(value));
}
GgufWriter& GgufWriter::f32(std::string_view key, float value) {
  return raw(key, formats::GgufType::kF32, packed(value));
}
GgufWriter& GgufWriter::string(std::string_view key, std::string_view value) {
  return raw(key, formats::GgufType::kString, text(value));
}
GgufWriter& GgufWriter::array(std::string_view key, formats::GgufType element, std::uint64_t count,
                              std::string_view items) {
  return raw(key, formats::GgufType::kArray,
             packed(static_cast<std::uint32_t>(element)) + packed(count) + std::string(items));
}
GgufWriter& GgufWriter::strings(std::string_view key, const std::vector<std::string>& values) {
  std::string items;
  for (const std::string& value : values) items += text(value);
  return array(key, formats::GgufType::kString, values.size(), items);
}

GgufWriter& GgufWriter::tensor(std::string_view name, const std::vector<std::int64_t>& dims, std::uint32_t type,
                               std::string_view data) {
  infos_ += text(name) + packed(static_cast<std::uint32_t>(dims.size()));
  for (const std::int64_t dimension : dims) infos_ += packed(dimension);
  infos_ += packed(type) + packed<std::uint64_t>(data_.size());
  data_ += data;
  pad(data_);
  ++tensor_count_;
  return *this;
}

std::string GgufWriter::bytes() const {
  std::string out = "GGUF" + packed<std::uint32_t>(3) + packed(tensor_count_) + packed(pair_count_) + pairs_ + infos_;
  pad(out);
  return out + data_;
}

GgufWriter tiny_gguf_metadata() {
  GgufWriter writer;
  writer.string("general.architecture", "llama")
      .u32("llama.block_count", 1)
      .u32("llama.context_length", 64)
      .u32("llama.embedding_length", 4)
      .u32("llama.feed_forward_length", 8)
      .u32("llama.attention.head_count", 2)
      .u32("llama.attention.head_count_kv", 1)
      .f32("llama.attention.layer_norm_rms_epsilon", 1e-5f)
      .string("tokenizer.ggml.model", "gpt2")
      .strings("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e", "f", "<s>", "</s>"})
      .u32("tokenizer.ggml.bos_token_id", 6)
      .u32("tokenizer.ggml.eos_token_id", 7);
  return writer;
}

void add_tiny_gguf_tensors(GgufWriter& writer, int first, int last) {
  struct Weight {
    const char* name;
    std::vector<std::int64_t> dims;
  };
  const std::vector<Weight> weights = {
      {"token_embd.weight", {4, 8}},     {"blk.0.attn_norm.weight", {4}},   {"blk.0.attn_q.weight", {4, 4}},
      {"blk.0.attn_k.weight", {4, 2}},   {"blk.0.attn_v.weight", {4, 2}},   {"blk.0.attn_output.weight", {4, 4}},
      {"blk.0.ffn_norm.weight", {4}},    {"blk.0.ffn_gate.weight", {4, 8}}, {"blk.0.ffn_up.weight", {4, 8}},
      {"blk.0.ffn_down.weight", {8, 4}}, {"output_norm.weight", {4}},       {"output.weight", {4, 8}},
  };
  for (int i = first; i < last; ++i) {
    const Weight& weight = weights[static_cast<std::size_t>(i)];
    std::int64_t count = 1;
    for (const std::int64_t dimension : weight.dims) count *= dimension;
    std::string data;
    for (std::int64_t k = 0; k < count; ++k) data += packed(0.01f * static_cast<float>(k % 17) + static_cast<float>(i));
    writer.tensor(weight.name, weight.dims, kF32, data);
  }
}

GgufWriter tiny_gguf() {
  GgufWriter writer = tiny_gguf_metadata();
  add_tiny_gguf_tensors(writer, 0, 12);
  return writer;
}

}  // namespace octet::testing
