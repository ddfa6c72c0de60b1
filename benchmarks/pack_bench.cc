// Packing of weights beside copying as many bytes, in turns in one run, with the same threads.
//   pack_bench [--formats Q4_0,Q8_0] [--mib 256] [--repeats 5]      `pack_bench --help` tells the rest
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/machine_limits.h"
#include "octet/base/flags.h"
#include "octet/ops/backend.h"
#include "octet/ops/cpu/e4m3_panel.h"
#include "octet/ops/cpu/panel.h"
#include "octet/ops/cpu/panel_pack.h"

namespace octet::bench {
namespace {

using ops::cpu::kPanel;

constexpr std::int64_t kInputs = 4096;
constexpr DType kTypes[] = {DType::kF8E4M3, DType::kF32,  DType::kF16,    DType::kBF16,   DType::kQ8_0,  DType::kQ4_0,
                            DType::kQ4_1,   DType::kQ5_0, DType::kQ5_1,   DType::kQ2_K,   DType::kQ3_K,  DType::kQ4_K,
                            DType::kQ5_K,   DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kIQ3_S, DType::kIQ2_S};

struct Settings {
  std::string formats = "F32,F16,BF16,F8_E4M3,Q8_0,Q4_0,Q4_1,Q5_0,Q5_1,Q4_K,Q5_K,Q6_K";
  std::int64_t threads = 2, mib = 256, repeats = 5;
};

Result<std::vector<DType>> parse_formats(const std::string& names) {
  std::vector<DType> types;
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t end = std::min(names.find(',', at), names.size());
    const std::string_view name = std::string_view(names).substr(at, end - at);
    const auto type = std::ranges::find(kTypes, name, [](DType one) { return dtype_info(one).name; });
    if (type == std::end(kTypes))
      return fail(ErrorCode::kInvalid,
                  "--formats {}: no format that is packed; there are F32, F16, BF16, F8_E4M3 and the blocks of GGUF",
                  name);
    types.push_back(*type);
    at = end + 1;
  }
  return types;
}

// GB/s of `bytes` in which work() ends.
template <typename Work>
double rate(double bytes, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return 1e-9 * bytes / seconds_since(start);
}

class PackBench {
 public:
  explicit PackBench(const Settings& settings)
      : settings_(settings),
        team_(static_cast<int>(settings.threads)),
        backend_(ops::make_cpu_backend(static_cast<int>(settings.threads))),
        stream_(backend_->create_stream()) {}

  void measure(DType type) {
    const std::int64_t row_bytes = bytes_of(type, kInputs);
    const std::int64_t panels = (settings_.mib << 20) / row_bytes / kPanel, outputs = panels * kPanel;
    const Tensor stored(type, {outputs, kInputs});
    std::mt19937 random(1);
    for (std::size_t i = 0; i < stored.bytes() / 4; ++i) stored.data<std::uint32_t>()[i] = random();
    const bool fp8 = type == DType::kF8E4M3;
    const ops::cpu::E4M3Layout layout({}, outputs, kInputs);
    const std::int64_t panel_bytes = fp8 ? layout.panel_bytes() : ops::cpu::panel_bytes(type, kInputs);
    const Tensor packed(DType::kU8, {std::max(panels * panel_bytes, outputs * row_bytes)});
    const auto bytes = static_cast<double>(outputs * row_bytes);
    const auto copy = [&](std::byte* to) {
      team_.parallel_for(panels, 4, [&](int, std::int64_t begin, std::int64_t end) {
        const std::int64_t part = kPanel * row_bytes;
        std::memcpy(to + begin * part, stored.data<std::byte>() + begin * part,
                    static_cast<std::size_t>((end - begin) * part));
      });
    };
    const auto pack = [&](std::byte* to) {
      team_.parallel_for(panels, 4, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t panel = begin; panel < end; ++panel) {
          const ops::cpu::StoredRows rows{stored.data<std::byte>() + panel * kPanel * row_bytes, row_bytes, kPanel};
          std::byte* own = to + panel * panel_bytes;
          if (fp8) {
            ops::cpu::pack_e4m3_panel(layout, {}, rows, panel * kPanel, ops::cpu::avx2_kernels(), own);
          } else {
            ops::cpu::pack_panel(type, rows, kInputs, own);
          }
        }
      });
    };
    const ops::LinearPart part{.weight = stored.view(), .bias = {}};
    copy(packed.data<std::byte>());
    std::vector<double> copies, packs, shares, fresh_copies, fresh_packs, fresh_shares;
    for (int i = 0; i < settings_.repeats; ++i) {
      copies.push_back(rate(bytes, [&] { copy(packed.data<std::byte>()); }));
      packs.push_back(rate(bytes, [&] { pack(packed.data<std::byte>()); }));
      shares.push_back(packs.back() / copies.back());
      fresh_copies.push_back(rate(bytes, [&] { copy(Tensor(DType::kU8, {outputs * row_bytes}).data<std::byte>()); }));
      fresh_packs.push_back(
          rate(bytes, [&] { backend_->pack(*stream_, std::span(&part, 1), ops::Activations::kDefault); }));
      fresh_shares.push_back(fresh_packs.back() / fresh_copies.back());
    }
    fmt::print("{:<8}{:>8.2f}{:>8.2f}{:>7.0f} %{:>12.2f}{:>8.2f}{:>7.0f} %\n", dtype_info(type).name, median(packs),
               median(copies), 100 * median(shares), median(fresh_packs), median(fresh_copies),
               100 * median(fresh_shares));
  }

 private:
  const Settings& settings_;
  ThreadTeam team_;
  std::unique_ptr<ops::Backend> backend_;
  std::unique_ptr<ops::Stream> stream_;
};

Result<> measure(const Settings& settings) {
  OCTET_TRY(const std::vector<DType> types, parse_formats(settings.formats));
  PackBench bench(settings);
  fmt::print("GB/s of stored bytes, medians of {}; share: of the copy just before\n", settings.repeats);
  fmt::print("{:<8}{:>25}{:>29}\n", "", "into memory in use", "into fresh memory");
  fmt::print("{:<8}{:>8}{:>8}{:>9}{:>12}{:>8}{:>9}\n", "format", "pack", "copy", "share", "pack", "copy", "share");
  for (const DType type : types) bench.measure(type);
  return {};
}

int run(int argc, char** argv) {
  Settings settings;
  constexpr std::string_view group = "what is measured";
  const std::vector<Flag> flags = {
      {.names = "--formats", .group = group, .target = &settings.formats, .help = "of the weights, with commas"},
      {.names = "--mib",
       .group = group,
       .target = &settings.mib,
       .help = "stored bytes, in MiB",
       .min = 1,
       .max = 1 << 16},
      {.names = "--repeats",
       .group = group,
       .target = &settings.repeats,
       .help = "of each, of which the median counts",
       .min = 1,
       .max = 1000},
      {.names = "--threads", .group = group, .target = &settings.threads, .help = "of both", .min = 1, .max = 1024},
  };
  FlagTable table("pack_bench", "packing of weights beside copying as many bytes", flags);
  if (const auto status = parse_command(table, argc, argv)) return *status;
  if (auto measured = measure(settings); !measured) {
    fmt::print(stderr, "pack_bench: {}\n", measured.error().message);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace octet::bench

int main(int argc, char** argv) { return octet::bench::run(argc, argv); }
