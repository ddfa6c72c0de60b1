// The names of experts in a checkpoint.
#pragma once
#include <cstdint>
#include <string>

#include "octet/base/error.h"
#include "octet/formats/architectures.h"

namespace octet::formats {

class Checkpoint;

// "model.layers.3.mlp.experts.7.gate_proj", of a layout's gate, up or down.
std::string expert_module(const ExpertLayout& layout, std::int64_t layer, std::int64_t expert,
                          std::string_view ExpertLayout::* part);
// "model.layers.3.mlp.gate": the router.
std::string router_module(const ExpertLayout& layout, std::int64_t layer);

// The checkpoint holds as many experts per layer as its configuration says. Errors name the key and the tensor that is
// missing or too much.
Result<> check_expert_count(const Checkpoint& checkpoint);

}  // namespace octet::formats
