// What a decoder keeps in memory.
#pragma once
#include <memory>
#include <vector>

#include "octet/formats/model_config.h"
#include "octet/models/weight_plan.h"
#include "octet/ops/backend.h"
#include "octet/tensor/tensor.h"

namespace octet::models {

struct AttentionWeights {
  std::unique_ptr<ops::Linear> qkv, output;
  Tensor q_norm, k_norm;  // [head_dim], or as wide as all heads; without data: none
};
struct MlpWeights {
  std::unique_ptr<ops::Linear> gate_up, down;
};
struct MoeWeights {
  std::unique_ptr<ops::Linear> router;
  Tensor selection_bias;  // [experts]; without data: none
  std::vector<ops::ExpertWeights> experts;
  ops::ExpertWeights shared;  // of every token; null: none
  std::unique_ptr<ops::Linear> shared_gate;
};
struct LayerWeights {
  Tensor input_norm, post_attention_norm;
  AttentionWeights attention;
  MlpWeights mlp;  // one of the two
  MoeWeights moe;
};
struct DecoderWeights {
  std::unique_ptr<ops::Linear> embedding;
  std::vector<LayerWeights> layers;
  Tensor final_norm;
  std::unique_ptr<ops::Linear> head;  // null: the embedding, packed once
};

struct DecoderTraits {
  bool qk_norm = false;
};
// Declares the weights of a decoder under their Hugging Face names. Layers are dense or have experts, as the config
// says.
void declare_decoder(const formats::ModelConfig& config, const DecoderTraits& traits, WeightPlan& plan,
                     DecoderWeights& weights);

}  // namespace octet::models
