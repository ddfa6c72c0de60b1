// Experts as config.json tells of them.
#pragma once
#include "octet/base/error.h"
#include "octet/formats/architectures.h"
#include "octet/formats/json_fields.h"
#include "octet/formats/model_config.h"

namespace octet::formats {

// Fills model.moe, and what only models of experts have: norms over all of q and k, partial rotation. Nothing where the
// architecture is dense. The sizes are read already. Keys and defaults: transformers' configurations of the classes.
Result<> read_experts(const JsonFields& config, const ArchitectureInfo& info, ModelConfig& model);

}  // namespace octet::formats
