// `octet run` in a terminal and in a pipe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "octet/base/json.h"
#include "tests/support/chat_model.h"
#include "tests/support/interactive_child.h"

namespace fs = std::filesystem;

namespace octet::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// The template of the test's model writes 18 bytes around a first message, and each byte is a token.
constexpr int kTemplateTokens = 18;
constexpr const char* kUp = "\x1b[A";
constexpr const char* kCtrlA = "\x01";
constexpr const char* kCtrlC = "\x03";
constexpr const char* kCtrlD = "\x04";

const fs::path& chat_model() {
  static const TempFolder folder;
  static const fs::path path = [] {
    write_chat_model(folder.path() / "model");
    return folder.path() / "model";
  }();
  return path;
}

std::string prompt_tokens(int count) { return "prompt " + std::to_string(count) + " tokens"; }

class Run : public ::testing::Test {
 protected:
  ChildSetup setup(std::vector<std::string> more = {}) const {
    ChildSetup setup{.command = {OCTET_PROGRAM, "run", chat_model(), "--threads", "1", "--temperature", "0"},
                     .environment = {{"XDG_STATE_HOME", folder_.path() / "state"}, {"TERM", "xterm"}}};
    setup.command.insert(setup.command.end(), more.begin(), more.end());
    return setup;
  }
  ChildSetup terminal(std::vector<std::string> more = {}) const {
    ChildSetup with_terminal = setup(std::move(more));
    with_terminal.terminal = true;
    return with_terminal;
  }
  ChildResult answer(std::vector<std::string> more, std::string_view input = {}) const {
    return run_to_end(setup(std::move(more)), input);
  }
  Json saved() const {
    std::stringstream text;
    text << std::ifstream(save_path()).rdbuf();
    const Json request = Json::parse(text.str(), nullptr, false);  // half written: discarded
    return request.is_object() ? request.at("messages") : Json::array();
  }
  fs::path save_path() const { return folder_.path() / "chat.json"; }
  void save(InteractiveChild& chat) const {
    fs::remove(save_path());
    chat.write("/save " + save_path().string() + "\r");
    EXPECT_TRUE(comes_true([&] { return !saved().empty() || !chat.runs(); })) << chat.output();
  }

  TempFolder folder_;
};

TEST_F(Run, PipeGivesTheReplyAlone) {
  const ChildResult piped = answer({"--max-tokens", "20"}, "hi\n");
  EXPECT_EQ(piped.status, 0);
  EXPECT_EQ(piped.err, "");
  EXPECT_THAT(piped.out, EndsWith("\n"));
  EXPECT_GT(piped.out.size(), 10U);
  EXPECT_EQ(answer({"hi", "--max-tokens", "20"}).out, piped.out);
}

TEST_F(Run, PipeIsPutBehindThePrompt) {
  const ChildResult both = answer({"sum up:", "--max-tokens", "5", "--verbose"}, "one\ntwo\n");
  EXPECT_EQ(both.status, 0);
  EXPECT_THAT(both.err, HasSubstr(prompt_tokens(kTemplateTokens + sizeof "sum up:\n\none\ntwo" - 1)));
  EXPECT_THAT(both.err, AllOf(HasSubstr("TTFT"), HasSubstr("tokens/s"), HasSubstr("5 tokens")));
}

TEST_F(Run, SystemPromptIsRendered) {
  const ChildResult result = answer({"hi", "--system", "be brief", "--max-tokens", "5", "--verbose"});
  EXPECT_THAT(result.err, HasSubstr(prompt_tokens(kTemplateTokens + sizeof "hi" - 1 + sizeof "system: be brief")));
}

TEST_F(Run, SeedsRepeat) {
  const auto drawn = [&](const char* seed) {
    return answer({"hi", "--temperature", "1.5", "--max-tokens", "30", "--seed", seed}).out;
  };
  EXPECT_EQ(drawn("7"), drawn("7"));
  EXPECT_NE(drawn("7"), drawn("8"));
}

TEST_F(Run, WhatCannotBeAnsweredIsSaid) {
  const ChildResult empty = answer({});
  EXPECT_EQ(empty.status, 1);
  EXPECT_THAT(empty.err, HasSubstr("the prompt is empty"));
  EXPECT_THAT(answer({}, "\xff\xfe").err, HasSubstr("no UTF-8"));
  EXPECT_EQ(answer({"hi", "--temperature", "3"}).status, 2);
  const ChildResult longer = answer({std::string(200, 'x'), "--max-model-len", "64"});
  EXPECT_EQ(longer.status, 1);
  EXPECT_EQ(longer.out, "");
  EXPECT_THAT(longer.err, HasSubstr("context"));
  const ChildResult missing = run_to_end({.command = {OCTET_PROGRAM, "run", "no-such-model", "hi"}, .environment = {}});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("no-such-model"));
}

TEST_F(Run, ModelWithoutTemplateContinues) {
  fs::copy(chat_model(), folder_.path() / "base");
  fs::remove(folder_.path() / "base" / "chat_template.jinja");
  ChildSetup base = setup({"hello", "--max-tokens", "5", "--verbose"});
  base.command[2] = folder_.path() / "base";
  const ChildResult result = run_to_end(base);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr(prompt_tokens(5)));
}

TEST_F(Run, InterruptEndsASingleAnswer) {
  InteractiveChild child(setup({"hi"}));
  child.end_input();
  ASSERT_TRUE(comes_true([&] { return !child.output().empty() || !child.runs(); }));
  child.signal(SIGINT);
  EXPECT_EQ(child.wait(), 128 + SIGINT);
  EXPECT_THAT(child.output(), EndsWith("\n"));
}

TEST_F(Run, TerminalsAreNotSteeredByReplies) {
  const std::vector<std::string> noise = {"hi", "--temperature", "2", "--seed", "3", "--max-tokens", "400"};
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t'; };
  EXPECT_TRUE(std::ranges::any_of(answer(noise).out, is_control));
  InteractiveChild child(terminal(noise));
  EXPECT_EQ(child.wait(), 0);
  std::string shown = child.output();
  std::erase(shown, '\r');  // of the terminal's own line ends
  shown.erase(0, shown.rfind("\x1b[K") == shown.npos ? 0 : shown.rfind("\x1b[K") + 3);  // the progress line of loading
  EXPECT_GT(shown.size(), 50U);
  EXPECT_FALSE(std::ranges::any_of(shown, is_control));
}

TEST_F(Run, ChatRemembersAndResets) {
  InteractiveChild chat(terminal({"--max-tokens", "8", "--verbose"}));
  chat.write("hello\r");
  ASSERT_TRUE(chat.says("TTFT")) << chat.output();
  EXPECT_THAT(chat.output(), HasSubstr(prompt_tokens(kTemplateTokens + 5)));
  chat.write("again\r");
  ASSERT_TRUE(chat.says("TTFT", 2)) << chat.output();
  save(chat);
  const Json turns = saved();
  ASSERT_EQ(turns.size(), 4U);
  EXPECT_EQ(turns[0], Json({{"role", "user"}, {"content", "hello"}}));
  EXPECT_EQ(turns[1].at("role"), "assistant");
  EXPECT_NE(turns[1].at("content"), "");
  EXPECT_EQ(turns[2].at("content"), "again");

  chat.write("/reset\r");
  ASSERT_TRUE(chat.says("begins anew"));
  chat.write("/system be brief\r");
  ASSERT_TRUE(chat.says("system prompt: be brief"));
  chat.write("hello\r");
  ASSERT_TRUE(chat.says("TTFT", 3)) << chat.output();
  save(chat);
  ASSERT_EQ(saved().size(), 3U);
  EXPECT_EQ(saved()[0], Json({{"role", "system"}, {"content", "be brief"}}));
  chat.write("/exit\r");
  EXPECT_EQ(chat.wait(), 0) << chat.output();
}

TEST_F(Run, CommandsExplainThemselves) {
  InteractiveChild chat(terminal({"--max-tokens", "8"}));
  chat.write("/help\r");
  EXPECT_TRUE(chat.says("/system TEXT"));
  chat.write("/frobnicate\r");
  EXPECT_TRUE(chat.says("/frobnicate: no such command"));
  chat.write("/save\r");
  EXPECT_TRUE(chat.says("the file is missing"));
  chat.write("/save /dev/full/x\r");
  EXPECT_TRUE(chat.says("could not be written"));
  chat.write("/verbose\r");
  EXPECT_TRUE(chat.says("verbose: on"));
  chat.write("//slash\r");
  ASSERT_TRUE(chat.says("TTFT")) << chat.output();
  EXPECT_THAT(chat.output(), HasSubstr(prompt_tokens(kTemplateTokens + 6)));
  chat.write(kCtrlD);
  EXPECT_EQ(chat.wait(), 0) << chat.output();
}

TEST_F(Run, LinesAreEditedAndContinued) {
  InteractiveChild chat(terminal({"--max-tokens", "8", "--verbose"}));
  chat.write("orld!\x7f" + std::string(kCtrlA) + "hell\xc3\xb6 w\r");  // hellö world
  ASSERT_TRUE(chat.says("TTFT")) << chat.output();
  chat.write("one\\\rtwo\r");
  ASSERT_TRUE(chat.says("TTFT", 2)) << chat.output();
  save(chat);
  ASSERT_EQ(saved().size(), 4U);
  EXPECT_EQ(saved()[0].at("content"), "hell\xc3\xb6 world");
  EXPECT_EQ(saved()[2].at("content"), "one\ntwo");
}

TEST_F(Run, HistoryOutlivesTheProgram) {
  {
    InteractiveChild chat(terminal());
    chat.write("/verbose\r");
    ASSERT_TRUE(chat.says("verbose: on")) << chat.output();
    chat.write(std::string(kUp) + "\r");
    ASSERT_TRUE(chat.says("verbose: off")) << chat.output();
    chat.write(kCtrlD);
    EXPECT_EQ(chat.wait(), 0);
  }
  const fs::path file = folder_.path() / "state" / "octet" / "run_history";
  ASSERT_TRUE(fs::exists(file));
  EXPECT_EQ(fs::status(file).permissions() & fs::perms::mask, fs::perms::owner_read | fs::perms::owner_write);
  InteractiveChild chat(terminal());
  ASSERT_TRUE(chat.says("/help lists"));
  chat.write(std::string(kUp) + "\r");
  EXPECT_TRUE(chat.says("verbose: on")) << chat.output();
}

TEST_F(Run, InterruptStopsTheReplyAndNotTheChat) {
  InteractiveChild chat(terminal());
  ASSERT_TRUE(chat.says(">>> "));
  chat.write("/system x\r");
  ASSERT_TRUE(chat.says("system prompt: x"));
  chat.write("hello\r");
  const std::size_t before = chat.output().size();
  ASSERT_TRUE(comes_true([&] { return chat.output().size() > before + 500 || !chat.runs(); }));
  chat.write(kCtrlC);
  save(chat);
  const Json turns = saved();
  ASSERT_EQ(turns.size(), 3U);
  EXPECT_GT(turns[2].at("content").get<std::string>().size(), 100U);

  chat.write("half a line");
  chat.write(kCtrlC);
  ASSERT_TRUE(chat.says("once more ends the chat")) << chat.output();
  chat.write("/verbose\r");
  ASSERT_TRUE(chat.says("verbose: on")) << chat.output();
  chat.write(kCtrlC);
  ASSERT_TRUE(chat.says("once more ends the chat", 2)) << chat.output();
  chat.write(kCtrlC);
  EXPECT_EQ(chat.wait(), 0) << chat.output();
}

TEST_F(Run, StoppedChatsTakeTheTerminalBack) {
  InteractiveChild chat(terminal());
  ASSERT_TRUE(chat.says("/help lists"));
  ASSERT_TRUE(comes_true([&] { return !chat.line_mode(); }));
  chat.signal(SIGSTOP);
  chat.set_line_mode();
  chat.signal(SIGCONT);
  EXPECT_TRUE(comes_true([&] { return !chat.line_mode(); }));
  chat.write("/verbose\r");
  EXPECT_TRUE(chat.says("verbose: on")) << chat.output();
}

TEST_F(Run, TerminationGivesTheTerminalBack) {
  InteractiveChild chat(terminal());
  chat.write("/verbose\r");
  ASSERT_TRUE(chat.says("verbose: on")) << chat.output();
  ASSERT_TRUE(comes_true([&] { return !chat.line_mode(); }));
  chat.signal(SIGTERM);
  EXPECT_EQ(chat.wait(), 128 + SIGTERM);
  EXPECT_TRUE(chat.line_mode());
  EXPECT_TRUE(fs::exists(folder_.path() / "state" / "octet" / "run_history"));
}

}  // namespace
}  // namespace octet::testing
