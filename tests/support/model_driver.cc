#include "tests/support/model_driver.h"

#include <algorithm>

#include "octet/base/check.h"

namespace octet::testing {
namespace {

constexpr int kNeverStop = 1 << 30;

TensorView view_of(std::vector<std::int32_t>& values) {
  return make_view(values.data(), DType::kI32, {static_cast<std::int64_t>(values.size())});
}

// The rows of a step, as an executor lays them out.
struct Rows {
  std::vector<std::int32_t> tokens, positions, spans, first_rows = {0}, slots, logits;

  void add(const ModelDriver::Piece& piece, std::int32_t first_position) {
    const auto span = static_cast<std::int32_t>(slots.size());
    for (const std::int32_t token : piece.tokens) {
      tokens.push_back(token);
      positions.push_back(first_position++);
      spans.push_back(span);
    }
    const auto end = static_cast<std::int32_t>(tokens.size());
    for (int i = piece.logits_rows; i > 0; --i) logits.push_back(end - i);
    first_rows.push_back(end);
    slots.push_back(piece.sequence);
  }
};

}  // namespace

Result<std::unique_ptr<ModelDriver>> ModelDriver::open(const std::filesystem::path& path, const DriverOptions& options,
                                                       std::unique_ptr<comm::Group> group) {
  std::unique_ptr<ModelDriver> driver(new ModelDriver());
  driver->options_ = options;
  OCTET_TRY_VOID(driver->load(path, std::move(group)));
  driver->make_cache();
  return driver;
}

Result<> ModelDriver::load(const std::filesystem::path& path, std::unique_ptr<comm::Group> group) {
  OCTET_TRY(checkpoint_, formats::Checkpoint::open(path, options_.open));
  if (options_.wrap_checkpoint) checkpoint_ = options_.wrap_checkpoint(std::move(checkpoint_));
  backend_ = ops::make_cpu_backend(options_.threads, options_.isa);
  OCTET_CHECK(backend_ != nullptr);
  if (options_.wrap_backend) backend_ = options_.wrap_backend(std::move(backend_));
  stream_ = backend_->create_stream();
  group_ = group != nullptr ? std::move(group) : comm::make_solo_group();
  const models::LoadOptions load{.dtype = options_.dtype,
                                 .cache_dtype = options_.cache_dtype,
                                 .max_rows = options_.max_rows,
                                 .max_logits_rows = options_.max_rows,
                                 .max_positions = options_.max_context,
                                 .block_size = options_.block_size,
                                 .progress = {}};
  OCTET_TRY(model_, models::load_model(*checkpoint_, *backend_, *stream_, *group_, load));
  return {};
}

void ModelDriver::make_cache() {
  const std::int64_t per_sequence = (options_.max_context + options_.block_size - 1) / options_.block_size;
  const std::int64_t blocks = per_sequence * options_.max_sequences;
  for (const models::CacheGroup& group : model_->cache_groups()) {
    std::vector<ops::KvLayer>& layers = caches_.emplace_back();
    for (std::int32_t layer = 0; layer < group.layers; ++layer) {
      const auto memory = [&] {
        return cache_memory_
            .emplace_back(Tensor(group.dtype, {blocks, group.kv_heads, options_.block_size, group.head_dim}))
            .view();
      };
      const TensorView keys = memory(), values = memory();
      layers.push_back({.keys = keys, .values = values});
    }
  }
  // Neighbouring blocks of a sequence lie apart and backwards, so that an op cannot get by without the table.
  block_table_ = Tensor(DType::kI32, {options_.max_sequences, per_sequence});
  for (std::int64_t sequence = 0; sequence < options_.max_sequences; ++sequence)
    for (std::int64_t i = 0; i < per_sequence; ++i)
      block_table_.view().row<std::int32_t>(sequence)[i] =
          static_cast<std::int32_t>(blocks - 1 - (i * options_.max_sequences + sequence));
  lengths_.resize(static_cast<std::size_t>(options_.max_sequences));
}

bool ModelDriver::forward(std::span<const Piece> pieces, int layers, Logits* logits) {
  Rows rows;
  for (const Piece& piece : pieces) {
    std::int32_t& length = lengths_[static_cast<std::size_t>(piece.sequence)];
    rows.add(piece, length);
    length += static_cast<std::int32_t>(piece.tokens.size());
    OCTET_CHECK(length <= options_.max_context);
  }
  const std::vector<TensorView> tables(caches_.size(), block_table_.view());
  const ops::Batch batch{.tokens = view_of(rows.tokens),
                         .positions = view_of(rows.positions),
                         .spans_of_rows = view_of(rows.spans),
                         .first_rows = view_of(rows.first_rows),
                         .slots = view_of(rows.slots),
                         .logits_rows = view_of(rows.logits),
                         .block_tables = tables};
  const std::int64_t vocabulary = model_->config().vocab_size;
  const auto logits_rows = static_cast<std::int64_t>(rows.logits.size());
  Tensor out(DType::kF32, {logits_rows, vocabulary});
  if (before_forward) before_forward();
  const bool finished = model_->forward(
      *stream_,
      {.batch = &batch, .caches = caches_, .logits = out.view(), .interrupted = [&] { return layers-- <= 0; }});
  stream_->synchronize();
  if (after_forward) after_forward();
  for (std::int64_t i = 0; i < logits_rows && logits != nullptr; ++i) {
    const float* row = out.view().row<float>(i);
    logits->emplace_back(row, row + vocabulary);
  }
  return finished;
}

ModelDriver::Logits ModelDriver::step(std::span<const Piece> pieces) {
  Logits logits;
  OCTET_CHECK(forward(pieces, kNeverStop, &logits));
  return logits;
}

bool ModelDriver::step_interrupted(std::span<const Piece> pieces, int layers) {
  return forward(pieces, layers, nullptr);
}

ModelDriver::Logits ModelDriver::run(int sequence, std::span<const std::int32_t> tokens, int chunk) {
  Logits all;
  while (!tokens.empty()) {
    const std::size_t count = std::min(tokens.size(), static_cast<std::size_t>(chunk));
    const Piece piece{.sequence = sequence, .tokens = tokens.first(count), .logits_rows = static_cast<int>(count)};
    for (std::vector<float>& row : step({&piece, 1})) all.push_back(std::move(row));
    tokens = tokens.subspan(count);
  }
  return all;
}

std::vector<std::string> available_isas() {
  std::vector<std::string> available;
  for (const char* isa : {"scalar", "avx2", "avx512", "neon"})
    if (ops::make_cpu_backend(1, isa) != nullptr) available.emplace_back(isa);
  return available;
}

std::int32_t argmax(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
}

}  // namespace octet::testing
