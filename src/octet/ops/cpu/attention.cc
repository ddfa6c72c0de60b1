#include "octet/ops/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "octet/ops/cpu/paged.h"

namespace octet::ops::cpu {
namespace {

constexpr std::int64_t kSplit = 256;         // positions after which sums start afresh; part of the arithmetic
constexpr std::int64_t kTileQueries = 24;    // queries (rows times heads of a group) that share a read of the cache
constexpr std::int64_t kValueChunk = 32;     // positions whose values are put into panels at once
constexpr int kKeyPanels = FloatRun::kMost;  // that meet the queries at once: enough sums to hide the latency of one
// Memory is asked for by so many runs of key panels, and of values, ahead.
constexpr int kKeysAhead = 1, kValuesAhead = 4;
constexpr std::int64_t kItemsPerThread = 4;

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

// Consecutive rows of one sequence that go through attention together.
struct RowTile {
  std::int32_t first_row, rows;
  std::int32_t positions;  // of its longest row, which sees keys up to there
  std::int32_t first;      // key that any of its rows sees
};

// One value of a cache from one place to another.
void copy_value(std::int64_t bytes, const std::byte* from, std::int64_t from_slot, std::byte* to,
                std::int64_t to_slot) {
  std::memcpy(to + to_slot * bytes, from + from_slot * bytes, static_cast<std::size_t>(bytes));
}

// A sum over keys that is not divided by its weight yet; out: [width] beside it.
struct Partial {
  float max, sum;
};

// Adds a later split to the sum of the earlier ones: the one function behind every order of work.
void merge(const Kernels& kernels, Partial& total, float* total_out, const Partial& split, const float* split_out,
           std::int64_t width) {
  if (total.sum == 0) {
    total = split;
    std::memcpy(total_out, split_out, static_cast<std::size_t>(width) * sizeof(float));
    return;
  }
  const float max = std::max(total.max, split.max);
  const float total_scale = std::exp(total.max - max), split_scale = std::exp(split.max - max);
  kernels.blend(total_out, total_scale, split_out, split_scale, width);
  total.sum = total.sum * total_scale + split.sum * split_scale;
  total.max = max;
}

class Attention {
 public:
  Attention(const Kernels& kernels, const AttentionSpec& spec, TensorView q, const Batch& batch, std::size_t group,
            KvLayer cache, TensorView out)
      : kernels_(kernels),
        spec_(spec),
        q_(q),
        out_(out),
        cache_(cache),
        paged_(spec, batch, group, cache),
        group_(spec.heads / spec.kv_heads),
        width_(round_up(spec.head_dim, kPanel)),
        query_scale_(cache.keys.dtype == DType::kF8E4M3 ? spec.scale * spec.k_scale / kE4M3Unit : spec.scale),
        value_scale_(cache.values.dtype == DType::kF8E4M3 ? spec.v_scale / kE4M3Unit : 1.0f),
        tile_rows_(std::max<std::int64_t>(1, kTileQueries / group_)) {}

  void run(CpuStream& stream);

 private:
  // One member's scratch memory.
  struct Work {
    float* queries;    // [tile queries][head_dim], scaled
    float* scores;     // [tile queries][256]
    std::byte* spare;  // a panel of keys, or of 32 values, for caches that do not lie in panels
    float* split;      // [tile queries][width]
    float* total;      // [tile queries][width]
    Partial* splits;   // [tile queries]
    Partial* totals;   // [tile queries]
  };
  std::int64_t tile_queries() const { return tile_rows_ * group_; }
  // The first key that a row sees.
  std::int64_t first_seen(std::int64_t row) const {
    return spec_.window == 0 ? 0 : std::max<std::int64_t>(0, paged_.position(row) + 1 - spec_.window);
  }
  std::int64_t spare_floats() const;
  std::int64_t work_floats() const;
  Work work_at(float* base) const;

  // A split of a tile that waits to be merged: sums, then Partials.
  std::int64_t partial_floats() const { return tile_queries() * (width_ + 2); }
  float* reserve_partials(CpuStream& stream) const;

  std::int64_t cut_tiles(RowTile* tiles) const;
  void load_queries(const RowTile& tile, std::int64_t kv_head, float* queries) const;
  const std::byte* key_panel(const std::int32_t* table, std::int64_t kv_head, std::int64_t position) const;
  void add_scores(const std::int32_t* table, std::int64_t kv_head, std::int64_t begin, std::int64_t from,
                  std::int64_t end, std::int64_t queries, const Work& work) const;
  void add_plain_scores(const std::int32_t* table, std::int64_t kv_head, std::int64_t begin, std::int64_t from,
                        std::int64_t end, std::int64_t queries, const Work& work) const;
  void place_ahead(const std::int32_t* table, std::int64_t kv_head, std::int64_t next, std::int64_t positions,
                   std::int64_t run_bytes, bool last, int panels, int count, FloatRun* runs) const;
  void add_values(const std::int32_t* table, std::int64_t kv_head, std::int64_t begin, std::int64_t from,
                  std::int64_t end, std::int64_t positions, std::int64_t queries, const Work& work) const;
  void add_plain_values(const std::int32_t* table, std::int64_t kv_head, std::int64_t begin, std::int64_t from,
                        std::int64_t end, std::int64_t queries, const Work& work) const;
  // Keys [256 * split, 256 * (split + 1)) for all queries of a tile, into work.split and work.splits. A row that sees
  // none of them, past its end or before its window, gets a sum of 0.
  void run_split(const RowTile& tile, std::int64_t kv_head, std::int64_t split, const Work& work) const;
  void write_out(const RowTile& tile, std::int64_t kv_head, std::int64_t query, const Partial& total,
                 const float* sums) const;

  void run_whole(CpuStream& stream, const RowTile* tiles, std::int64_t count);
  void run_divided(CpuStream& stream, const RowTile* tiles, std::int64_t count, std::int64_t splits);

  const Kernels& kernels_;
  const AttentionSpec& spec_;
  TensorView q_, out_;
  KvLayer cache_;
  PagedCache paged_;
  std::int64_t group_;               // query heads per KV head
  std::int64_t width_;               // head_dim in whole panels
  float query_scale_, value_scale_;  // those of an FP8 cache's codes included
  std::int64_t tile_rows_;
};

std::int64_t Attention::spare_floats() const {
  return std::max<std::int64_t>(round_up(spec_.head_dim, 2), kValueChunk) * kPanel;
}

std::int64_t Attention::work_floats() const {
  return tile_queries() * (round_up(spec_.head_dim, kPanel) + kSplit + 2 * width_ + 4) + spare_floats() + kPanel;
}

Attention::Work Attention::work_at(float* base) const {
  const std::int64_t queries = tile_queries();
  Work work;
  work.queries = base;
  work.scores = work.queries + queries * round_up(spec_.head_dim, kPanel);
  float* spare = work.scores + queries * kSplit;
  work.spare = reinterpret_cast<std::byte*>(spare);
  work.split = spare + spare_floats();
  work.total = work.split + queries * width_;
  work.splits = reinterpret_cast<Partial*>(work.total + queries * width_);
  work.totals = work.splits + queries;
  return work;
}

std::int64_t Attention::cut_tiles(RowTile* tiles) const {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < q_.dims[0];) {
    std::int64_t end = row + 1;
    std::int64_t positions = paged_.position(row) + 1, first = first_seen(row);
    while (end < q_.dims[0] && end - row < tile_rows_ && paged_.span(end) == paged_.span(row)) {
      positions = std::max(positions, paged_.position(end) + 1);
      first = std::min(first, first_seen(end));
      ++end;
    }
    tiles[count++] = {static_cast<std::int32_t>(row), static_cast<std::int32_t>(end - row),
                      static_cast<std::int32_t>(positions), static_cast<std::int32_t>(first)};
    row = end;
  }
  return count;
}

void Attention::load_queries(const RowTile& tile, std::int64_t kv_head, float* queries) const {
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const float* from = q_.row<const float>(tile.first_row + r) + kv_head * group_ * spec_.head_dim;
    for (std::int64_t head = 0; head < group_; ++head) {
      kernels_.scale(from + head * spec_.head_dim, query_scale_, spec_.head_dim,
                     queries + (r * group_ + head) * spec_.head_dim);
    }
  }
}

const std::byte* Attention::key_panel(const std::int32_t* table, std::int64_t kv_head, std::int64_t position) const {
  return paged_.keys(paged_.block(table, position), kv_head) +
         position % spec_.block_size * spec_.head_dim * paged_.key_size();
}

// Adds the products of all queries with keys [begin + from, end), some panels of them at a time. Lanes from `end` on
// hold anything; blocks past it are not touched.
void Attention::add_scores(const std::int32_t* table, std::int64_t kv_head, std::int64_t begin, std::int64_t from,
                           std::int64_t end, std::int64_t queries, const Work& work) const {
  if (!paged_.key_panels()) return add_plain_scores(table, kv_head, begin, from, end, queries, work);
  constexpr std::int64_t kRunKeys = kKeyPanels * kPanel;
  FloatRun runs[kSplit / kRunKeys + 1 + kKeysAhead];
  FloatRun* last = runs;
  for (std::int64_t position = begin + from; position < end; position += kRunKeys, ++last) {
    for (int i = 0; i < kKeyPanels; ++i) {
      const std::int64_t of_panel = position + i * kPanel;
      last->at[i] = of_panel < end ? key_panel(table, kv_head, of_panel) : last->at[0];
    }
  }
  // The first values come next.
  for (int ahead = 0; ahead < kKeysAhead; ++ahead) {
    for (int i = 0; i < kKeyPanels; ++i) {
      const std::int64_t position = begin + from + (kKeyPanels * ahead + i) * spec_.block_size;
      last[ahead].at[i] = paged_.values(paged_.block(table, position < end ? position : end - 1), kv_head);
    }
  }
  FloatPanels panels{.type = cache_.keys.dtype,
                     .count = kKeyPanels,
                     .inputs = spec_.head_dim,
                     .run_inputs = spec_.head_dim,
                     .ahead = kKeysAhead,
                     .runs = runs};
  for (std::int64_t i = from; begin + i < end; i += kRunKeys, ++panels.runs) {
    panels.count = static_cast<int>(std::min<std::int64_t>(kKeyPanels, (end - begin - i + kPanel - 1) / kPanel));
    kernels_.multiply(panels, work.queries, spec_.head_dim, queries, work.scores + i, kSplit);
  }
}

// The same where keys do not lie in panels: they are put into one.
void Attention::add_plain_scores(const std::int32_t* table, std::int64_t kv_head, std::int64_t begin, std::int64_t from,
                                 std::int64_t end, std::int64_t queries, const Work& work) const {
  const DType type = cache_.keys.dtype;
  FloatRun runs[2];
  runs[0].at[0] = runs[1].at[0] = work.spare;
  const FloatPanels panels{
      .type = type, .count = 1, .inputs = spec_.head_dim, .run_inputs = spec_.head_dim, .runs = runs};
  for (std::int64_t i = from; begin + i < end; i += kPanel) {
    for (std::int64_t lane = 0; lane < kPanel && begin + i + lane < end; ++lane) {
      const std::byte* block = paged_.keys(paged_.block(table, begin + i + lane), kv_head);
      const std::int64_t token = (begin + i + lane) % spec_.block_size;
      for (std::int64_t d = 0; d < spec_.head_dim; ++d) {
        copy_value(paged_.key_size(), block, paged_.key_slot(d, token), work.spare,
                   float_slot(type, d, static_cast<int>(lane)));
      }
    }
    kernels_.multiply(panels, work.queries, spec_.head_dim, queries, work.scores + i, kSplit);
  }
}

// Fills what stands behind the last of `count` runs of values: the following dimensions of the first runs or, behind
// the last dimensions, the keys of the next split.
void Attention::place_ahead(const std::int32_t* table, std::int64_t kv_head, std::int64_t next, std::int64_t positions,
                            std::int64_t run_bytes, bool last, int panels, int count, FloatRun* runs) const {
  const std::int64_t key_bytes = spec_.head_dim * kPanel * paged_.key_size();
  for (int ahead = 0; ahead < kValuesAhead; ++ahead) {
    FloatRun& run = runs[count + ahead];
    run = runs[std::min(ahead, count - 1)];
    for (int i = 0; i < panels; ++i) {
      const std::int64_t byte = (ahead * panels + i) * run_bytes;
      const std::int64_t position = next + byte / key_bytes * kPanel;
      if (!last) {
        run.at[i] += panels * run_bytes;
      } else if (paged_.key_panels() && position < positions) {
        run.at[i] = key_panel(table, kv_head, position) + byte % key_bytes;
      }
    }
  }
}

// Adds values [begin + from, end), weighed by each query's scores; the tile's rows see keys before `positions`.
void Attention::add_values(const std::int32_t* table, std::int64_t kv_head, std::int64_t begin, std::int64_t from,
                           std::int64_t end, std::int64_t positions, std::int64_t queries, const Work& work) const {
  const std::int64_t block_size = spec_.block_size;
  const std::int64_t run_inputs = std::min(block_size, kSplit);
  if (!paged_.value_panels() || kSplit % run_inputs != 0) {
    return add_plain_values(table, kv_head, begin, from, end, queries, work);
  }
  // Whole blocks: what lies before `from` has weights of exactly 0.
  from = from / run_inputs * run_inputs;
  const std::int32_t* blocks = table + (begin + from) / block_size;
  const std::int64_t token = (begin + from) % block_size;
  const std::int64_t panel_bytes = block_size * kPanel * paged_.value_size();
  FloatRun runs[kSplit + kValuesAhead];
  FloatPanels panels{.type = cache_.values.dtype,
                     .count = 0,
                     .inputs = end - begin - from,
                     .run_inputs = run_inputs,
                     .ahead = kValuesAhead,
                     .runs = runs};
  const int count = static_cast<int>((panels.inputs + run_inputs - 1) / run_inputs);
  for (std::int64_t d = 0; d < width_; d += panels.count * kPanel) {
    panels.count = static_cast<int>(std::min<std::int64_t>(FloatRun::kMost, (width_ - d) / kPanel));
    const std::int64_t offset = d / kPanel * panel_bytes + token * kPanel * paged_.value_size();
    for (int run = 0; run < count; ++run) {
      const std::byte* block = paged_.values(blocks[run], kv_head) + offset;
      for (int i = 0; i < panels.count; ++i) runs[run].at[i] = block + i * panel_bytes;
    }
    place_ahead(table, kv_head, begin + kSplit, positions, panel_bytes, d + panels.count * kPanel == width_,
                panels.count, count, runs);
    kernels_.multiply(panels, work.scores + from, kSplit, queries, work.split + d, width_);
  }
}

// The same where values do not lie in panels: they are put into some, few positions at a time.
void Attention::add_plain_values(const std::int32_t* table, std::int64_t kv_head, std::int64_t begin, std::int64_t from,
                                 std::int64_t end, std::int64_t queries, const Work& work) const {
  const DType type = cache_.values.dtype;
  FloatRun runs[2];
  FloatPanels panels{.type = type, .count = 1, .inputs = 0, .run_inputs = 0, .runs = runs};
  runs[0].at[0] = runs[1].at[0] = work.spare;
  for (std::int64_t i = from; begin + i < end; i += kValueChunk) {
    panels.inputs = panels.run_inputs = std::min(kValueChunk, end - begin - i);
    for (std::int64_t first = 0; first < width_; first += kPanel) {
      std::memset(work.spare, 0, static_cast<std::size_t>(kValueChunk * kPanel * paged_.value_size()));
      for (std::int64_t k = 0; k < panels.inputs; ++k) {
        const std::byte* block = paged_.values(paged_.block(table, begin + i + k), kv_head);
        const std::int64_t token = (begin + i + k) % spec_.block_size;
        for (std::int64_t d = first; d < std::min<std::int64_t>(first + kPanel, spec_.head_dim); ++d) {
          copy_value(paged_.value_size(), block, paged_.value_slot(token, d), work.spare,
                     float_slot(type, k, static_cast<int>(d - first)));
        }
      }
      kernels_.multiply(panels, work.scores + i, kSplit, queries, work.split + first, width_);
    }
  }
}

void Attention::run_split(const RowTile& tile, std::int64_t kv_head, std::int64_t split, const Work& work) const {
  const std::int32_t* table = paged_.table(tile.first_row);
  const std::int64_t begin = split * kSplit;
  const std::int64_t count = std::min<std::int64_t>(kSplit, tile.positions - begin);
  const std::int64_t padded = round_up(count, kPanel);
  const std::int64_t queries = tile.rows * group_;
  // What no row sees is skipped: its weights are exactly 0.
  const std::int64_t from = std::max<std::int64_t>(0, tile.first - begin) / kPanel * kPanel;

  for (std::int64_t query = 0; query < queries; ++query) {
    std::fill_n(work.scores + query * kSplit, padded, 0.0f);
    std::fill_n(work.split + query * width_, width_, 0.0f);
  }
  add_scores(table, kv_head, begin, from, begin + count, queries, work);
  for (std::int64_t query = 0; query < queries; ++query) {
    const std::int64_t row = tile.first_row + query / group_;
    const std::int64_t seen = std::min(paged_.position(row) + 1 - begin, kSplit);
    const std::int64_t unseen = std::max<std::int64_t>(0, first_seen(row) - begin);  // before the row's window
    float* scores = work.scores + query * kSplit;
    work.splits[query] = {-std::numeric_limits<float>::infinity(), 0.0f};
    if (seen <= unseen) {
      std::fill_n(scores, padded, 0.0f);
    } else {
      std::fill_n(scores, unseen, -std::numeric_limits<float>::infinity());
      kernels_.softmax(scores, seen, padded, &work.splits[query].max, &work.splits[query].sum);
    }
  }
  add_values(table, kv_head, begin, from, begin + count, tile.positions, queries, work);
}

void Attention::write_out(const RowTile& tile, std::int64_t kv_head, std::int64_t query, const Partial& total,
                          const float* sums) const {
  const std::int64_t head = kv_head * group_ + query % group_;
  float* out = out_.row<float>(tile.first_row + query / group_) + head * spec_.head_dim;
  kernels_.scale(sums, value_scale_ / total.sum, spec_.head_dim, out);
}

// A task is a tile and a KV head, with all its splits one after the other.
void Attention::run_whole(CpuStream& stream, const RowTile* tiles, std::int64_t count) {
  const CpuStream::PerMember scratch = stream.per_member(work_floats());
  const std::int64_t tasks = count * spec_.kv_heads;
  stream.team().parallel_for(tasks, 1, [&](int member, std::int64_t first, std::int64_t last) {
    const Work work = work_at(scratch.of(member));
    for (std::int64_t task = first; task < last; ++task) {
      // Late rows of a prompt see most keys: they go first, so that the threads end together.
      const RowTile& tile = tiles[count - 1 - task / spec_.kv_heads];
      const std::int64_t kv_head = task % spec_.kv_heads;
      load_queries(tile, kv_head, work.queries);
      const std::int64_t queries = tile.rows * group_;
      for (std::int64_t query = 0; query < queries; ++query) work.totals[query] = {0.0f, 0.0f};
      for (std::int64_t split = tile.first / kSplit; split * kSplit < tile.positions; ++split) {
        run_split(tile, kv_head, split, work);
        for (std::int64_t query = 0; query < queries; ++query) {
          if (work.splits[query].sum == 0) continue;
          merge(kernels_, work.totals[query], work.total + query * width_, work.splits[query],
                work.split + query * width_, width_);
        }
      }
      for (std::int64_t query = 0; query < queries; ++query) {
        write_out(tile, kv_head, query, work.totals[query], work.total + query * width_);
      }
    }
  });
}

// Sized for the longest sequence, so that a growing context allocates nothing.
float* Attention::reserve_partials(CpuStream& stream) const {
  const std::int64_t most_splits = (paged_.capacity() + kSplit - 1) / kSplit;
  return stream.partials().reserve<float>(kItemsPerThread * stream.team().size() * most_splits * partial_floats());
}

// Few tiles with long contexts: a task is a tile, a KV head and a split; a second pass merges.
void Attention::run_divided(CpuStream& stream, const RowTile* tiles, std::int64_t count, std::int64_t splits) {
  const CpuStream::PerMember scratch = stream.per_member(work_floats());
  const std::int64_t pairs = count * spec_.kv_heads;
  const std::int64_t queries = tile_queries();
  const std::int64_t unit = partial_floats();
  float* parts = reserve_partials(stream);
  const auto part_at = [&](std::int64_t pair, std::int64_t split) { return parts + (pair * splits + split) * unit; };
  const auto partials_of = [&](float* part) { return reinterpret_cast<Partial*>(part + queries * width_); };

  // Neighbouring splits to one thread, which asks for the next while it is at one.
  const std::int64_t grain = std::max<std::int64_t>(1, pairs * splits / (kItemsPerThread * stream.team().size()) / 2);
  stream.team().parallel_for(pairs * splits, grain, [&](int member, std::int64_t first, std::int64_t last) {
    Work work = work_at(scratch.of(member));
    for (std::int64_t task = first; task < last; ++task) {
      const std::int64_t pair = task / splits, split = task % splits;
      const RowTile& tile = tiles[pair / spec_.kv_heads];
      if (split * kSplit >= tile.positions || split < tile.first / kSplit) continue;
      load_queries(tile, pair % spec_.kv_heads, work.queries);
      work.split = part_at(pair, split);
      work.splits = partials_of(work.split);
      run_split(tile, pair % spec_.kv_heads, split, work);
    }
  });
  stream.team().parallel_for(pairs, 1, [&](int, std::int64_t first, std::int64_t last) {
    for (std::int64_t pair = first; pair < last; ++pair) {
      const RowTile& tile = tiles[pair / spec_.kv_heads];
      const std::int64_t first_split = tile.first / kSplit;
      float* total = part_at(pair, first_split);
      Partial* totals = partials_of(total);
      for (std::int64_t query = 0; query < tile.rows * group_; ++query) {
        for (std::int64_t split = first_split + 1; split * kSplit < tile.positions; ++split) {
          float* part = part_at(pair, split);
          if (partials_of(part)[query].sum == 0) continue;
          merge(kernels_, totals[query], total + query * width_, partials_of(part)[query], part + query * width_,
                width_);
        }
        write_out(tile, pair % spec_.kv_heads, query, totals[query], total + query * width_);
      }
    }
  });
}

void Attention::run(CpuStream& stream) {
  if (q_.dims[0] == 0) return;
  auto* tiles = stream.tiles().reserve<RowTile>(q_.dims[0]);
  const std::int64_t count = cut_tiles(tiles);
  std::int64_t positions = 0;
  for (std::int64_t i = 0; i < count; ++i) positions = std::max<std::int64_t>(positions, tiles[i].positions);
  const std::int64_t splits = (positions + kSplit - 1) / kSplit;
  const int threads = stream.team().size();
  if (threads > 1) reserve_partials(stream);  // with the first step, long before the first long context
  if (threads > 1 && splits > 1 && count * spec_.kv_heads <= kItemsPerThread * threads) {
    run_divided(stream, tiles, count, splits);
  } else {
    run_whole(stream, tiles, count);
  }
}

}  // namespace

void attention(CpuStream& stream, const Kernels& kernels, const AttentionSpec& spec, TensorView q, const Batch& batch,
               std::size_t group, KvLayer cache, TensorView out) {
  Attention(kernels, spec, q, batch, group, cache, out).run(stream);
}

}  // namespace octet::ops::cpu
