// What a configuration costs in quality: perplexity over a text, and how far its predictions are from another's.
//   quality_bench [MODEL] [--against SPEC...]   `quality_bench --help` tells the rest
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/default_model.h"
#include "benchmarks/quality_figures.h"
#include "benchmarks/rounding_backend.h"
#include "benchmarks/widened_checkpoint.h"
#include "octet/base/file.h"
#include "octet/base/flags.h"
#include "octet/base/json.h"
#include "octet/base/thread_team.h"
#include "octet/formats/quantization_config.h"
#include "octet/text/tokenizer.h"
#include "octet/topology/machine.h"
#include "tests/support/model_driver.h"

namespace octet::bench {
namespace {

constexpr std::size_t kLongestText = 64U << 20;
constexpr std::int64_t kChunk = 128;  // tokens of a step

// One way to compute the model: "dtype=float32,weights=bfloat16,activations=e4m3".
struct Configuration {
  std::string spec;
  DType dtype = DType::kF32;
  std::optional<DType> weights;  // what quantised matrices are widened to
  std::string quantization;      // what they then become while loading
  Rounding rounding = Rounding::kNone;
};

std::optional<DType> float_type(std::string_view name) {
  if (name == "float32") return DType::kF32;
  if (name == "bfloat16") return DType::kBF16;
  if (name == "float16") return DType::kF16;
  return std::nullopt;
}

Result<> parse_part(std::string_view key, std::string_view value, Configuration& into) {
  const auto refuse = [&](std::string_view expected) -> Result<> {
    return fail(ErrorCode::kInvalid, "{}: {}: expected {}", into.spec, key, expected);
  };
  if (key == "dtype") {
    const auto type = float_type(value);
    if (!type) return refuse("float32, bfloat16 or float16");
    into.dtype = *type;
  } else if (key == "weights") {
    if (value == "stored") return {};
    into.weights = float_type(value);
    if (!into.weights || into.weights == DType::kF16) return refuse("stored, float32 or bfloat16");
  } else if (key == "activations") {
    if (value == "int8") {
      into.rounding = Rounding::kInt8;
    } else if (value == "e4m3") {
      into.rounding = Rounding::kE4m3;
    } else if (value != "default") {
      return refuse("default, int8 or e4m3");
    }
  } else if (key == "quantization") {
    into.quantization = value;
  } else {
    return fail(ErrorCode::kInvalid, "{}: no key {}; there are dtype, weights, quantization and activations", into.spec,
                key);
  }
  return {};
}

Result<Configuration> parse_configuration(const std::string& spec) {
  Configuration parsed{.spec = spec};
  for (std::size_t at = 0; at <= spec.size();) {
    const std::size_t end = std::min(spec.find(',', at), spec.size());
    const std::string_view part = std::string_view(spec).substr(at, end - at);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      return fail(ErrorCode::kInvalid, "{}: expected KEY=VALUE,KEY=VALUE, as in dtype=float32", spec);
    OCTET_TRY_VOID(parse_part(part.substr(0, equals), part.substr(equals + 1), parsed));
    at = end + 1;
  }
  return parsed;
}

struct Settings {
  std::optional<std::string> model, text;
  std::string reference = "dtype=float32";
  std::vector<std::string> against = {"dtype=bfloat16", "dtype=bfloat16,weights=float32", "activations=int8"};
  std::int64_t tokens = 1 << 20, window = 1024, threads = 0;
  bool json = false;
};

// The texts that come with the source, which the tests' data tells the place of.
std::string own_text() { return std::string(OCTET_TEST_DATA) + "/../../benchmarks/data/alice.txt"; }

Result<std::vector<std::int32_t>> read_tokens(const Settings& settings, const std::string& model) {
  const std::string path = settings.text.value_or(own_text());
  OCTET_TRY(const std::string text, read_file(path, kLongestText));
  OCTET_TRY(const std::unique_ptr<text::Tokenizer> tokenizer, text::Tokenizer::open(model));
  auto tokens = tokenizer->encode(text, {.add_special = false, .parse_special = false});
  if (!tokens) return within(path, std::move(tokens).error());
  if (tokens->size() < 2) return fail(ErrorCode::kInvalid, "{}: a text of at least two tokens is needed", path);
  tokens->resize(std::min(tokens->size(), static_cast<std::size_t>(settings.tokens) + 1));
  return std::move(*tokens);
}

// One configuration while it is measured.
struct Subject {
  Configuration configuration;
  std::unique_ptr<testing::ModelDriver> driver;
  QualityFigures figures;
};

Result<Subject> load(const std::string& spec, const std::string& model, const Settings& settings) {
  Subject subject;
  OCTET_TRY(subject.configuration, parse_configuration(spec));
  const Configuration& wanted = subject.configuration;
  testing::DriverOptions options{.dtype = wanted.dtype,
                                 .threads = static_cast<int>(settings.threads),
                                 .max_rows = kChunk,
                                 .max_context = settings.window,
                                 .max_sequences = 1};
  if (wanted.weights) {
    formats::QuantizationConfig quantization;  // plain weights, unless they become something
    OCTET_TRY_VOID(formats::ask_quantization(wanted.quantization, "the widened model", quantization));
    options.wrap_checkpoint = [wide = *wanted.weights, quantization](std::unique_ptr<formats::Checkpoint> stored) {
      return std::make_unique<WidenedCheckpoint>(std::move(stored), wide, quantization);
    };
  } else if (!wanted.quantization.empty()) {
    return fail(ErrorCode::kInvalid, "{}: quantization needs plain weights: weights=bfloat16 or float32", spec);
  }
  if (wanted.rounding != Rounding::kNone) {
    options.wrap_backend = [rounding = wanted.rounding](std::unique_ptr<ops::Backend> inner) {
      return std::make_unique<RoundingBackend>(std::move(inner), rounding);
    };
  }
  fmt::print(stderr, "quality_bench: loading with {}\n", spec);
  auto driver = testing::ModelDriver::open(model, options);
  if (!driver) return within(spec, std::move(driver).error());
  subject.driver = std::move(*driver);
  const std::int64_t longest = subject.driver->checkpoint().config().max_positions;
  if (longest > 0 && settings.window > longest) {
    return fail(ErrorCode::kInvalid, "--window {}: the model's context has {} tokens", settings.window, longest);
  }
  return subject;
}

// Predictions of `next` from `tokens`, which continue the window.
void measure_step(ThreadTeam& team, std::span<const std::int32_t> tokens, std::span<const std::int32_t> next,
                  std::vector<Subject>& subjects) {
  testing::ModelDriver::Logits reference;
  std::vector<std::optional<Prediction>> predictions(tokens.size());
  std::vector<PredictionFigures> figures(tokens.size());
  for (Subject& subject : subjects) {
    const testing::ModelDriver::Piece piece{.tokens = tokens, .logits_rows = static_cast<int>(tokens.size())};
    testing::ModelDriver::Logits logits = subject.driver->step({&piece, 1});
    if (reference.empty()) reference = logits;
    team.parallel_for(static_cast<std::int64_t>(tokens.size()), 1, [&](int, std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        if (!predictions[i]) predictions[i].emplace(reference[i]);
        figures[i] = held_against(*predictions[i], logits[i], static_cast<std::size_t>(next[i]));
      }
    });
    for (const PredictionFigures& row : figures) subject.figures.add(row);
  }
}

void measure_text(std::span<const std::int32_t> tokens, const Settings& settings, std::vector<Subject>& subjects) {
  ThreadTeam team(static_cast<int>(settings.threads));
  const std::int64_t window = settings.window;
  const auto start = std::chrono::steady_clock::now();
  const auto total = static_cast<std::int64_t>(tokens.size()) - 1;
  for (std::int64_t begin = 0; begin < total; begin += window) {
    for (Subject& subject : subjects) subject.driver->reset(0);
    const std::int64_t end = std::min(begin + window, total);
    for (std::int64_t at = begin; at < end; at += kChunk) {
      const auto count = static_cast<std::size_t>(std::min(kChunk, end - at));
      const auto from = static_cast<std::size_t>(at);
      measure_step(team, tokens.subspan(from, count), tokens.subspan(from + 1, count), subjects);
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    fmt::print(stderr, "quality_bench: {} of {} tokens, {:.0f} s\n", end, total, passed.count());
  }
}

Json figures_json(const Subject& subject, bool is_reference) {
  const QualityFigures& figures = subject.figures;
  Json told = {{"configuration", subject.configuration.spec}, {"perplexity", figures.perplexity()}};
  if (is_reference) return told;
  told["log_perplexity_change"] = figures.loss_change().value;
  told["log_perplexity_change_error"] = figures.loss_change().error;
  told["kl_divergence"] = figures.divergence().value;
  told["kl_divergence_error"] = figures.divergence().error;
  told["kl_divergence_median"] = figures.divergence_quantile(0.5);
  told["kl_divergence_p99"] = figures.divergence_quantile(0.99);
  told["kl_divergence_max"] = figures.divergence_quantile(1);
  told["top1_agreement"] = figures.agreement();
  told["logits_nmse"] = figures.nmse();
  return told;
}

void print_table(const std::vector<Subject>& subjects) {
  fmt::print("{:<44}{:>11}{:>21}{:>21}{:>10}{:>10}{:>13}\n", "configuration", "perplexity", "change of ln(ppl)",
             "KL divergence", "KL p99", "top-1", "logits nmse");
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const QualityFigures& figures = subjects[i].figures;
    fmt::print("{:<44}{:>11.4f}", subjects[i].configuration.spec, figures.perplexity());
    if (i > 0) {
      fmt::print("{:>21}{:>21}{:>10.2e}{:>8.2f} %{:>13.2e}",
                 fmt::format("{:+.1e} ± {:.1e}", figures.loss_change().value, figures.loss_change().error),
                 fmt::format("{:.2e} ± {:.1e}", figures.divergence().value, figures.divergence().error),
                 figures.divergence_quantile(0.99), 100 * figures.agreement(), figures.nmse());
    }
    fmt::print("\n");
  }
}

Result<> measure(Settings settings) {
  if (settings.threads == 0) settings.threads = topology::inspect_machine().usable_threads;
  std::vector<std::string> specs = {settings.reference};
  specs.insert(specs.end(), settings.against.begin(), settings.against.end());
  for (const std::string& spec : specs) OCTET_TRY_VOID(parse_configuration(spec));
  const std::string model = settings.model ? *settings.model : testing::default_model();
  if (model.empty()) return fail(ErrorCode::kNotFound, "the default model could not be fetched");
  OCTET_TRY(const std::vector<std::int32_t> tokens, read_tokens(settings, model));
  std::vector<Subject> subjects;
  for (const std::string& spec : specs) {
    OCTET_TRY(Subject subject, load(spec, model, settings));
    subjects.push_back(std::move(subject));
  }
  measure_text(tokens, settings, subjects);
  if (!settings.json) {
    fmt::print("{} predictions in windows of {}; the first configuration is what the others are held against\n",
               tokens.size() - 1, settings.window);
    print_table(subjects);
    return {};
  }
  Json told = Json::array();
  for (const Subject& subject : subjects) told.push_back(figures_json(subject, told.empty()));
  fmt::print("{}\n", dump_json({{"model", model},
                                {"predictions", tokens.size() - 1},
                                {"window", settings.window},
                                {"configurations", told}}));
  return {};
}

int run(int argc, char** argv) {
  Settings settings;
  constexpr std::string_view group = "what is measured";
  const std::vector<Flag> flags = {
      {.names = "MODEL",
       .group = group,
       .target = &settings.model,
       .help = "folder or GGUF file, with its tokenizer",
       .fallback = "the default model"},
      {.names = "--reference",
       .group = group,
       .target = &settings.reference,
       .help = "configuration that the others are held against"},
      {.names = "--against", .group = group, .target = &settings.against, .help = "configurations, see below"},
      {.names = "--text",
       .group = group,
       .target = &settings.text,
       .help = "file of UTF-8 text",
       .fallback = "benchmarks/data/alice.txt"},
      {.names = "--tokens",
       .group = group,
       .target = &settings.tokens,
       .help = "most tokens of the text that are predicted",
       .min = 1,
       .max = 1 << 28},
      {.names = "--window",
       .group = group,
       .target = &settings.window,
       .help = "tokens after which the context starts afresh, without BOS",
       .min = 1,
       .max = 1 << 20},
      {.names = "--threads",
       .group = group,
       .target = &settings.threads,
       .help = "of the back end; 0: what the process may use",
       .min = 0,
       .max = 1024},
      {.names = "--json", .group = group, .target = &settings.json, .help = "one JSON object in place of a table"},
  };
  FlagTable table("quality_bench", "perplexity of configurations of one model, and their divergence from one of them",
                  flags);
  table.set_epilog(
      "A configuration is KEY=VALUE,KEY=VALUE of\n"
      "  dtype=float32|bfloat16|float16        as octet serve's --dtype; float32 by default. float32 keeps "
      "activations\n"
      "                                        and cache wide, the others are the integer paths and a 16-bit cache\n"
      "  weights=stored|float32|bfloat16       what quantised matrices are widened to before they are packed\n"
      "  quantization=fp8|fp8_per_block        what such plain matrices then become while loading\n"
      "  activations=default|int8|e4m3         inputs of quantised matrices are rounded first: per token to int8 by "
      "32\n"
      "                                        (llama.cpp), to E4M3 by 128 (GPUs)\n");
  if (const auto status = parse_command(table, argc, argv)) return *status;
  if (auto measured = measure(settings); !measured) {
    fmt::print(stderr, "quality_bench: {}\n", measured.error().message);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace octet::bench

int main(int argc, char** argv) { return octet::bench::run(argc, argv); }
