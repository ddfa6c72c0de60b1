#include "octet/formats/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "octet/formats/config.h"
#include "octet/formats/dummy_checkpoint.h"
#include "octet/formats/folder_checkpoint.h"
#include "octet/formats/gguf_checkpoint.h"
#include "octet/formats/message.h"
#include "octet/tensor/block_formats.h"

namespace octet::formats {

namespace {

// A folder without configuration, most often one of GGUF files.
Error no_config(const std::filesystem::path& folder) {
  constexpr std::size_t kMostNames = 8;
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".gguf") names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  std::string message = fmt::format("{}: a model folder has a config.json, and this one has none", folder.string());
  if (!names.empty()) message += "; serve a file of it:";
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i) message += (i > 0 ? ", " : " ") + names[i];
  if (names.size() > kMostNames) message += ", …";
  return {ErrorCode::kNotFound, std::move(message)};
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::filesystem::path& path, const OpenOptions& options) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error && status.type() != std::filesystem::file_type::not_found) {
    return fail(ErrorCode::kIo, "{}: {}", path.string(), error.message());
  }
  if (!std::filesystem::exists(status)) {
    return fail(ErrorCode::kNotFound, "{}: no such folder or file", path.string());
  }
  using Format = OpenOptions::Format;
  const bool is_folder = std::filesystem::is_directory(status);
  const bool wants_folder = options.format == Format::kSafetensors || options.format == Format::kDummy;
  if (options.format != Format::kAny && is_folder != wants_folder) {
    return fail(ErrorCode::kInvalid, "--load-format: {} is a {}", path.string(), is_folder ? "folder" : "file");
  }
  if (options.config && !is_folder) {
    return fail(ErrorCode::kUnsupported, "--hf-config-path: {} tells its own configuration", path.string());
  }
  if (is_folder && !options.config && !std::filesystem::exists(path / "config.json", error)) {
    return std::unexpected(no_config(path));
  }
  if (!options.config_changes.overrides.empty() && !is_folder) {
    return fail(ErrorCode::kUnsupported, "--hf-overrides: {} has no config.json whose members could be replaced",
                path.string());
  }
  OCTET_TRY(auto checkpoint, options.format == Format::kDummy ? open_dummy(path, options)
                             : is_folder                      ? open_folder(path, options)
                                                              : open_gguf(path, options));
  OCTET_TRY_VOID(checkpoint->read_generation(options));
  return checkpoint;
}

// The model's own generation_config.json has been read with the folder.
Result<> Checkpoint::read_generation(const OpenOptions& options) {
  if (options.generation != "auto" && options.generation != "vllm") {
    auto read = read_generation_config(std::filesystem::path(options.generation) / "generation_config.json", config_);
    if (!read) return within("--generation-config", std::move(read).error());
    generation_ = *read;
  }
  if (options.generation_overrides.empty()) return {};
  OCTET_TRY(const GenerationDefaults over,
            parse_generation_config(options.generation_overrides, "--override-generation-config", config_));
  const auto take = [](auto& target, const auto& value) {
    if (value) target = value;
  };
  take(generation_.temperature, over.temperature);
  take(generation_.top_p, over.top_p);
  take(generation_.min_p, over.min_p);
  take(generation_.repetition_penalty, over.repetition_penalty);
  take(generation_.top_k, over.top_k);
  take(generation_.max_new_tokens, over.max_new_tokens);
  return {};
}

Result<const StoredTensor*> Checkpoint::require(std::string_view name, std::span<const std::int64_t> shape) const {
  const StoredTensor* tensor = find(name);
  if (tensor == nullptr) return fail(ErrorCode::kNotFound, "{}: weight {} is missing", where(), source_name(name));
  if (!std::ranges::equal(tensor->shape, shape)) {
    return fail(ErrorCode::kInvalid, "{}: weight {} has shape {}, expected {}", where(), source_name(name),
                shape_text(tensor->shape), shape_text(shape));
  }
  if (!can_decode(tensor->dtype)) {
    return fail(ErrorCode::kUnsupported, "{}: weight {} is of type {}; supported are {}", where(), source_name(name),
                dtype_info(tensor->dtype).name, decodable_types());
  }
  return tensor;
}

void RequiredWeights::keep(std::string_view name, Error error) {
  const bool missing = error.code == ErrorCode::kNotFound;
  std::string text = missing ? checkpoint_.source_name(name) : std::move(error.message);
  // Weights that one tensor of the file holds are named once.
  if (!told_.insert(text).second) return;
  if (!missing && unfit_.empty()) unfit_code_ = error.code;
  (missing ? missing_ : unfit_).push_back(std::move(text));
}

const StoredTensor* RequiredWeights::require(std::string_view name, std::span<const std::int64_t> shape) {
  auto found = checkpoint_.require(name, shape);
  if (found) return *found;
  keep(name, std::move(found).error());
  return nullptr;
}

StoredMatrix RequiredWeights::require_matrix(std::string_view module, std::int64_t outputs, std::int64_t inputs) {
  auto found = formats::require_matrix(checkpoint_, module, outputs, inputs);
  if (found) return *found;
  keep(fmt::format("{}.weight", module), std::move(found).error());
  return {};
}

Result<> RequiredWeights::check() const {
  std::string message;
  if (!missing_.empty()) {
    message = fmt::format("{}: missing {}: {}", checkpoint_.where(), missing_.size() == 1 ? "weight" : "weights",
                          list_text(missing_));
  }
  if (!unfit_.empty()) {
    if (!message.empty()) message += "; ";
    message += list_text(unfit_);
  }
  if (message.empty()) return {};
  return fail(missing_.empty() ? unfit_code_ : ErrorCode::kNotFound, "{}", message);
}

}  // namespace octet::formats
