// A checkpoint in a folder, as published on Hugging Face.
#pragma once
#include <filesystem>
#include <memory>

#include "octet/base/error.h"
#include "octet/formats/checkpoint.h"

namespace octet::formats {

// config.json as the options change it, hf_quant_config.json of the folder and --quantization.
struct FolderConfig {
  std::filesystem::path path;  // of config.json
  HfConfig config;
};
Result<FolderConfig> read_folder_config(const std::filesystem::path& folder, const OpenOptions& options);

// Needs config.json and model.safetensors, or model.safetensors.index.json with its shards; the index wins where both
// exist, as in vLLM.
// Of the options, those of the configuration and whether its own generation_config.json counts matter here.
Result<std::unique_ptr<Checkpoint>> open_folder(const std::filesystem::path& folder, const OpenOptions& options);

}  // namespace octet::formats
