#include "octet/formats/checkpoint.h"

#include <algorithm>

#include "octet/formats/folder_checkpoint.h"
#include "octet/formats/gguf_checkpoint.h"
#include "octet/formats/message.h"
#include "octet/tensor/block_formats.h"

namespace octet::formats {

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error && status.type() != std::filesystem::file_type::not_found) {
    return fail(ErrorCode::kIo, "{}: {}", path.string(), error.message());
  }
  if (!std::filesystem::exists(status)) {
    return fail(ErrorCode::kNotFound,
                "{}: no such model folder or GGUF file (models are not fetched from a hub: download the files first)",
                path.string());
  }
  return std::filesystem::is_directory(status) ? open_folder(path) : open_gguf(path);
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

const StoredTensor* RequiredWeights::require(std::string_view name, std::span<const std::int64_t> shape) {
  auto found = checkpoint_.require(name, shape);
  if (found) return *found;
  if (found.error().code == ErrorCode::kNotFound) {
    missing_.push_back(checkpoint_.source_name(name));
  } else {
    if (unfit_.empty()) unfit_code_ = found.error().code;
    unfit_.push_back(std::move(found).error().message);
  }
  return nullptr;
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
