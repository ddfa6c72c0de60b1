// GGUF metadata as a ModelConfig.
#pragma once
#include "octet/base/error.h"
#include "octet/base/function_ref.h"
#include "octet/formats/gguf.h"
#include "octet/formats/model_config.h"

namespace octet::formats {

// The tensor of that GGUF name in any part of a split file, or null.
using GgufTensorLookup = FunctionRef<const StoredTensor*(std::string_view name)>;

// Reads the keys of the file's architecture and what the tensors present tell (biases, tied embeddings, llama-3
// frequency divisors). Errors name the file and the key. The vocabulary's arrays are checked against each other.
Result<ModelConfig> read_gguf_config(const GgufFile& file, GgufTensorLookup tensor);

}  // namespace octet::formats
