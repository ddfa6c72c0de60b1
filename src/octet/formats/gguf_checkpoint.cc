#include "octet/formats/gguf_checkpoint.h"

#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "octet/formats/gguf_config.h"
#include "octet/formats/gguf_names.h"
#include "octet/formats/message.h"
#include "octet/formats/quantization_config.h"

namespace octet::formats {
namespace {

constexpr std::int64_t kMaxParts = 99'999;  // five digits in the name

// "NAME-00002-of-00003.gguf" taken apart.
struct PartName {
  std::string stem;
  std::int64_t part = 0, parts = 0;

  std::string file(std::int64_t index) const { return fmt::format("{}-{:05}-of-{:05}.gguf", stem, index, parts); }
};

std::optional<PartName> part_name(const std::string& filename) {
  constexpr std::string_view kShape = "-00001-of-00003.gguf";
  if (filename.size() <= kShape.size()) return std::nullopt;
  const std::size_t start = filename.size() - kShape.size();
  PartName name{filename.substr(0, start), 0, 0};
  const auto number = [&](std::size_t offset, std::int64_t& out) {
    const char* from = filename.data() + start + offset;
    const auto [end, error] = std::from_chars(from, from + 5, out);
    return error == std::errc() && end == from + 5;
  };
  if (!number(1, name.part) || !number(10, name.parts) || name.file(name.part) != filename) return std::nullopt;
  return name;
}

class GgufCheckpoint final : public Checkpoint {
 public:
  Result<> load(const std::filesystem::path& path, const OpenOptions& options);

  const StoredTensor* find(std::string_view name) const override;
  std::string source_name(std::string_view name) const override;
  std::string where() const override { return path_.string(); }
  std::int64_t weight_bytes() const override { return bytes_; }
  Result<> read(const StoredTensor& tensor) const override { return tensors_.at(tensor.name).file->read(tensor.data); }
  void prefetch(const StoredTensor& tensor) const override { tensors_.at(tensor.name).file->prefetch(tensor.data); }
  void release(const StoredTensor& tensor) const override { tensors_.at(tensor.name).file->release(tensor.data); }
  const GgufFile* gguf() const override { return &parts_.front(); }

 private:
  struct Located {
    const StoredTensor* tensor;
    const MappedFile* file;
  };
  Result<> open_parts();
  Result<> check_part(std::size_t index, std::int64_t count) const;
  Result<> index_tensors();
  Result<> read_text_side();
  Result<> slice_experts();
  Result<> slice_stack(const StoredTensor& stack);
  void stand_up(const std::string& name);
  const StoredTensor* find_stored(std::string_view name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second.tensor;
  }

  std::vector<GgufFile> parts_;
  std::map<std::string_view, Located> tensors_;
  // Experts out of the tensors that hold a layer's in a row, under whose name they go.
  std::map<std::string, std::vector<StoredTensor>, std::less<>> slices_;
  std::map<std::string, StoredTensor, std::less<>> rows_;  // matrices of one row that are stored as vectors
  std::int64_t bytes_ = 0;
};

const StoredTensor* GgufCheckpoint::find(std::string_view name) const {
  if (const auto stored = gguf_name(name)) {
    const auto row = rows_.find(*stored);
    return row == rows_.end() ? find_stored(*stored) : &row->second;
  }
  const auto expert = gguf_expert_name(name);
  if (!expert) return nullptr;
  const auto stack = slices_.find(expert->stacked);
  if (stack == slices_.end()) return find_stored(expert->separate);
  const auto index = static_cast<std::size_t>(expert->expert);
  return index < stack->second.size() ? &stack->second[index] : nullptr;
}

std::string GgufCheckpoint::source_name(std::string_view name) const {
  if (const auto stored = gguf_name(name)) return *stored;
  const auto expert = gguf_expert_name(name);
  if (!expert) return std::string(name);
  return slices_.empty() && find_stored("blk.0.ffn_gate.0.weight") != nullptr ? expert->separate : expert->stacked;
}

// A tensor [experts, outputs, inputs] as so many matrices.
Result<> GgufCheckpoint::slice_stack(const StoredTensor& stack) {
  const auto experts = static_cast<std::size_t>(config_.moe.experts);
  if (stack.shape.size() != 3 || stack.shape[0] != config_.moe.experts) {
    return fail(ErrorCode::kInvalid, "{}: tensor {} has shape {}, expected the matrices of {} experts (expert_count)",
                where(), stack.name, shape_text(stack.shape), experts);
  }
  const std::size_t bytes = stack.data.size() / experts;
  std::vector<StoredTensor>& slices = slices_[stack.name];
  for (std::size_t i = 0; i < experts; ++i) {
    slices.push_back({.name = stack.name,
                      .dtype = stack.dtype,
                      .shape = {stack.shape[1], stack.shape[2]},
                      .data = stack.data.subspan(i * bytes, bytes)});
  }
  return {};
}

// Converters drop the one output of a shared expert's gate.
void GgufCheckpoint::stand_up(const std::string& name) {
  const StoredTensor* stored = find_stored(name);
  if (stored == nullptr || stored->shape.size() != 1) return;
  StoredTensor& row = rows_[name] = *stored;
  row.shape.insert(row.shape.begin(), 1);
}

Result<> GgufCheckpoint::slice_experts() {
  if (config_.moe.experts == 0) return {};
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    for (const std::string& name : gguf_expert_stacks(layer)) {
      const StoredTensor* stack = find_stored(name);
      if (stack != nullptr) OCTET_TRY_VOID(slice_stack(*stack));
    }
    stand_up(gguf_shared_gate(layer));
  }
  return {};
}

Result<> GgufCheckpoint::load(const std::filesystem::path& path, const OpenOptions& options) {
  path_ = path;
  OCTET_TRY_VOID(open_parts());
  OCTET_TRY_VOID(index_tensors());
  OCTET_TRY(config_, read_gguf_config(parts_.front(), [this](std::string_view name) { return find_stored(name); }));
  OCTET_TRY_VOID(ask_quantization(options.quantization, where(), config_.quantization));
  OCTET_TRY_VOID(slice_experts());
  return read_text_side();
}

Result<> GgufCheckpoint::open_parts() {
  OCTET_TRY(GgufFile first, GgufFile::open(path_));
  std::int64_t count = 1;
  if (first.find("split.count") != nullptr) {
    OCTET_TRY(count, first.integer("split.count"));
  }
  parts_.push_back(std::move(first));
  if (count <= 1) return {};
  if (count > kMaxParts) {
    return fail(ErrorCode::kInvalid, "{}: key \"split.count\" is {}, more than {}", where(), count, kMaxParts);
  }
  const auto name = part_name(path_.filename().string());
  if (!name || name->parts != count) {
    return fail(ErrorCode::kInvalid,
                "{}: key \"split.count\" says {} parts, but the file's name does not end in -00001-of-{:05}.gguf",
                where(), count, count);
  }
  if (name->part != 1) {
    return fail(ErrorCode::kInvalid, "{}: part {} of a split model; give its first part, {}", where(), name->part,
                name->file(1));
  }
  std::vector<std::string> missing;
  for (std::int64_t i = 2; i <= count; ++i) {
    std::error_code error;
    if (!std::filesystem::exists(path_.parent_path() / name->file(i), error)) missing.push_back(name->file(i));
  }
  if (!missing.empty()) {
    return fail(ErrorCode::kNotFound, "{}: parts of the split model are missing: {}", where(), list_text(missing));
  }
  for (std::int64_t i = 2; i <= count; ++i) {
    OCTET_TRY(GgufFile part, GgufFile::open(path_.parent_path() / name->file(i)));
    parts_.push_back(std::move(part));
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) OCTET_TRY_VOID(check_part(i, count));
  return {};
}

Result<> GgufCheckpoint::check_part(std::size_t index, std::int64_t count) const {
  const GgufFile& part = parts_[index];
  OCTET_TRY(const std::int64_t number, part.integer("split.no"));
  OCTET_TRY(const std::int64_t parts, part.integer("split.count"));
  if (number != static_cast<std::int64_t>(index) || parts != count) {
    return fail(ErrorCode::kInvalid, "{}: holds part {} of {} (keys split.no, split.count), expected part {} of {}",
                part.where(), number + 1, parts, index + 1, count);
  }
  return {};
}

Result<> GgufCheckpoint::index_tensors() {
  std::map<std::string_view, const GgufFile*> origin;
  for (const GgufFile& part : parts_) {
    for (const auto& [name, tensor] : part.tensors()) {
      const auto [other, fresh] = origin.emplace(name, &part);
      if (!fresh) {
        return fail(ErrorCode::kInvalid, "{}: tensor {} stands in {} too", part.where(), printable(name),
                    other->second->where());
      }
      tensors_.emplace(name, Located{&tensor, part.file()});
      bytes_ += static_cast<std::int64_t>(tensor.data.size());
    }
  }
  if (parts_.size() == 1 || parts_.front().find("split.tensors.count") == nullptr) return {};
  OCTET_TRY(const std::int64_t expected, parts_.front().integer("split.tensors.count"));
  if (expected != static_cast<std::int64_t>(tensors_.size())) {
    return fail(ErrorCode::kInvalid, "{}: key \"split.tensors.count\" is {}, but the parts hold {} tensors", where(),
                expected, tensors_.size());
  }
  return {};
}

Result<> GgufCheckpoint::read_text_side() {
  OCTET_TRY(text, read_text_files(parts_.front()));
  return {};
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_gguf(const std::filesystem::path& path, const OpenOptions& options) {
  auto checkpoint = std::make_unique<GgufCheckpoint>();
  OCTET_TRY_VOID(checkpoint->load(path, options));
  return checkpoint;
}

}  // namespace octet::formats
