#include "octet/base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace octet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Log, LevelsByBothNames) {
  for (const char* name : {"warning", "WARNING"}) {
    ASSERT_TRUE(set_log_level(name).has_value());
    EXPECT_FALSE(log_enabled(LogLevel::kInfo));
    EXPECT_TRUE(log_enabled(LogLevel::kWarning));
  }
  ASSERT_TRUE(set_log_level("CRITICAL").has_value());
  EXPECT_FALSE(log_enabled(LogLevel::kError));
  EXPECT_FALSE(set_log_level("loud").has_value());
  ASSERT_TRUE(set_log_level("info").has_value());
}

TEST(Log, BackgroundWritesEverythingInOrderBeforeItEnds) {
  ::testing::internal::CaptureStderr();
  {
    const BackgroundLog background;
    for (int i = 0; i < 1000; ++i) log_info("line {}.", i);
  }
  log_info("behind it");
  const std::string text = ::testing::internal::GetCapturedStderr();
  std::size_t at = 0;
  for (int i = 0; i < 1000; ++i) {
    at = text.find("line " + std::to_string(i) + ".", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_NE(text.find("behind it", at), std::string::npos);
}

TEST(Log, NobodyWaitsForAReaderThatDoesNotRead) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int nowhere = ::open("/dev/null", O_WRONLY);
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  ::close(ends[1]);
  const std::uint64_t before = dropped_log_lines();
  std::uint64_t dropped = 0;
  {
    const BackgroundLog background;
    const std::string line(1000, 'x');
    // Far more than the pipe and the queue hold: a log that waits would never come to the end of this.
    for (int i = 0; i < 40'000; ++i) log_message(LogLevel::kInfo, line);
    dropped = dropped_log_lines() - before;
    ::dup2(nowhere, STDERR_FILENO);  // for what is still queued
    char buffer[65536];
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    while (::read(ends[0], buffer, sizeof buffer) > 0) {
    }
  }
  ::dup2(saved, STDERR_FILENO);
  for (const int fd : {saved, nowhere, ends[0]}) ::close(fd);
  EXPECT_GT(dropped, 1000U);
}

}  // namespace
}  // namespace octet
