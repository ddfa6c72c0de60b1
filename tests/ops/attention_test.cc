#include <algorithm>
#include <numeric>

#include "tests/ops/op_test.h"

namespace octet::ops {
namespace {

struct Shape {
  std::int32_t heads = 4, kv_heads = 2, head_dim = 32, block_size = 16;
  DType cache = DType::kF32;
  std::int32_t rotary_dim = 32;
  bool interleaved = false, norms = false, whole_norms = false;  // of all heads as one vector
  std::int32_t window = 0;
  float k_scale = 1, v_scale = 1;  // of an FP8 cache
};

std::string label(const Shape& shape) {
  return std::to_string(shape.heads) + "/" + std::to_string(shape.kv_heads) + "x" + std::to_string(shape.head_dim) +
         " blocks of " + std::to_string(shape.block_size) + " " + std::string(dtype_info(shape.cache).name) +
         " window " + std::to_string(shape.window);
}

// Sequences in a paged cache, their blocks in random order. Rows of q, k and v are drawn per sequence and position, so
// that any way of cutting them into steps works on the same numbers.
class Sequences {
 public:
  Sequences(Random& random, const Shape& shape, std::vector<std::int32_t> lengths)
      : shape_(shape), lengths_(std::move(lengths)), width_((shape.heads + 2 * shape.kv_heads) * shape.head_dim) {
    const std::int32_t longest = *std::max_element(lengths_.begin(), lengths_.end());
    table_width_ = (longest + shape.block_size - 1) / shape.block_size + 1;
    for (std::int32_t length : lengths_) qkv_.push_back(normal_values(random, std::int64_t{length} * width_));
    q_norm_ = normal_values(random, shape.head_dim * (shape.whole_norms ? shape.heads : 1));
    k_norm_ = normal_values(random, shape.head_dim * (shape.whole_norms ? shape.kv_heads : 1));
    cos_sin_.resize(static_cast<std::size_t>(longest * shape.rotary_dim));
    for (std::int32_t position = 0; position < longest; ++position) {
      for (std::int32_t i = 0; i < shape.rotary_dim / 2; ++i) {
        const double angle = position * std::pow(10000.0, -2.0 * i / shape.rotary_dim);
        cos_sin_[position * shape.rotary_dim + i] = static_cast<float>(std::cos(angle));
        cos_sin_[position * shape.rotary_dim + shape.rotary_dim / 2 + i] = static_cast<float>(std::sin(angle));
      }
    }
    order_.resize(lengths_.size() * static_cast<std::size_t>(table_width_));
    std::iota(order_.begin(), order_.end(), 0);
    std::shuffle(order_.begin(), order_.end(), random);
  }

  const Shape& shape() const { return shape_; }
  std::size_t count() const { return lengths_.size(); }
  std::int32_t length(std::size_t sequence) const { return lengths_[sequence]; }
  std::int32_t table_width() const { return table_width_; }
  std::int64_t width() const { return width_; }
  const std::vector<std::int32_t>& order() const { return order_; }
  const float* row(std::size_t sequence, std::int32_t position) const { return &qkv_[sequence][position * width_]; }

  QkvSpec spec() {
    QkvSpec spec;
    spec.attention = {.heads = shape_.heads,
                      .kv_heads = shape_.kv_heads,
                      .head_dim = shape_.head_dim,
                      .block_size = shape_.block_size,
                      .scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)),
                      .window = shape_.window,
                      .k_scale = shape_.k_scale,
                      .v_scale = shape_.v_scale};
    if (shape_.norms) {
      spec.q_norm = make_view(q_norm_.data(), DType::kF32, {std::ssize(q_norm_)});
      spec.k_norm = make_view(k_norm_.data(), DType::kF32, {std::ssize(k_norm_)});
    }
    spec.norm_epsilon = 1e-6f;
    if (shape_.rotary_dim > 0) spec.rope_cos_sin = matrix(cos_sin_, std::ssize(cos_sin_) / shape_.rotary_dim);
    spec.rotary_dim = shape_.rotary_dim;
    spec.rope_interleaved = shape_.interleaved;
    return spec;
  }

  // Head `head` of a row (queries, then keys, then values) as the cache or the scores take it, in double.
  std::vector<double> prepared(std::size_t sequence, std::int32_t position, std::int32_t head) const {
    const float* from = row(sequence, position) + head * shape_.head_dim;
    std::vector<double> values(from, from + shape_.head_dim);
    if (head >= shape_.heads + shape_.kv_heads) return values;
    if (shape_.norms) {
      const std::vector<float>& norm = head < shape_.heads ? q_norm_ : k_norm_;
      const std::int32_t first = head < shape_.heads ? 0 : shape_.heads;
      const float* normed = shape_.whole_norms ? row(sequence, position) + first * shape_.head_dim : from;
      double squares = 0;
      for (std::size_t i = 0; i < norm.size(); ++i) squares += double{normed[i]} * normed[i];
      const double scale = 1 / std::sqrt(squares / static_cast<double>(norm.size()) + 1e-6);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] *= scale * norm[from - normed + i];
    }
    const std::int32_t half = shape_.rotary_dim / 2;
    for (std::int32_t i = 0; i < half; ++i) {
      const double cosine = cos_sin_[position * shape_.rotary_dim + i];
      const double sine = cos_sin_[position * shape_.rotary_dim + half + i];
      double& a = values[shape_.interleaved ? 2 * i : i];
      double& b = values[shape_.interleaved ? 2 * i + 1 : i + half];
      const double a_in = a;
      a = a_in * cosine - b * sine;
      b = b * cosine + a_in * sine;
    }
    return values;
  }

 private:
  Shape shape_;
  std::vector<std::int32_t> lengths_;
  std::int64_t width_;
  std::int32_t table_width_ = 0;
  std::vector<std::vector<float>> qkv_;
  std::vector<float> q_norm_, k_norm_, cos_sin_;
  std::vector<std::int32_t> order_;
};

// A chunk of one sequence in a step.
struct Chunk {
  std::size_t sequence;
  std::int32_t first, rows;
};

// One cache with what runs over it.
class Runner {
 public:
  Runner(const std::string& isa, int threads, Sequences& sequences)
      : machine_(isa, threads), sequences_(sequences), spec_(sequences.spec()) {
    const Shape& shape = sequences.shape();
    const auto blocks = static_cast<std::int64_t>(sequences.order().size());
    keys_ = Tensor(shape.cache, {blocks, shape.kv_heads, shape.block_size, shape.head_dim});
    values_ = Tensor(shape.cache, {blocks, shape.kv_heads, shape.block_size, shape.head_dim});
    // What nobody wrote must not matter: all ones is a NaN in every type.
    std::memset(keys_.data<char>(), 0xff, keys_.bytes());
    std::memset(values_.data<char>(), 0xff, values_.bytes());
    // A slot's row names blocks only as far as its sequence has come; the rest would fault.
    tables_.assign(sequences.order().size(), std::int32_t{1} << 30);
    for (std::size_t sequence = 0; sequence < sequences.count(); ++sequence) {
      outputs_.emplace_back(sequences.length(sequence) * std::int64_t{shape.heads} * shape.head_dim, -1.0f);
    }
  }

  // Runs one step and keeps its outputs by sequence and position.
  void step(const std::vector<Chunk>& chunks) {
    const Shape& shape = sequences_.shape();
    const std::int64_t width = sequences_.width(), out_width = std::int64_t{shape.heads} * shape.head_dim;
    std::vector<float> qkv;
    std::vector<std::int32_t> positions, spans, first_rows{0}, slots;
    for (const Chunk& chunk : chunks) {
      for (std::int32_t i = 0; i < chunk.rows; ++i) {
        const float* row = sequences_.row(chunk.sequence, chunk.first + i);
        qkv.insert(qkv.end(), row, row + width);
        positions.push_back(chunk.first + i);
        spans.push_back(static_cast<std::int32_t>(slots.size()));
      }
      // Slots in reverse: they need not be in the order of spans.
      const std::size_t slot = sequences_.count() - 1 - chunk.sequence;
      slots.push_back(static_cast<std::int32_t>(slot));
      first_rows.push_back(static_cast<std::int32_t>(positions.size()));
      for (std::int32_t block = 0; block <= (chunk.first + chunk.rows - 1) / shape.block_size; ++block) {
        const std::size_t at = slot * sequences_.table_width() + block;
        tables_[at] = sequences_.order()[at];
      }
    }
    const auto rows = static_cast<std::int64_t>(positions.size());
    const TensorView tables = make_view(tables_.data(), DType::kI32,
                                        {static_cast<std::int64_t>(sequences_.count()), sequences_.table_width()});
    Batch batch;
    batch.positions = ids(positions);
    batch.spans_of_rows = ids(spans);
    batch.first_rows = ids(first_rows);
    batch.slots = ids(slots);
    batch.block_tables = std::span(&tables, 1);
    const KvLayer layer{keys_.view(), values_.view()};
    const TensorView rows_view = matrix(qkv, rows);
    machine_.backend->qk_norm_rope_write(*machine_.stream, spec_, rows_view, batch, 0, layer);
    std::vector<float> out(static_cast<std::size_t>(rows * out_width));
    TensorView q = rows_view;
    q.dims[1] = out_width;
    machine_.backend->attention(*machine_.stream, spec_.attention, q, batch, 0, layer, matrix(out, rows));
    std::int64_t row = 0;
    for (const Chunk& chunk : chunks) {
      std::copy_n(out.begin() + row * out_width, chunk.rows * out_width,
                  outputs_[chunk.sequence].begin() + chunk.first * out_width);
      row += chunk.rows;
    }
  }

  // All sequences, every step taking up to `rows` of each.
  void run(std::int32_t rows) {
    std::vector<std::int32_t> done(sequences_.count(), 0);
    for (bool any = true; any;) {
      std::vector<Chunk> chunks;
      for (std::size_t sequence = 0; sequence < sequences_.count(); ++sequence) {
        const std::int32_t count = std::min(rows, sequences_.length(sequence) - done[sequence]);
        if (count > 0) chunks.push_back({sequence, done[sequence], count});
        done[sequence] += std::max(count, 0);
      }
      any = !chunks.empty();
      if (any) step(chunks);
    }
  }

  const std::vector<std::vector<float>>& outputs() const { return outputs_; }

 private:
  Machine machine_;
  Sequences& sequences_;
  QkvSpec spec_;
  Tensor keys_, values_;
  std::vector<std::int32_t> tables_;
  std::vector<std::vector<float>> outputs_;
};

double rounded(double value, DType type, float scale) {
  const auto single = static_cast<float>(value);
  if (type == DType::kF8E4M3) return double{e4m3_to_f32(f32_to_e4m3(single / scale))} * scale;
  if (type == DType::kF16) return cpu::widen_f16(cpu::narrow_f16(single));
  if (type == DType::kBF16) return cpu::widen_bf16(cpu::narrow_bf16(single));
  return single;
}

// softmax(q k) v of one row and head, in double, over keys and values [first, seen) as the cache holds them.
std::vector<double> expected_head(const std::vector<std::vector<double>>& keys,
                                  const std::vector<std::vector<double>>& values, const std::vector<double>& q,
                                  std::int32_t first, std::int32_t seen, double scale) {
  std::vector<double> weights(seen);
  double highest = -INFINITY, sum = 0;
  for (std::int32_t i = first; i < seen; ++i) {
    weights[i] = scale * std::inner_product(q.begin(), q.end(), keys[i].begin(), 0.0);
    highest = std::max(highest, weights[i]);
  }
  for (std::int32_t i = first; i < seen; ++i) sum += weights[i] = std::exp(weights[i] - highest);
  std::vector<double> out(q.size(), 0.0);
  for (std::int32_t i = first; i < seen; ++i) {
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += weights[i] / sum * values[i][d];
  }
  return out;
}

void check(Sequences& sequences, const std::vector<std::vector<float>>& outputs, double tolerance) {
  const Shape& shape = sequences.shape();
  const std::int32_t per_group = shape.heads / shape.kv_heads;
  for (std::size_t s = 0; s < sequences.count(); ++s) {
    for (std::int32_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      std::vector<std::vector<double>> keys, values;
      for (std::int32_t position = 0; position < sequences.length(s); ++position) {
        keys.push_back(sequences.prepared(s, position, shape.heads + kv_head));
        values.push_back(sequences.prepared(s, position, shape.heads + shape.kv_heads + kv_head));
        for (double& value : keys.back()) value = rounded(value, shape.cache, shape.k_scale);
        for (double& value : values.back()) value = rounded(value, shape.cache, shape.v_scale);
      }
      for (std::int32_t position = 0; position < sequences.length(s); ++position) {
        // Every position near the borders of blocks, tiles and splits; a sample of the others.
        if (position % 13 != 0 && (position + 1) % 16 > 2 && position + 2 < sequences.length(s)) continue;
        for (std::int32_t head = kv_head * per_group; head < (kv_head + 1) * per_group; ++head) {
          const std::vector<double> expected =
              expected_head(keys, values, sequences.prepared(s, position, head),
                            shape.window == 0 ? 0 : std::max(0, position + 1 - shape.window), position + 1,
                            1.0f / std::sqrt(static_cast<float>(shape.head_dim)));
          const float* out = &outputs[s][(std::int64_t{position} * shape.heads + head) * shape.head_dim];
          for (std::int32_t d = 0; d < shape.head_dim; ++d) {
            ASSERT_NEAR(out[d], expected[d], tolerance)
                << "sequence " << s << " position " << position << " head " << head;
          }
        }
      }
    }
  }
}

// A key that lies just between two values of the cache's type may be rounded either way.
double tolerance_of(DType cache) {
  if (cache == DType::kF8E4M3) return 5e-3;
  return cache == DType::kF32 ? 1e-5 : cache == DType::kF16 ? 4e-4 : 3e-3;
}

const Shape kShapes[] = {
    {},
    {.heads = 9, .kv_heads = 3, .head_dim = 64, .cache = DType::kBF16, .rotary_dim = 64},
    {.heads = 8, .kv_heads = 8, .head_dim = 24, .cache = DType::kF16, .rotary_dim = 16, .norms = true},
    {.heads = 14, .kv_heads = 1, .head_dim = 8, .rotary_dim = 8, .interleaved = true},
    {.heads = 4,
     .kv_heads = 1,
     .head_dim = 128,
     .block_size = 32,
     .cache = DType::kBF16,
     .rotary_dim = 128,
     .norms = true},
    {.heads = 2, .kv_heads = 2, .head_dim = 20, .block_size = 8, .cache = DType::kF16, .rotary_dim = 0},
    {.heads = 6, .kv_heads = 2, .head_dim = 16, .block_size = 5, .rotary_dim = 16, .interleaved = true, .norms = true},
    {.heads = 4, .kv_heads = 4, .head_dim = 48, .block_size = 64, .rotary_dim = 48},
    {.heads = 6, .kv_heads = 3, .rotary_dim = 12, .norms = true, .whole_norms = true},
    {.window = 1},
    {.heads = 4, .kv_heads = 2, .head_dim = 16, .cache = DType::kBF16, .rotary_dim = 16, .window = 33},
    {.heads = 8, .kv_heads = 1, .head_dim = 24, .block_size = 8, .rotary_dim = 24, .window = 270},
    {.cache = DType::kF8E4M3},
    {.heads = 8,
     .kv_heads = 1,
     .head_dim = 128,
     .cache = DType::kF8E4M3,
     .rotary_dim = 128,
     .norms = true,
     .k_scale = 0.03f,
     .v_scale = 0.011f},
    {.heads = 4,
     .kv_heads = 4,
     .head_dim = 20,
     .block_size = 5,
     .cache = DType::kF8E4M3,
     .rotary_dim = 16,
     .window = 40,
     .v_scale = 0.004f},  // values above 1.8 saturate
};

TEST(Attention, MatchesTheFormula) {
  Random random(21);
  for (const std::string& isa : instruction_sets()) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(isa + " " + label(shape));
      Sequences sequences(random, shape, {1, 17, 75, 300});
      Runner runner(isa, 2, sequences);
      runner.run(75);
      check(sequences, runner.outputs(), tolerance_of(shape.cache));
    }
  }
}

TEST(Attention, LongContextsMatchTheFormula) {
  Random random(22);
  for (std::int32_t window : {0, 100, 600}) {
    const Shape shape{.heads = 3, .kv_heads = 1, .head_dim = 16, .rotary_dim = 16, .window = window};
    for (const std::string& isa : instruction_sets()) {
      Sequences sequences(random, shape, {1100, 511});
      Runner runner(isa, 2, sequences);
      runner.run(256);
      check(sequences, runner.outputs(), 1e-5);
    }
  }
}

// Any cut into steps, any company and any number of threads: prefill in one piece, in odd chunks, token by token.
TEST(Attention, BitsDoNotDependOnChunksOrThreads) {
  Random random(23);
  for (const std::string& isa : instruction_sets()) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(isa + " " + label(shape));
      Sequences sequences(random, shape, {275, 1, 130});
      Runner whole(isa, 1, sequences);
      whole.run(275);
      constexpr std::pair<std::int32_t, int> kCuts[] = {{1, 1}, {1, 2}, {3, 4}, {16, 3}, {61, 1}, {61, 4}, {256, 2}};
      for (const auto& [rows, threads] : kCuts) {
        Runner other(isa, threads, sequences);
        other.run(rows);
        for (std::size_t s = 0; s < sequences.count(); ++s) {
          ASSERT_TRUE(same_bits(other.outputs()[s], whole.outputs()[s]))
              << "chunks of " << rows << ", " << threads << " threads, sequence " << s;
        }
      }
    }
  }
}

// A sequence of one position gives its values back as the cache holds them: those between two codes, just beside such a
// middle, subnormal ones, and what saturates.
TEST(Attention, Fp8CacheRoundsAsItsFormatDoes) {
  constexpr std::int32_t kWidth = 32;
  Random random(25);
  std::vector<float> values;
  for (int code = 0; code < 0x7e; ++code) {
    const float low = e4m3_to_f32(static_cast<std::uint8_t>(code));
    const float middle = (low + e4m3_to_f32(static_cast<std::uint8_t>(code + 1))) / 2;
    for (float value : {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 500.0f)}) {
      values.insert(values.end(), {value, -value});
    }
  }
  values.insert(values.end(), {448.0f, 463.9f, 464.0f, 1e9f, -1e9f, INFINITY, -INFINITY, 1e-30f});
  for (int i = 0; i < 2000; ++i) values.push_back(std::exp2(static_cast<float>(random() % 2000) / 100 - 11.0f));
  values.resize((values.size() + kWidth - 1) / kWidth * kWidth);
  for (const std::string& isa : instruction_sets()) {
    Machine machine(isa, 1);
    Tensor keys(DType::kF8E4M3, {1, 1, 16, kWidth}), cached(DType::kF8E4M3, {1, 1, 16, kWidth});
    QkvSpec spec;
    spec.attention = {.heads = 1, .kv_heads = 1, .head_dim = kWidth, .block_size = 16, .scale = 1.0f};
    std::vector<std::int32_t> zeros{0}, ends{0, 1};
    const TensorView table = make_view(zeros.data(), DType::kI32, {1, 1});
    Batch batch;
    batch.positions = batch.spans_of_rows = batch.slots = ids(zeros);
    batch.first_rows = ids(ends);
    batch.block_tables = std::span(&table, 1);
    const KvLayer layer{keys.view(), cached.view()};
    for (std::size_t first = 0; first < values.size(); first += kWidth) {
      std::vector<float> row(3 * kWidth, 0.5f), out(kWidth);
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), kWidth, row.begin() + 2 * kWidth);
      machine.backend->qk_norm_rope_write(*machine.stream, spec, matrix(row, 1), batch, 0, layer);
      machine.backend->attention(*machine.stream, spec.attention, make_view(row.data(), DType::kF32, {1, kWidth}),
                                 batch, 0, layer, matrix(out, 1));
      for (std::int32_t d = 0; d < kWidth; ++d) {
        const float value = values[first + static_cast<std::size_t>(d)];
        ASSERT_EQ(out[d], e4m3_to_f32(f32_to_e4m3(value))) << isa << " " << value;
      }
    }
  }
}

// A sequence alone, where few tasks make the splits go to different threads, against company.
TEST(Attention, BitsDoNotDependOnDividedSplits) {
  Random random(24);
  for (const DType cache : {DType::kBF16, DType::kF8E4M3}) {
    const Shape shape{.heads = 9, .kv_heads = 3, .head_dim = 64, .cache = cache, .rotary_dim = 64};
    for (const std::string& isa : instruction_sets()) {
      Sequences sequences(random, shape, {600});
      Runner whole(isa, 1, sequences);
      whole.run(600);
      for (int threads = 2; threads <= 4; ++threads) {
        Runner other(isa, threads, sequences);
        other.step({{0, 0, 592}});
        for (std::int32_t position = 592; position < 600; ++position) other.step({{0, position, 1}});
        ASSERT_TRUE(same_bits(other.outputs()[0], whole.outputs()[0])) << threads << " threads";
      }
    }
  }
}

}  // namespace
}  // namespace octet::ops
