#include "apps/octet/hub_fetch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "apps/octet/hub_part_file.h"
#include "apps/octet/hub_progress.h"
#include "apps/octet/hub_transfer.h"
#include "apps/octet/pull_signals.h"

namespace octet::hub {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{100};
constexpr int kChecksumTries = 2;

std::unexpected<Error> stopped_error() { return fail(ErrorCode::kCancelled, "stopped"); }

// One blob on its way. Guarded by the fetcher's mutex, but for the parts, which belong to their worker.
struct Blob {
  enum class State { kWaiting, kOpening, kOpen, kElsewhere, kChecking, kDone };
  HubFile file;                    // one of the files that have it
  std::vector<std::string> paths;  // all of them
  State state = State::kWaiting;
  Clock::time_point look_again{};  // kElsewhere
  std::optional<FileLock> lock;    // from kOpen on
  std::optional<PartFile> parts;
  std::size_t next_part = 0, parts_running = 0;
  int checksum_tries = 0;
};

class Fetcher {
 public:
  Fetcher(const FetchPlan& plan, const Settings& settings, const RepositoryCache& cache);
  Result<> run();

 private:
  struct Task {
    Blob* blob = nullptr;
    std::size_t part = 0;
    bool open = false;  // the blob must be opened first
  };

  bool stopped() const { return stop_signal != 0 || failed_; }
  Result<> check_space() const;
  void work();
  std::optional<Task> next_task();
  Result<> do_task(const Task& task, Connection& connection);
  Result<> open(Blob& blob);
  Result<> fetch_part(Blob& blob, std::size_t part, Connection& connection);
  Result<> complete(Blob& blob);
  Result<> link_all(const Blob& blob) const;
  Progress progress() const;
  std::int64_t most_tasks() const;
  fs::path partial(const Blob& blob) const { return cache_.blob(blob.file.digest + ".octet.incomplete"); }
  fs::path foreign_partial(const Blob& blob) const { return cache_.blob(blob.file.digest + ".incomplete"); }

  const FetchPlan& plan_;
  const Settings& settings_;
  const RepositoryCache& cache_;
  std::vector<std::unique_ptr<Blob>> blobs_;  // small ones first
  std::int64_t total_bytes_ = 0;
  std::atomic<std::int64_t> bytes_ = 0;  // that are there

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t done_ = 0;
  std::vector<std::string> notes_;  // for the progress line's thread
  std::atomic<bool> failed_ = false;
  std::optional<Error> error_;
};

std::int64_t allocated_bytes(const fs::path& path) {
  struct stat about = {};
  return ::stat(path.c_str(), &about) == 0 ? std::int64_t{about.st_blocks} * 512 : 0;
}

Fetcher::Fetcher(const FetchPlan& plan, const Settings& settings, const RepositoryCache& cache)
    : plan_(plan), settings_(settings), cache_(cache) {
  std::map<std::string, Blob*> by_digest;
  for (const HubFile& file : plan.files) {
    Blob*& blob = by_digest[file.digest];
    if (blob == nullptr) {
      blobs_.push_back(std::make_unique<Blob>());
      blob = blobs_.back().get();
      blob->file = file;
      total_bytes_ += file.size;
    }
    blob->paths.push_back(file.path);
  }
  std::ranges::sort(blobs_, {}, [](const auto& blob) { return std::tie(blob->file.size, blob->file.digest); });
}

// What is fetched must fit, less what is there of it already.
Result<> Fetcher::check_space() const {
  std::int64_t needed = 0;
  std::error_code error;
  for (const auto& blob : blobs_) {
    if (fs::exists(cache_.blob(blob->file.digest), error)) continue;
    const std::int64_t there = std::max(allocated_bytes(partial(*blob)), allocated_bytes(foreign_partial(*blob)));
    needed += std::max<std::int64_t>(blob->file.size - there, 0);
  }
  struct statvfs about = {};
  if (::statvfs(cache_.folder().c_str(), &about) != 0) return system_failure(cache_.folder());
  const double room = static_cast<double>(about.f_bavail) * static_cast<double>(about.f_frsize);
  if (static_cast<double>(needed) <= room) return {};
  return fail(ErrorCode::kExhausted,
              "no space left: {} are missing and {} has {} free; HF_HUB_CACHE names another folder",
              format_size(needed), cache_.folder().string(), format_size(static_cast<std::int64_t>(room)));
}

Result<> Fetcher::run() {
  std::error_code error;
  fs::create_directories(cache_.folder() / "blobs", error);
  if (error) return fail(ErrorCode::kIo, "{}: {}", (cache_.folder() / "blobs").string(), error.message());
  OCTET_TRY_VOID(check_space());
  // Blobs that are there need no worker.
  for (const auto& blob : blobs_) {
    if (!fs::exists(cache_.blob(blob->file.digest), error)) continue;
    OCTET_TRY_VOID(link_all(*blob));
    blob->state = Blob::State::kDone;
    bytes_ += blob->file.size;
    ++done_;
  }
  if (done_ == blobs_.size()) return {};
  ProgressLine line(plan_.repository, bytes_);
  std::vector<std::thread> workers;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(plan_.connections, most_tasks()); ++i)
    workers.emplace_back([this] { work(); });
  {
    std::unique_lock lock(mutex_);
    while (done_ < blobs_.size() && !stopped()) {
      changed_.wait_for(lock, kPoll);
      for (const std::string& note : std::exchange(notes_, {})) line.note(note);
      line.show(progress());
    }
  }
  for (std::thread& worker : workers) worker.join();
  line.show(progress());
  if (error_) return std::unexpected(*error_);
  if (done_ < blobs_.size()) return stopped_error();
  return {};
}

std::int64_t Fetcher::most_tasks() const {
  std::int64_t tasks = 0;
  for (const auto& blob : blobs_) tasks += 1 + blob->file.size / plan_.range_bytes;
  return tasks;
}

Progress Fetcher::progress() const {
  return {.bytes = bytes_, .total_bytes = total_bytes_, .files = done_, .total_files = blobs_.size()};
}

void Fetcher::work() {
  Connection connection(settings_, [this] { return stopped(); });
  while (!stopped()) {
    const std::optional<Task> task = next_task();
    if (!task) return;
    if (task->blob == nullptr) continue;
    auto result = do_task(*task, connection);
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
    if (result || stop_signal != 0 || failed_) continue;
    error_ = std::move(result).error();
    failed_ = true;
  }
}

// Nothing: all is done. A task without a blob: the rest is with other workers or processes.
std::optional<Fetcher::Task> Fetcher::next_task() {
  std::unique_lock lock(mutex_);
  if (done_ == blobs_.size()) return std::nullopt;
  for (const auto& blob : blobs_) {
    if (blob->state != Blob::State::kOpen) continue;
    const auto& parts = blob->parts->parts();
    while (blob->next_part < parts.size()) {
      const std::size_t part = blob->next_part++;
      if (parts[part].done == parts[part].end - parts[part].begin) continue;
      ++blob->parts_running;
      return Task{.blob = blob.get(), .part = part};
    }
  }
  for (const auto& blob : blobs_) {
    const bool again = blob->state == Blob::State::kElsewhere && Clock::now() >= blob->look_again;
    if (blob->state != Blob::State::kWaiting && !again) continue;
    if (blob->state == Blob::State::kWaiting) blob->look_again = {};
    blob->state = Blob::State::kOpening;
    return Task{.blob = blob.get(), .open = true};
  }
  changed_.wait_for(lock, kPoll);
  return Task{};
}

Result<> Fetcher::do_task(const Task& task, Connection& connection) {
  if (task.open) return open(*task.blob);
  return fetch_part(*task.blob, task.part, connection);
}

Result<> Fetcher::open(Blob& blob) {
  OCTET_TRY(std::optional<FileLock> taken, FileLock::try_take(cache_.lock(blob.file.digest)));
  if (!taken) {
    const std::lock_guard lock(mutex_);
    if (blob.look_again == Clock::time_point{}) {
      notes_.push_back(fmt::format("{}: another process fetches it; waiting", blob.paths.front()));
    }
    blob.state = Blob::State::kElsewhere;
    blob.look_again = Clock::now() + 2 * kPoll;
    return {};
  }
  std::error_code error;
  if (fs::exists(cache_.blob(blob.file.digest), error)) {
    OCTET_TRY_VOID(link_all(blob));
    const std::lock_guard lock(mutex_);
    blob.state = Blob::State::kDone;
    bytes_ += blob.file.size;
    ++done_;
    return {};
  }
  if (blob.file.size == 0) {
    const int made = ::creat(cache_.blob(blob.file.digest).c_str(), 0666);
    if (made < 0) return system_failure(cache_.blob(blob.file.digest));
    ::close(made);
    OCTET_TRY_VOID(link_all(blob));
    const std::lock_guard lock(mutex_);
    blob.state = Blob::State::kDone;
    ++done_;
    return {};
  }
  OCTET_TRY(PartFile parts, PartFile::open(partial(blob), foreign_partial(blob), blob.file.size, plan_.range_bytes));
  bytes_ += parts.done();
  const bool whole = parts.done() == blob.file.size;
  {
    const std::lock_guard lock(mutex_);
    blob.lock = std::move(taken);
    blob.parts.emplace(std::move(parts));
    blob.next_part = 0;
    blob.state = whole ? Blob::State::kChecking : Blob::State::kOpen;
  }
  return whole ? complete(blob) : Result<>();
}

Result<> Fetcher::fetch_part(Blob& blob, std::size_t index, Connection& connection) {
  const PartFile::Part part = blob.parts->parts()[index];
  const std::string url = fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint, plan_.repository, plan_.commit,
                                      url_encoded(blob.file.path, true));
  auto reply = connection.get_range(url, part.begin + part.done, part.end, blob.file.size,
                                    [&](std::span<const std::byte> bytes) {
                                      bytes_ += static_cast<std::int64_t>(bytes.size());
                                      return blob.parts->append(index, bytes);
                                    });
  if (reply && reply->status / 100 != 2) {
    Error error = hub_error(*reply, settings_, plan_.repository, plan_.revision);
    if (reply->status == 404) error = {ErrorCode::kNotFound, fmt::format("{}: the hub lists it and has it not", url)};
    reply = std::unexpected(std::move(error));
  }
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    last = --blob.parts_running == 0 && reply && blob.parts->done() == blob.file.size;
    if (last) blob.state = Blob::State::kChecking;
  }
  if (!reply) return within(blob.file.path, std::move(reply).error());
  return last ? complete(blob) : Result<>();
}

// All bytes are there: are they the right ones?
Result<> Fetcher::complete(Blob& blob) {
  OCTET_TRY_VOID(blob.parts->finish());
  OCTET_TRY(const std::string actual, digest_of(partial(blob), blob.file.kind, [this] { return stopped(); }));
  if (actual == blob.file.digest) {
    if (::rename(partial(blob).c_str(), cache_.blob(blob.file.digest).c_str()) != 0) {
      return system_failure(cache_.blob(blob.file.digest));
    }
    OCTET_TRY_VOID(link_all(blob));
    const std::lock_guard lock(mutex_);
    blob.parts.reset();
    blob.lock.reset();
    blob.state = Blob::State::kDone;
    ++done_;
    return {};
  }
  std::error_code error;
  fs::remove(partial(blob), error);
  const std::lock_guard lock(mutex_);
  blob.parts.reset();
  blob.lock.reset();
  blob.state = Blob::State::kWaiting;
  bytes_ -= blob.file.size;
  if (++blob.checksum_tries < kChecksumTries) {
    notes_.push_back(fmt::format("{}: its checksum is wrong; fetching it again", blob.paths.front()));
    return {};
  }
  return fail(ErrorCode::kInvalid, "{}: {} is {}, the hub says {}; it was not kept", blob.file.path,
              blob.file.kind == DigestKind::kSha256 ? "SHA-256" : "Git's SHA-1", actual, blob.file.digest);
}

Result<> Fetcher::link_all(const Blob& blob) const {
  for (const std::string& path : blob.paths) {
    HubFile file = blob.file;
    file.path = path;
    OCTET_TRY_VOID(cache_.link(plan_.commit, file));
  }
  return {};
}

}  // namespace

Result<> fetch_files(const FetchPlan& plan, const Settings& settings, const RepositoryCache& cache) {
  Fetcher fetcher(plan, settings, cache);
  return fetcher.run();
}

}  // namespace octet::hub
