// OPS-03: what loading reads of a model's files. Counted at Checkpoint::read(), which the loader has to ask for every
// tensor: behind the injected layer a weight can be touched only between its read and its release, anything else is a
// fault that ends the test. So nothing is read that is not counted, and the count does not depend on what the system
// happens to hold of a file in its cache.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <set>
#include <string>

#include "octet/models/model.h"
#include "tests/support/model_driver.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_model.h"

namespace octet::models {
namespace {

using formats::Checkpoint;
using formats::StoredTensor;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::make_tiny_model;
using testing::TempFolder;
using testing::TinyModelSpec;
namespace fs = std::filesystem;

// Bytes that cannot be touched before they are read, nor after they were given back.
class Guarded {
 public:
  explicit Guarded(std::size_t size) : size_(size) {
    data_ = ::mmap(nullptr, std::max<std::size_t>(size, 1), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(data_, MAP_FAILED);
  }
  ~Guarded() { ::munmap(data_, std::max<std::size_t>(size_, 1)); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  void fill(std::span<const std::byte> from) const {
    ::mprotect(data_, size_, PROT_READ | PROT_WRITE);
    std::memcpy(data_, from.data(), size_);
    ::mprotect(data_, size_, PROT_READ);
  }
  void close() const { ::mprotect(data_, size_, PROT_NONE); }

 private:
  void* data_;
  std::size_t size_;
};

class CountedCheckpoint final : public Checkpoint {
 public:
  explicit CountedCheckpoint(std::unique_ptr<Checkpoint> inner) : inner_(std::move(inner)) {
    path_ = inner_->path();
    config_ = inner_->config();
  }

  const StoredTensor* find(std::string_view name) const override {
    const StoredTensor* stored = inner_->find(name);
    if (stored == nullptr) return nullptr;
    const auto [entry, fresh] = tensors_.try_emplace(stored->name);
    if (fresh) {
      entry->second.source = stored;
      entry->second.memory = std::make_unique<Guarded>(stored->data.size());
      entry->second.tensor = *stored;
      entry->second.tensor.data = entry->second.memory->bytes();
    }
    return &entry->second.tensor;
  }
  std::string source_name(std::string_view name) const override { return inner_->source_name(name); }
  std::string where() const override { return inner_->where(); }
  std::int64_t weight_bytes() const override { return inner_->weight_bytes(); }
  void prefetch(const StoredTensor& tensor) const override { asked_.insert(tensor.name); }
  Result<> read(const StoredTensor& tensor) const override {
    const auto size = static_cast<std::int64_t>(tensor.data.size());
    if (fails_behind >= 0 && bytes + size > fails_behind) {
      return fail(ErrorCode::kIo, "{}: Input/output error", where());
    }
    EXPECT_TRUE(asked_.contains(tensor.name)) << tensor.name << " is read without having been asked for ahead";
    bytes += size;
    ++reads;
    const Entry& entry = tensors_.at(tensor.name);
    entry.memory->fill(entry.source->data);
    return {};
  }
  void release(const StoredTensor& tensor) const override { tensors_.at(tensor.name).memory->close(); }

  mutable std::int64_t bytes = 0;
  mutable std::size_t reads = 0;
  std::int64_t fails_behind = -1;

 private:
  struct Entry {
    const StoredTensor* source = nullptr;
    std::unique_ptr<Guarded> memory;
    StoredTensor tensor;
  };
  std::unique_ptr<Checkpoint> inner_;
  mutable std::map<std::string, Entry> tensors_;
  mutable std::set<std::string> asked_;
};

Result<std::unique_ptr<Model>> load(const Checkpoint& checkpoint) {
  static const std::unique_ptr<ops::Backend> backend = ops::make_cpu_backend(1);
  static const std::unique_ptr<ops::Stream> stream = backend->create_stream();
  static const std::unique_ptr<comm::Group> group = comm::make_solo_group();
  return load_model(checkpoint, *backend, *stream, *group,
                    {.dtype = DType::kBF16,
                     .max_rows = 32,
                     .max_logits_rows = 32,
                     .max_positions = 100,
                     .block_size = 16,
                     .progress = {}});
}

CountedCheckpoint counted(const fs::path& path) {
  auto opened = Checkpoint::open(path);
  EXPECT_TRUE(opened.has_value()) << opened.error().message;
  return CountedCheckpoint(*std::move(opened));
}

std::int64_t size_of(const fs::path& file) { return static_cast<std::int64_t>(fs::file_size(file)); }

TEST(Ops03, EveryByteOfTheWeightsIsReadOnce) {
  for (const TinyModelSpec& spec :
       {TinyModelSpec{}, TinyModelSpec{.tied = true}, TinyModelSpec{.architecture = "Qwen2ForCausalLM", .layers = 3},
        TinyModelSpec{.attention_bias = true, .mlp_bias = true, .dtype = DType::kF32}}) {
    const TempFolder folder;
    make_tiny_model(spec).write(folder.path());
    const CountedCheckpoint checkpoint = counted(folder.path());
    const auto model = load(checkpoint);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    const std::int64_t file = size_of(folder.path() / "model.safetensors");
    const std::int64_t header = file - checkpoint.weight_bytes();  // read when it was opened
    EXPECT_EQ(checkpoint.bytes, checkpoint.weight_bytes());
    EXPECT_LE(static_cast<double>(checkpoint.bytes + header), 1.1 * static_cast<double>(file));
  }
}

TEST(Ops03, EveryByteOfAGgufFileIsReadOnce) {
  const fs::path file = fs::path(OCTET_TEST_DATA) / "gguf/llama-bpe-rope3-tied-bf16.gguf";
  const CountedCheckpoint checkpoint = counted(file);
  ASSERT_TRUE(load(checkpoint).has_value());
  EXPECT_GT(checkpoint.bytes, 0);
  const std::int64_t header = size_of(file) - checkpoint.weight_bytes();
  EXPECT_LE(static_cast<double>(checkpoint.bytes + header), 1.1 * static_cast<double>(size_of(file)));
}

// A read is a whole tensor, not a page or a row.
TEST(Ops03, ReadsAreLarge) {
  const TempFolder folder;
  const auto model = make_tiny_model();
  model.write(folder.path());
  const CountedCheckpoint checkpoint = counted(folder.path());
  ASSERT_TRUE(load(checkpoint).has_value());
  EXPECT_EQ(checkpoint.reads, model.tensors.size());
}

TEST(Ops03, AReadErrorInTheMiddleEndsTheLoad) {
  const TempFolder folder;
  make_tiny_model().write(folder.path());
  CountedCheckpoint checkpoint = counted(folder.path());
  checkpoint.fails_behind = checkpoint.weight_bytes() / 2;
  const auto model = load(checkpoint);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code, ErrorCode::kIo);
  EXPECT_THAT(model.error().message, HasSubstr((folder.path() / "model.safetensors").string()));
  EXPECT_LE(checkpoint.bytes, checkpoint.fails_behind);
}

// The same without a layer between: where the system cannot read a page, touching it would end the process.
TEST(Ops03, AFileThatIsCutShortMeanwhileEndsTheLoad) {
  const TempFolder folder;
  make_tiny_model().write(folder.path() / "folder");
  const fs::path gguf = folder.path() / "model.gguf";
  fs::copy_file(fs::path(OCTET_TEST_DATA) / "gguf/llama-bpe-rope3-tied-bf16.gguf", gguf);
  for (const auto& [path, file] :
       {std::pair(folder.path() / "folder", folder.path() / "folder/model.safetensors"), std::pair(gguf, gguf)}) {
    const auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
    fs::resize_file(file, fs::file_size(file) / 2);
    const auto model = load(**checkpoint);
    ASSERT_FALSE(model.has_value());
    EXPECT_EQ(model.error().code, ErrorCode::kIo);
    EXPECT_THAT(model.error().message, AllOf(HasSubstr(file.string()), HasSubstr("at byte")));
  }
}

// Names of the files of a folder that are opened while this lives, and how often.
class Opened {
 public:
  explicit Opened(const fs::path& folder) : fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(fd_, folder.c_str(), IN_OPEN), 0);
  }
  ~Opened() { ::close(fd_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  std::map<std::string, int> names() const {
    std::map<std::string, int> names;
    alignas(inotify_event) char buffer[1 << 16];
    for (ssize_t got; (got = ::read(fd_, buffer, sizeof buffer)) > 0;) {
      for (ssize_t at = 0; at < got;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
        if (event->len > 0) ++names[event->name];
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    }
    return names;
  }

 private:
  int fd_;
};

TEST(Ops03, OtherCopiesInTheFolderAreNotOpened) {
  const TempFolder folder;
  const fs::path model = folder.path() / "model";
  fs::copy(fs::path(OCTET_TEST_DATA) / "models/llama-sharded-v5config", model);
  std::set<std::string> shards;
  for (const auto& entry : fs::directory_iterator(model)) {
    if (entry.path().extension() == ".safetensors") shards.insert(entry.path().filename());
  }
  ASSERT_GT(shards.size(), 1U);
  const std::string copies[] = {"model.safetensors", "consolidated.safetensors", "consolidated.00.pth",
                                "pytorch_model.bin", "model.gguf"};
  for (const std::string& copy : copies) fs::copy_file(model / *shards.begin(), model / copy);
  const Opened opened(model);
  const auto checkpoint = Checkpoint::open(model);
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  ASSERT_TRUE(load(**checkpoint).has_value());
  const std::map<std::string, int> names = opened.names();
  for (const std::string& shard : shards) EXPECT_EQ(names.contains(shard) ? names.at(shard) : 0, 1) << shard;
  for (const std::string& copy : copies) EXPECT_FALSE(names.contains(copy)) << copy;
}

}  // namespace
}  // namespace octet::models
