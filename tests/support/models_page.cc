#include "tests/support/models_page.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "octet/base/check.h"
#include "octet/formats/checkpoint.h"
#include "octet/formats/config.h"
#include "octet/formats/gguf.h"
#include "octet/formats/quantization_config.h"
#include "octet/models/model.h"
#include "octet/ops/backend.h"
#include "octet/ops/cpu/panel.h"
#include "tests/ops/op_test.h"
#include "tests/support/child_process.h"
#include "tests/support/golden_lists.h"
#include "tests/support/model_probe.h"

namespace octet::testing {
namespace {

using formats::QuantizationConfig;
using Names = std::vector<std::string>;
using Scales = QuantizationConfig::Scales;

std::string joined(const Names& names) { return fmt::format("{}", fmt::join(names, ", ")); }

// The first of them, where they are many.
std::string some(Names names) {
  constexpr std::size_t kMost = 5;
  const std::size_t count = names.size();
  if (count <= kMost) return joined(names);
  names.resize(kMost);
  return fmt::format("{} and {} more", joined(names), count - kMost);
}

// A golden of the lists, as its files tell of it.
struct Golden {
  std::string name, architecture;
  bool gguf = false;
  QuantizationConfig quantization;
  std::set<std::string> types;  // of its matrices
};

std::set<std::string> matrix_types(const formats::Checkpoint& checkpoint) {
  std::set<std::string> types;
  for (const std::string& name : declared_tensors(checkpoint.config())) {
    const formats::StoredTensor* tensor = checkpoint.find(name);
    if (tensor != nullptr && tensor->shape.size() == 2) types.emplace(dtype_info(tensor->dtype).name);
  }
  return types;
}

const std::vector<Golden>& goldens() {
  static const std::vector<Golden> all = [] {
    std::vector<Golden> made;
    const auto add = [&](std::span<const char* const> names, bool gguf) {
      for (const char* name : names) {
        const std::string path =
            fmt::format("{}/{}/{}{}", OCTET_TEST_DATA, gguf ? "gguf" : "models", name, gguf ? ".gguf" : "");
        const auto checkpoint = formats::Checkpoint::open(path);
        OCTET_CHECK(checkpoint.has_value());
        const formats::ModelConfig& config = (*checkpoint)->config();
        made.push_back({name, config.architecture, gguf, config.quantization, matrix_types(**checkpoint)});
      }
    };
    for (const auto list : {std::span<const char* const>(kPlainGoldens), std::span<const char* const>(kExpertGoldens),
                            std::span<const char* const>(kFp8Goldens), std::span<const char* const>(kFp8ExpertGoldens)})
      add(list, false);
    add(kGgufGoldens, true);
    add(kGgufExpertGoldens, true);
    return made;
  }();
  return all;
}

template <typename Where>
Names golden_names(Where where) {
  Names names;
  for (const Golden& golden : goldens()) {
    if (where(golden)) names.push_back(golden.name);
  }
  return names;
}

// ---- sections

constexpr const char* kHead = R"(# Models

What runs, asked of the registry of architectures, of the readers of checkpoints, of the program and of the lists that the tests take their models
from. `build/octet_models_test --models-page > docs/models.md` writes this page, and a test compares. Names in the columns of tests are those of
`tests/golden/models` and `tests/golden/gguf`: small models with the logits and tokens that the reference implementation computes
([numerics](numerics.md) says within what; `tests/models/golden_test.cc`, `fp8_test.cc`).
)";

std::string architectures() {
  std::string text =
      "\n## Architectures\n\n| Hugging Face class | GGUF | attention | feed-forward |\n|---|---|---|---|\n";
  const Json half = {"full_attention", "full_attention", "sliding_attention", "sliding_attention"};
  std::map<Names, Names> rope;
  for (const std::string_view name : models::supported_architectures()) {
    const ModelProbe probe(name);
    text += fmt::format("| {} | {} | {} | {} |\n", name, probe.gguf(), probe.attention(), probe.feed_forward());
    rope[probe.rope_types()].emplace_back(name);
    const auto tied = probe.with({{"tie_word_embeddings", true}});
    const auto mixed = probe.with({{"layer_types", half}, {"sliding_window", 32}});
    OCTET_CHECK(tied && tied->tied_embeddings && mixed && mixed->windows.front() == 0 && mixed->windows.back() == 32);
  }
  for (const auto& [types, names] : rope)
    text += fmt::format("\nRotary scalings of {}: {}.", rope.size() == 1 ? "all" : joined(names), joined(types));
  return text + " All take tied and separate heads, grouped keys, and `layer_types` of full and sliding attention.\n";
}

std::string matrix() {
  std::string text =
      "\n## Architecture by weight format\n\nLayers are the same code whatever they are made of, so every architecture "
      "takes every format below. The goldens "
      "and the random models of\n`tests/models/invariance_test.cc` (the same bits whatever shares a batch, however a "
      "prompt is cut) that show it:\n\n"
      "| class | F32, F16, BF16 | FP8 | GGUF | random models |\n|---|---|---|---|---|\n";
  for (const std::string_view name : models::supported_architectures()) {
    const auto of = [&](bool gguf, bool fp8) {
      return joined(golden_names([&](const Golden& golden) {
        const bool is_fp8 = golden.quantization.method == QuantizationConfig::Method::kFp8;
        return golden.architecture == name && golden.gguf == gguf && is_fp8 == fp8;
      }));
    };
    Names random;
    for (const InvarianceCase& item : kInvarianceCases) {
      if (item.architecture == name) random.emplace_back(dtype_info(item.stored).name);
    }
    text += fmt::format("| {} | {} | {} | {} | {} |\n", name, of(false, false), of(false, true), of(true, false),
                        joined(random));
  }
  return text;
}

std::string weight_types() {
  const auto backend = ops::make_cpu_backend(1, "scalar");
  const std::vector<DType> tested = ops::linear_types();
  std::string text =
      "\n## Weight types\n\nMatrices stay in their stored width in memory. `--dtype float32` decodes every one "
      "exactly; what products are made of otherwise:\n\n| stored type | products | goldens |\n|---|---|---|\n";
  Names refused;
  for (int i = 0; i <= static_cast<int>(DType::kMXFP4); ++i) {
    const auto type = static_cast<DType>(i);
    const std::string name(dtype_info(type).name);
    OCTET_CHECK(backend->can_pack(type) == (std::ranges::find(tested, type) != tested.end()));
    if (!backend->can_pack(type)) {
      refused.push_back(name);
      continue;
    }
    text += fmt::format("| {} | {} | {} |\n", name, ops::cpu::is_block_type(type) ? "integers of 16 bits" : "float32",
                        some(golden_names([&](const Golden& golden) { return golden.types.contains(name); })));
  }
  return text +
         fmt::format(
             "\nAll are held to their formula and to the bits of one row at a time by `ops/linear_test.cc`, and to the "
             "chains of [numerics](numerics.md) by\n`ops/linear_chain_test.cc`. Matrices of any other "
             "stored type ({}) are an error that names the tensor and the type.\n",
             joined(refused));
}

const char* scales_text(Scales scales) {
  switch (scales) {
    case Scales::kBlock:
      return "per block";
    case Scales::kChannel:
      return "per output channel";
    case Scales::kTensor:
      return "per matrix";
    case Scales::kAny:
      return "per block, channel or matrix, as the scale tensors show";
  }
  return "";
}

Json with_quantization(const Json& quantization) { return {{"quantization_config", quantization}}; }

Json group_of(const Json& weights) {
  return {{"quant_method", "compressed-tensors"},
          {"format", "float-quantized"},
          {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}}};
}

struct Scheme {
  const char* what;
  Json configuration;
};
std::vector<Scheme> schemes() {
  const Json weights = {{"num_bits", 8}, {"type", "float"}, {"symmetric", true}, {"dynamic", false}};
  const auto strategy = [&](const char* name) {
    Json changed = weights;
    changed["strategy"] = name;
    if (std::string_view(name) == "block") changed["block_structure"] = {128, 128};
    return group_of(changed);
  };
  return {{"`quant_method` fp8 with `weight_block_size`", {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}}},
          {"`quant_method` fp8", {{"quant_method", "fp8"}}},
          {"`quant_method` fbgemm_fp8", {{"quant_method", "fbgemm_fp8"}}},
          {"ModelOpt, `quant_algo` FP8", {{"quant_method", "modelopt"}, {"quant_algo", "FP8"}}},
          {"ModelOpt, `quant_algo` FP8_PER_CHANNEL_PER_TOKEN",
           {{"quant_method", "modelopt"}, {"quant_algo", "FP8_PER_CHANNEL_PER_TOKEN"}}},
          {"ModelOpt, `quant_algo` FP8_PB_WO", {{"quant_method", "modelopt"}, {"quant_algo", "FP8_PB_WO"}}},
          {"compressed-tensors, `strategy` tensor", strategy("tensor")},
          {"compressed-tensors, `strategy` channel", strategy("channel")},
          {"compressed-tensors, `strategy` block", strategy("block")}};
}

std::string fp8() {
  std::string text =
      "\n## FP8 checkpoints\n\nF8_E4M3 matrices with scales in F32, F16 or BF16; what config.json and "
      "hf_quant_config.json say of them. Blocks have any number of outputs and\n"
      "a multiple of 32 inputs. Scales of activations are passed over. Tests: `formats/quantization_config_test.cc`, "
      "`formats/stored_matrix_test.cc`,\n"
      "`ops/fp8_linear_test.cc`, `models/fp8_test.cc`, `program/malformed_program_test.cc`.\n\n"
      "| configuration | scales | `--quantization` that confirms it | goldens |\n|---|---|---|---|\n";
  const ModelProbe llama("LlamaForCausalLM");
  for (const Scheme& scheme : schemes()) {
    const auto read = llama.with(with_quantization(scheme.configuration));
    OCTET_CHECK(read.has_value());
    const QuantizationConfig& is = read->quantization;
    text += fmt::format("| {} | {} | {} | {} |\n", scheme.what, scales_text(is.scales), is.name,
                        joined(golden_names([&](const Golden& golden) {
                          return golden.quantization.name == is.name && golden.quantization.scales == is.scales;
                        })));
  }
  return text;
}

std::string while_loading() {
  std::string text =
      "\nPlain weights of the layers become FP8 while they are read (tests: `models/fp8_test.cc`, "
      "`tensor/quantize_e4m3_test.cc`, `program/start_test.cc`):\n\n| `--quantization` | scales |\n|---|---|\n";
  for (const char* asked :
       {"fp8", "fp8_per_tensor", "fp8_per_block", "fp8_per_channel", "awq", "gptq", "mxfp4", "mxfp8", "modelopt_fp4"}) {
    QuantizationConfig config;
    const bool taken = formats::ask_quantization(asked, "", config).has_value();
    if (taken) text += fmt::format("| {} | {} |\n", asked, scales_text(config.scales));
  }
  return text;
}

// What stands behind `words` in the answer to a command that is refused.
std::string told(Names command, std::string_view words) {
  command.insert(command.begin(), {OCTET_PROGRAM, "serve", "a-model"});
  std::string output = run_child(command, 60).output;
  const std::size_t at = output.find(words);
  OCTET_CHECK(at != std::string::npos);
  output.erase(0, at + words.size());
  return output.substr(0, output.find_first_of(";\n"));
}

std::string caches() {
  const std::string types = told({"--kv-cache-dtype", "fp8_e5m2"}, "supported are ");
  const std::string layouts = told({"--load-format", "no-format"}, "must be one of ");
  return fmt::format(
      "\n## KV cache\n\n`--kv-cache-dtype`: {}. `auto` is the type of the activations (`--dtype` bfloat16, float16 or "
      "float32), or FP8 where the checkpoint\n"
      "declares it. FP8 takes the scales of the checkpoint, 1 where it has none. Tests: goldens {} (references `kv8`), "
      "`ops/attention_test.cc`,\n"
      "PFX-02 in `server/real_model_test.cc`.\n"
      "\n## Where weights come from\n\n`--load-format`: {}. `dummy` makes noise of any architecture and format above "
      "from its config.json\n(`models/dummy_test.cc`, `program/start_test.cc`).\n",
      types, joined({std::begin(kFp8CacheGoldens), std::end(kFp8CacheGoldens)}),
      layouts.substr(0, layouts.rfind(", got")));
}

constexpr const char* kSets = R"(
## Machines

One process on one CPU. Each instruction set computes every type above: `scalar`, `avx2`, `avx512`, `neon`. The goldens run under each that the
machine has ([numerics](numerics.md) says what each needs, what is equal between them and how each is tested).
)";

// Without the name of the file, and what is supported instead.
std::string reason(const Error& error) {
  std::string text = error.message.substr(error.message.find(": ") + 2);
  return text.substr(0, text.find("; supported"));
}

std::string refusals() {
  std::string text = "\n## Refused by name\n\n| what | the error says |\n|---|---|\n";
  const auto row = [&](const std::string& what, const auto& result) {
    OCTET_CHECK(!result.has_value());
    text += fmt::format("| {} | {} |\n", what, reason(result.error()));
  };
  for (const char* name : {"DeepseekV3ForCausalLM", "GptOssForCausalLM", "Gemma3ForCausalLM", "Qwen3NextForCausalLM",
                           "Qwen3_5MoeForConditionalGeneration"})
    row("other architectures", formats::parse_hf_config(dump_json({{"architectures", {name}}}), "config.json"));
  const ModelProbe llama("LlamaForCausalLM");
  for (const char* method : {"awq", "gptq", "bitsandbytes", "mxfp4", "modelopt_fp4"})
    row("quantised otherwise", llama.with(with_quantization({{"quant_method", method}})));
  for (const char* algorithm : {"NVFP4", "W4A8_AWQ", "MIXED_PRECISION"})
    row("ModelOpt", llama.with(with_quantization({{"quant_method", "modelopt"}, {"quant_algo", algorithm}})));
  for (const char* format : {"nvfp4-pack-quantized", "mxfp4-pack-quantized", "pack-quantized", "int-quantized"})
    row("compressed-tensors",
        llama.with(with_quantization({{"quant_method", "compressed-tensors"}, {"format", format}})));
  row("rotary scalings", llama.with({{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}}}));
  row("activations", llama.with({{"hidden_act", "gelu"}}));
  row("partly rotated heads elsewhere", llama.with({{"partial_rotary_factor", 0.5}}));
  row("MiniMax-M2", ModelProbe("MiniMaxM2ForCausalLM").with({{"shared_intermediate_size", 64}}));
  row("MiniMax-M2", ModelProbe("MiniMaxM2ForCausalLM").with({{"attn_type_list", {0, 1, 1, 1}}}));
  row("Qwen2-MoE", ModelProbe("Qwen2MoeForCausalLM").with({{"use_sliding_window", true}}));
  for (const char* ranks : {"4", "8"})
    text += fmt::format("| layouts | --tensor-parallel-size {}:{} |\n", ranks,
                        told({"--tensor-parallel-size", ranks}, fmt::format("--tensor-parallel-size {}:", ranks)));
  return text;
}

}  // namespace

std::string models_page() {
  return kHead + architectures() + matrix() + weight_types() + fp8() + while_loading() + caches() + kSets + refusals();
}

}  // namespace octet::testing
