// Shares of the machine's limits: what memory and arithmetic can do, and what the ops of decoding make of it, in turns
// in one run. Matrices and caches together are larger than the CPU's caches.
//   roofline_bench [--only limits,linear,experts,attention] [--json]        `roofline_bench --help` tells the rest
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/machine_limits.h"
#include "octet/base/flags.h"
#include "octet/base/json.h"
#include "octet/ops/backend.h"

namespace octet::bench {
namespace {

struct Settings {
  std::string only = "limits,linear,experts,attention", isa = "auto", shapes = "4096x4096,4096x14336";
  std::string moe = "64/8x1024x384", moe_rows = "1,4,16,512";
  std::string formats = "F32,F16,BF16,F8_E4M3,Q8_0,Q4_0,Q4_1,Q5_0,Q5_1,Q4_K,Q5_K,Q6_K";
  std::int64_t threads = 2, mib = 512, repeats = 5, rows = 1, context = 8192;
  bool json = false;

  int team() const { return static_cast<int>(threads); }
  std::int64_t bytes() const { return mib << 20; }
};

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ',') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// One measured op.
struct Row {
  std::string op, what;
  double gbs = 0, gops = 0, share = 0, least = 0, most = 0;  // shares of the bandwidth read just before
};

class Roofline {
 public:
  explicit Roofline(const Settings& settings)
      : settings_(settings),
        team_(settings.team()),
        bandwidth_(team_, std::max<std::int64_t>(settings.bytes(), 64 << 20)) {
    std::mt19937 random(1);
    for (std::uint32_t& word : noise_) word = random();
  }

  bool run();

 private:
  bool wants(std::string_view part) const {
    return std::ranges::any_of(words_of(settings_.only), [&](const std::string& word) { return word == part; });
  }
  void limits();
  bool linears();
  void linear(ops::Backend& backend, DType type, std::int64_t outputs, std::int64_t inputs);
  struct MoeShape {
    std::int64_t experts = 0, top_k = 0, hidden = 0, width = 0;
    std::int64_t expert_values() const { return 3 * hidden * width; }
  };
  bool experts();
  void experts(ops::Backend& backend, DType type, const MoeShape& shape);
  void attentions(ops::Backend& backend);
  void attention(ops::Backend& backend, const ops::AttentionSpec& spec, DType cache, bool scattered);
  // Each pass reads `bytes` and computes `operations`.
  template <typename Pass>
  void measure(const std::string& op, const std::string& what, double bytes, double operations, const Pass& pass);
  DType type_of(const std::string& name) const;
  Tensor weights(DType type, std::int64_t outputs, std::int64_t inputs) const;
  void print(const Row& row) const;

  const Settings& settings_;
  ThreadTeam team_;
  ReadBandwidth bandwidth_;
  std::vector<std::uint32_t> noise_ = std::vector<std::uint32_t>(4099);
  std::vector<double> read_;
  std::vector<Row> rows_;
  Json limits_ = Json::object();
};

void Roofline::limits() {
  for (int i = 0; i < settings_.repeats; ++i) read_.push_back(bandwidth_.measure());
  for (const Arithmetic& arithmetic : known_arithmetic()) {
    std::vector<double> rates;
    for (int i = 0; i < settings_.repeats; ++i) rates.push_back(measure_arithmetic(team_, arithmetic));
    limits_["arithmetic"].push_back(
        {{"name", arithmetic.name}, {"integer", arithmetic.integer}, {"gops", median(rates)}});
    if (!settings_.json) fmt::print("{:<34}{:9.1f} GOP/s\n", arithmetic.name, median(rates));
  }
  if (!settings_.json) fmt::print("{:<34}{:9.1f} GB/s\n\n", "reads of memory", median(read_));
}

// Random bits under exponents near 2^-5, as F32, F16, BF16, and as scales and quants of blocks: nothing subnormal.
Tensor Roofline::weights(DType type, std::int64_t outputs, std::int64_t inputs) const {
  Tensor made(type, {outputs, inputs});
  const std::uint32_t fixed = type == DType::kF32      ? 0x3d000000u
                              : type == DType::kBF16   ? 0x3d003d00u
                              : type == DType::kF8E4M3 ? 0x40404040u
                                                       : 0x28002800u;
  const std::uint32_t free = type == DType::kF32      ? 0x807fffffu
                             : type == DType::kBF16   ? 0x807f807fu
                             : type == DType::kF8E4M3 ? 0x9f9f9f9fu
                                                      : 0x83ff83ffu;
  for (std::size_t i = 0; i < made.bytes() / sizeof(std::uint32_t); ++i) {
    made.data<std::uint32_t>()[i] = fixed | (noise_[i % noise_.size()] & free);
  }
  return made;
}

template <typename Pass>
void Roofline::measure(const std::string& op, const std::string& what, double bytes, double operations,
                       const Pass& pass) {
  std::vector<double> rates, shares;
  pass();
  for (int i = 0; i < settings_.repeats; ++i) {
    const double read = bandwidth_.measure();
    const auto start = std::chrono::steady_clock::now();
    pass();
    rates.push_back(1e-9 * bytes / seconds_since(start));
    shares.push_back(rates.back() / read);
    read_.push_back(read);
  }
  const auto [least, most] = std::ranges::minmax(shares);
  rows_.push_back({op, what, median(rates), median(rates) * operations / bytes, median(shares), least, most});
  if (!settings_.json) print(rows_.back());
}

void Roofline::print(const Row& row) const {
  fmt::print("{:<10}{:<34}{:9.1f} GB/s {:6.0f} % of reads ({:.0f} to {:.0f}) {:8.1f} GOP/s\n", row.op, row.what,
             row.gbs, 100 * row.share, 100 * row.least, 100 * row.most, row.gops);
}

// The stored bytes count, not what a packed layout adds to them.
void Roofline::linear(ops::Backend& backend, DType type, std::int64_t outputs, std::int64_t inputs) {
  const std::unique_ptr<ops::Stream> stream = backend.create_stream();
  const Tensor stored = weights(type, outputs, inputs);
  // Blocks of scales as published FP8 models have them.
  Tensor scales(DType::kF32, {(outputs + 127) / 128, (inputs + 127) / 128});
  std::fill_n(scales.data<float>(), scales.view().size(), 0.001f);
  ops::LinearPart part{.weight = stored.view(), .bias = {}, .scale = {}};
  if (type == DType::kF8E4M3) part.scale = {scales.view(), 128, 128};
  const auto count = static_cast<std::size_t>(settings_.bytes() / static_cast<std::int64_t>(stored.bytes()) + 1);
  std::vector<std::unique_ptr<ops::Linear>> packed;
  while (packed.size() < count) packed.push_back(backend.pack(*stream, {&part, 1}, ops::Activations::kDefault));
  Tensor in(DType::kF32, {settings_.rows, inputs});
  const Tensor out(DType::kF32, {settings_.rows, outputs});
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < settings_.rows * inputs; ++i) in.data<float>()[i] = normal(random);
  measure("linear", fmt::format("{} {}x{}, {} matrices", dtype_info(type).name, outputs, inputs, count),
          static_cast<double>(count) * static_cast<double>(stored.bytes()),
          2.0 * static_cast<double>(static_cast<std::int64_t>(count) * settings_.rows * outputs * inputs), [&] {
            for (const auto& matrix : packed) backend.linear(*stream, *matrix, in.view(), out.view());
            stream->synchronize();
          });
}

DType Roofline::type_of(const std::string& name) const {
  DType type = DType::kF64;
  for (int i = 0; i <= static_cast<int>(DType::kMXFP4); ++i) {
    if (dtype_info(static_cast<DType>(i)).name == name) type = static_cast<DType>(i);
  }
  return type;
}

bool Roofline::linears() {
  const std::unique_ptr<ops::Backend> backend = ops::make_cpu_backend(settings_.team(), settings_.isa);
  for (const std::string& name : words_of(settings_.formats)) {
    const DType type = type_of(name);
    if (!backend->can_pack(type)) {
      if (!settings_.json) fmt::print("{:<10}{}: {} does not compute with it\n", "linear", name, backend->name());
      continue;
    }
    for (const std::string& shape : words_of(settings_.shapes)) {
      std::int64_t outputs = 0, inputs = 0;
      if (std::sscanf(shape.c_str(), "%ldx%ld", &outputs, &inputs) != 2 || outputs < 1 || inputs % 256 != 0) {
        fmt::print(stderr, "roofline_bench: --shapes {}: expected OUTPUTSxINPUTS, inputs a multiple of 256\n", shape);
        return false;
      }
      linear(*backend, type, outputs, inputs);
    }
  }
  return true;
}

// Random routing, layer after layer, until about every expert has been touched; the stored bytes of those that were.
void Roofline::experts(ops::Backend& backend, DType type, const MoeShape& shape) {
  const std::unique_ptr<ops::Stream> stream = backend.create_stream();
  const Tensor gate = weights(type, shape.width, shape.hidden), down = weights(type, shape.hidden, shape.width);
  const ops::LinearPart inner[] = {{.weight = gate.view()}, {.weight = gate.view()}}, outer{.weight = down.view()};
  const std::int64_t expert_bytes = bytes_of(type, shape.expert_values());
  std::vector<std::vector<ops::ExpertWeights>> layers(
      static_cast<std::size_t>(settings_.bytes() / (shape.experts * expert_bytes) + 1));
  for (auto& layer : layers) {
    while (static_cast<std::int64_t>(layer.size()) < shape.experts) {
      layer.push_back({backend.pack(*stream, inner, ops::Activations::kDefault),
                       backend.pack(*stream, {&outer, 1}, ops::Activations::kDefault)});
    }
  }
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  for (const std::string& word : words_of(settings_.moe_rows)) {
    const std::int64_t rows = std::stol(word);
    const std::int64_t calls = std::max<std::int64_t>(1, shape.experts / (rows * shape.top_k));
    std::vector<Tensor> chosen;
    std::vector<std::int32_t> deck(static_cast<std::size_t>(shape.experts));
    std::iota(deck.begin(), deck.end(), 0);
    std::int64_t touched = 0;
    for (std::size_t call = 0; call < static_cast<std::size_t>(calls) * layers.size(); ++call) {
      chosen.emplace_back(DType::kI32, std::initializer_list<std::int64_t>{rows, shape.top_k});
      std::vector<bool> seen(deck.size());
      for (std::int64_t row = 0; row < rows; ++row) {
        std::ranges::shuffle(deck, random);
        std::sort(deck.begin(), deck.begin() + shape.top_k);
        std::copy_n(deck.begin(), shape.top_k, chosen.back().view().row<std::int32_t>(row));
        for (std::int64_t i = 0; i < shape.top_k; ++i) seen[static_cast<std::size_t>(deck[i])] = true;
      }
      touched += std::ranges::count(seen, true);
    }
    const Tensor in(DType::kF32, {rows, shape.hidden}), out(DType::kF32, {rows, shape.hidden});
    const Tensor factors(DType::kF32, {rows, shape.top_k});
    for (std::int64_t i = 0; i < rows * shape.hidden; ++i) in.data<float>()[i] = normal(random);
    std::fill_n(factors.data<float>(), rows * shape.top_k, 0.125f);
    measure("experts", fmt::format("{} {} rows, {} layers", dtype_info(type).name, rows, layers.size()),
            static_cast<double>(touched * expert_bytes),
            2.0 * static_cast<double>(static_cast<std::int64_t>(chosen.size()) * rows * shape.top_k *
                                      shape.expert_values()),
            [&] {
              for (std::size_t call = 0; call < chosen.size(); ++call) {
                backend.experts(*stream, layers[call % layers.size()], in.view(), chosen[call].view(), factors.view(),
                                out.view());
              }
              stream->synchronize();
            });
  }
}

bool Roofline::experts() {
  MoeShape shape;
  if (std::sscanf(settings_.moe.c_str(), "%ld/%ldx%ldx%ld", &shape.experts, &shape.top_k, &shape.hidden,
                  &shape.width) != 4 ||
      shape.top_k < 1 || shape.experts < shape.top_k || shape.hidden % 32 != 0 || shape.width % 32 != 0) {
    fmt::print(stderr, "roofline_bench: --moe {}: expected EXPERTS/TOP_KxHIDDENxWIDTH\n", settings_.moe);
    return false;
  }
  if (!settings_.json) fmt::print("\nexperts {}\n", settings_.moe);
  const std::unique_ptr<ops::Backend> backend = ops::make_cpu_backend(settings_.team(), settings_.isa);
  for (const std::string& name : words_of(settings_.formats)) {
    const DType type = type_of(name);
    const std::int64_t block = dtype_info(type).block_values;
    if (backend->can_pack(type) && shape.hidden % block == 0 && shape.width % block == 0)
      experts(*backend, type, shape);
  }
  return true;
}

// Layers of caches, one sequence each, whose blocks lie in order or anywhere.
void Roofline::attention(ops::Backend& backend, const ops::AttentionSpec& spec, DType cache, bool scattered) {
  const std::unique_ptr<ops::Stream> stream = backend.create_stream();
  const std::int64_t blocks = settings_.context / spec.block_size;
  struct Layer {
    Tensor keys, values;
  };
  const std::int64_t layer_bytes = 2 * bytes_of(cache, settings_.context * spec.kv_heads * spec.head_dim);
  std::vector<Layer> layers(static_cast<std::size_t>(settings_.bytes() / layer_bytes + 1));
  for (Layer& layer : layers) {
    for (Tensor* tensor : {&layer.keys, &layer.values}) {
      *tensor = Tensor(cache, {blocks, spec.kv_heads, spec.block_size, spec.head_dim});
      std::memset(tensor->data<void>(), 0x3c, tensor->bytes());
    }
  }
  std::vector<std::int32_t> table(static_cast<std::size_t>(blocks));
  std::iota(table.begin(), table.end(), 0);
  if (scattered) std::ranges::shuffle(table, std::mt19937(3));
  std::int32_t position = static_cast<std::int32_t>(settings_.context - 1), span = 0, slot = 0;
  const TensorView tables = make_view(table.data(), DType::kI32, {1, blocks});
  ops::Batch batch;
  batch.positions = make_view(&position, DType::kI32, {1});
  batch.spans_of_rows = make_view(&span, DType::kI32, {1});
  batch.slots = make_view(&slot, DType::kI32, {1});
  batch.block_tables = {&tables, 1};
  const std::int64_t width = std::int64_t{spec.heads} * spec.head_dim;
  Tensor q(DType::kF32, {1, width});
  const Tensor out(DType::kF32, {1, width});
  for (std::int64_t i = 0; i < width; ++i) q.data<float>()[i] = static_cast<float>(i % 7) - 3;
  measure("attention",
          fmt::format("{} {}/{} heads of {}, {}", dtype_info(cache).name, spec.heads, spec.kv_heads, spec.head_dim,
                      scattered ? "scattered" : "in order"),
          static_cast<double>(layer_bytes) * static_cast<double>(layers.size()),
          4.0 * static_cast<double>(static_cast<std::int64_t>(layers.size()) * settings_.context * width), [&] {
            for (const Layer& layer : layers) {
              backend.attention(*stream, spec, q.view(), batch, 0, {layer.keys.view(), layer.values.view()},
                                out.view());
            }
            stream->synchronize();
          });
}

void Roofline::attentions(ops::Backend& backend) {
  if (!settings_.json) fmt::print("\none row of attention over {} tokens\n", settings_.context);
  for (const DType cache : {DType::kF8E4M3, DType::kBF16, DType::kF16, DType::kF32}) {
    for (const bool scattered : {false, true}) {
      attention(backend, {.heads = 32, .kv_heads = 8, .head_dim = 128, .block_size = 16, .scale = 0.088f}, cache,
                scattered);
      attention(backend, {.heads = 9, .kv_heads = 3, .head_dim = 64, .block_size = 16, .scale = 0.125f}, cache,
                scattered);
    }
  }
}

bool Roofline::run() {
  const std::unique_ptr<ops::Backend> backend = ops::make_cpu_backend(settings_.team(), settings_.isa);
  if (backend == nullptr) {
    fmt::print(stderr, "roofline_bench: --isa {}: this machine does not run it\n", settings_.isa);
    return false;
  }
  if (!settings_.json)
    fmt::print("{}, {} threads, medians of {}\n", backend->name(), settings_.threads, settings_.repeats);
  if (wants("limits")) limits();
  if (wants("linear") && !linears()) return false;
  if (wants("experts") && !experts()) return false;
  if (wants("attention")) attentions(*backend);
  if (!settings_.json) return true;
  limits_["read_gbs"] = median(read_);
  limits_["threads"] = settings_.threads;
  Json rows = Json::array();
  for (const Row& row : rows_) {
    rows.push_back({{"op", row.op},
                    {"what", row.what},
                    {"gbs", row.gbs},
                    {"gops", row.gops},
                    {"share", row.share},
                    {"least", row.least},
                    {"most", row.most}});
  }
  fmt::print("{}\n", dump_json({{"backend", backend->name()}, {"limits", limits_}, {"rows", rows}}));
  return true;
}

int run(int argc, char** argv) {
  Settings settings;
  constexpr std::string_view group = "what is measured";
  const std::vector<Flag> flags = {
      {.names = "--only",
       .group = group,
       .target = &settings.only,
       .help = "parts, of limits, linear, experts and attention"},
      {.names = "--formats", .group = group, .target = &settings.formats, .help = "of the matrices"},
      {.names = "--shapes", .group = group, .target = &settings.shapes, .help = "of the matrices: OUTPUTSxINPUTS"},
      {.names = "--moe", .group = group, .target = &settings.moe, .help = "experts: EXPERTS/TOP_KxHIDDENxWIDTH"},
      {.names = "--moe-rows", .group = group, .target = &settings.moe_rows, .help = "numbers of rows for experts"},
      {.names = "--rows",
       .group = group,
       .target = &settings.rows,
       .help = "of activations, through each matrix",
       .min = 1,
       .max = 4096},
      {.names = "--context",
       .group = group,
       .target = &settings.context,
       .help = "tokens that attention looks at, a multiple of 16",
       .min = 16,
       .max = 1 << 20},
      {.names = "--mib",
       .group = group,
       .target = &settings.mib,
       .help = "of weights, or keys and values, that a pass reads",
       .min = 1,
       .max = 1 << 16},
      {.names = "--threads",
       .group = group,
       .target = &settings.threads,
       .help = "that read and compute",
       .min = 1,
       .max = 1024},
      {.names = "--isa",
       .group = group,
       .target = &settings.isa,
       .help = "instruction set: auto, scalar, avx2, avx512"},
      {.names = "--repeats",
       .group = group,
       .target = &settings.repeats,
       .help = "passes, of which the median counts",
       .min = 1,
       .max = 1000},
      {.names = "--json", .group = group, .target = &settings.json, .help = "one JSON object in place of the table"},
  };
  FlagTable table("roofline_bench", "what decoding makes of the machine's limits", flags);
  if (const auto status = parse_command(table, argc, argv)) return *status;
  for (const std::string& part : words_of(settings.only)) {
    if (part == "limits" || part == "linear" || part == "experts" || part == "attention") continue;
    fmt::print(stderr, "roofline_bench: --only {}: limits, linear, experts or attention\n", part);
    return 2;
  }
  return Roofline(settings).run() ? 0 : 1;
}

}  // namespace
}  // namespace octet::bench

int main(int argc, char** argv) { return octet::bench::run(argc, argv); }
