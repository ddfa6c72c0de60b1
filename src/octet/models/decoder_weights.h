// What a dense decoder keeps in memory.
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
  Tensor q_norm, k_norm;  // [head_dim]; without data: none
};
struct MlpWeights {
  std::unique_ptr<ops::Linear> gate_up, down;
};
struct LayerWeights {
  Tensor input_norm, post_attention_norm;
  AttentionWeights attention;
  MlpWeights mlp;
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
// Declares the weights of a dense decoder under their Hugging Face names.
void declare_decoder(const formats::ModelConfig& config, const DecoderTraits& traits, WeightPlan& plan,
                     DecoderWeights& weights);

}  // namespace octet::models
