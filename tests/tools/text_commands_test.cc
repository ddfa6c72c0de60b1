// `octet render` and `octet tokenize` as people use them: in pipes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "octet/base/json.h"
#include "tests/support/child_process.h"
#include "tests/support/temp_folder.h"

namespace octet {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kLimitSeconds = 60;
const std::string kGolden = std::string(OCTET_TEST_DATA) + "/text/";

std::string slurp(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

struct Outcome {
  int status = -1;
  std::string out, err;
};

class TextCommands : public ::testing::Test {
 protected:
  // `octet ARGUMENTS` through a shell, with this input.
  Outcome run(const std::string& arguments, const std::string& input) {
    folder_.write("in", input);
    return shell(fmt::format("{} {} < in > out 2> err", OCTET_PROGRAM, arguments));
  }
  Outcome shell(const std::string& script) {
    const auto done = testing::run_child({"sh", "-c", fmt::format("cd {} && {}", folder_.path().string(), script)},
                                         kLimitSeconds * testing::time_scale());
    EXPECT_FALSE(done.timed_out) << done.output;
    return {done.exit_code, slurp(folder_.path() / "out"), slurp(folder_.path() / "err")};
  }
  static std::vector<Json> lines(const std::string& text) {
    std::vector<Json> values;
    std::stringstream in(text);
    for (std::string line; std::getline(in, line);) values.push_back(Json::parse(line));
    return values;
  }

  testing::TempFolder folder_;
};

constexpr const char* kHello = R"({"messages": [{"role": "user", "content": "Hi"}]})";

TEST_F(TextCommands, RenderGivesTheGoldenTexts) {
  const std::string golden = slurp(kGolden + "templates/smollm2.jsonl");
  const Outcome got =
      run("render --jsonl --now '2025-03-14 09:26:53' --chat-template " + kGolden + "templates/smollm2.jinja", golden);
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(got.err, "");
  const auto records = lines(golden), answers = lines(got.out);
  ASSERT_EQ(answers.size(), records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    SCOPED_TRACE(records[i]["case"].get<std::string>());
    if (records[i].contains("expected")) {
      EXPECT_EQ(answers[i], (Json{{"text", records[i]["expected"]}}));
    } else {
      EXPECT_THAT(answers[i].value("error", ""), HasSubstr("line "));
    }
  }
}

TEST_F(TextCommands, RenderPrintsTheTextAlone) {
  const Outcome got = run("render --chat-template '{{ messages[0].content }}\\n-'", kHello);
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(got.out, "Hi\n-");
  EXPECT_EQ(got.err, "");
}

TEST_F(TextCommands, RenderTellsTheLineOfAnError) {
  folder_.write("t.jinja", "a\nb{{ raise_exception('no ' + messages[0].role) }}");
  Outcome got = run("render --chat-template t.jinja", kHello);
  EXPECT_EQ(got.status, 1);
  EXPECT_EQ(got.out, "");
  EXPECT_EQ(got.err, "octet render: chat template, line 2: no user\n");
  folder_.write("t.jinja", "\n\n{% if %}");
  got = run("render --jsonl --chat-template t.jinja", std::string(kHello) + "\n" + kHello);
  EXPECT_EQ(got.status, 1);
  EXPECT_THAT(got.err, StartsWith("octet render: chat template, line 3: "));
  ASSERT_EQ(lines(got.out).size(), 2U);
  EXPECT_THAT(lines(got.out)[1].value("error", ""), HasSubstr("line 3"));
}

TEST_F(TextCommands, RenderNamesWhatIsWrongWithARequest) {
  const std::string command = "render --chat-template '{{ 1 }}'";
  for (const auto& [request, expected] : std::vector<std::pair<std::string, std::string>>{
           {"{", "octet render: "},
           {"[]", "the request must be a JSON object"},
           {"{}", "messages: expected a list, found none"},
           {R"({"messages": 1})", "messages: expected a list"},
           {R"({"messages": [1]})", "a message must be an object"},
           {R"({"messages": [], "tools": {}})", "tools: expected a list"},
           {R"({"messages": [], "variables": []})", "variables: expected an object"},
           {R"({"messages": [], "add_generation_prompt": 1})", "add_generation_prompt: expected true or false"}}) {
    const Outcome got = run(command, request);
    EXPECT_EQ(got.status, 1) << request;
    EXPECT_THAT(got.err, HasSubstr(expected));
  }
  EXPECT_EQ(run("render", kHello).status, 2);
  EXPECT_THAT(run("render --chat-template nothing", kHello).err, HasSubstr("--chat-template nothing: there is no"));
  EXPECT_EQ(run("render --now noon --chat-template '{{ 1 }}'", kHello).status, 2);
}

TEST_F(TextCommands, RenderTakesTheClockFromAFlag) {
  const std::string render = "render --chat-template '{{ strftime_now(\"%Y-%m-%d %H:%M:%S\") }}' --now ";
  EXPECT_EQ(run(render + "2025-03-14", kHello).out, "2025-03-14 00:00:00");
  EXPECT_EQ(run(render + "2025-03-14T09:26:53", kHello).out, "2025-03-14 09:26:53");
  const auto in_zone = [&](const std::string& time) {
    folder_.write("in", kHello);
    return shell(fmt::format("TZ=UTC-3 {} {}{} < in > out 2> err", OCTET_PROGRAM, render, time)).out;
  };
  EXPECT_EQ(in_zone("1741944413"), "2025-03-14 12:26:53");
  EXPECT_EQ(in_zone("2025-03-14T09:26:53Z"), "2025-03-14 12:26:53");
  EXPECT_EQ(in_zone("2025-03-14T09:26:53+01:00"), "2025-03-14 11:26:53");
  EXPECT_EQ(in_zone("2025-03-14T09:26:53"), "2025-03-14 09:26:53");
}

TEST_F(TextCommands, RenderReadsAModelsTemplates) {
  folder_.write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": [
      {"name": "default", "template": "{{ bos_token }}D"}, {"name": "tool_use", "template": "T"}]})");
  const std::string tools = R"({"messages": [], "tools": [{"type": "function", "function": {"name": "f"}}]})";
  EXPECT_EQ(run("render --model .", kHello).out, "<s>D");
  EXPECT_EQ(run("render --model .", tools).out, "T");
  EXPECT_EQ(run("render --model . --template-name tool_use", kHello).out, "T");
  EXPECT_THAT(run("render --model . --template-name rag", kHello).err, HasSubstr("default, tool_use"));
  EXPECT_EQ(run("render --model . --chat-template '{{ bos_token }}X'", tools).out, "<s>X");
  EXPECT_EQ(run("render --model . --chat-template '{{ bos_token }}X'",
                R"({"messages": [], "variables": {"bos_token": "<b>"}})")
                .out,
            "<b>X");
}

TEST_F(TextCommands, RenderShowsWhatTheServerMakesOfMessages) {
  const std::string request = R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},)"
                              R"({"type": "text", "text": "b"}]}]})";
  const std::string render = "render --chat-template '{{ \"<\" + messages[0].content }}'";
  EXPECT_EQ(run(render, request).status, 1);
  EXPECT_EQ(run(render + " --as-served", request).out, "<a\nb");
}

TEST_F(TextCommands, TokenizeGivesTheGoldenIds) {
  const std::string tokenizer = " --tokenizer " + kGolden + "tiny-bpe/tokenizer.json";
  std::string texts, ids;
  std::vector<Json> records;
  for (Json& record : lines(slurp(kGolden + "tiny-bpe/cases.jsonl"))) {
    if (record.contains("bytes")) continue;
    texts += record["text"].dump() + "\n";
    ids += record["ids"].dump() + "\n";
    records.push_back(std::move(record));
  }
  const auto check = [&](const std::string& arguments, const char* key) {
    const Outcome got = run("tokenize --jsonl" + tokenizer + arguments, texts);
    EXPECT_EQ(got.status, 0) << got.err;
    const auto answers = lines(got.out);
    ASSERT_EQ(answers.size(), records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(answers[i]["ids"], records[i].contains(key) ? records[i][key] : records[i]["ids"]) << records[i];
      EXPECT_EQ(answers[i]["tokens"].size(), answers[i]["ids"].size());
    }
  };
  check("", "ids_special");
  check(" --no-special", "ids");
  check(" --no-special --plain", "ids_plain");
  for (const auto& [arguments, key] : {std::pair{"", "decoded"}, std::pair{" --no-special", "decoded_skip"}}) {
    const auto answers = lines(run("tokenize --ids --jsonl" + tokenizer + arguments, ids).out);
    ASSERT_EQ(answers.size(), records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(answers[i]["text"], records[i].contains(key) ? records[i][key] : records[i]["decoded"]) << records[i];
    }
  }
}

TEST_F(TextCommands, TokenizeShowsIdsPiecesAndBytes) {
  const std::string command = "tokenize --no-special --tokenizer " + kGolden + "tiny-bpe/tokenizer.json";
  const std::string text = "caf\u00e9 \U0001F600";
  const Json got = Json::parse(run(command + " --json", text).out);
  std::string bytes;
  for (const Json& token : got["bytes"]) {
    for (const Json& byte : token) bytes += static_cast<char>(byte.get<int>());
  }
  EXPECT_EQ(bytes, text);
  EXPECT_EQ(got["ids"].size(), got["tokens"].size());
  const std::string table = run(command, text).out;
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(table, '\n')), got["ids"].size());
  std::string spaced, listed;
  for (const Json& id : got["ids"]) spaced += id.dump() + "\n", listed += (listed.empty() ? "" : ", ") + id.dump();
  EXPECT_EQ(run(command + " --ids", spaced).out, text);
  EXPECT_EQ(run(command + " --ids", "[" + listed + "]").out, text);
  EXPECT_EQ(run(command + " --ids", listed).out, text);
  EXPECT_EQ(run(command + " --ids", "").out, "");
}

TEST_F(TextCommands, AnAnswerIsOneLineForEveryReader) {
  const std::string text = "a\u0085b\u2028c\u2029d\ne\vf";
  const Json request = {{"messages", Json::array({{{"role", "user"}, {"content", text}}})}};
  const std::string got = run("render --jsonl --chat-template '{{ messages[0].content }}'", request.dump()).out;
  for (const char* end : {"\u0085", "\u2028", "\u2029", "\v"}) EXPECT_EQ(got.find(end), std::string::npos);
  EXPECT_EQ(Json::parse(got)["text"], text);
}

TEST_F(TextCommands, TokenizeNamesWhatIsWrong) {
  const std::string command = "tokenize --tokenizer " + kGolden + "tiny-bpe/tokenizer.json";
  EXPECT_THAT(run(command + " --ids", "1 x 2").err, HasSubstr("\"x\" is no token id"));
  EXPECT_EQ(run(command + " --ids", "1 x 2").status, 1);
  EXPECT_EQ(run(command, "\xff").status, 1);
  EXPECT_EQ(run("tokenize", "a").status, 2);
  const Outcome missing = run("tokenize --tokenizer nothing.json", "a");
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("--tokenizer: nothing.json"));
  for (const char* content : {"# A heading", "{\"architectures\": [\"LlamaForCausalLM\"]}", ""}) {
    folder_.write("other", content);
    const Outcome other = run("tokenize --tokenizer other", "a");
    EXPECT_EQ(other.status, 1) << content;
    for (const char* kind :
         {"--tokenizer: other: ", "tokenizer.json", "tokenizer.model", "tiktoken", "tekken.json", "GGUF"}) {
      EXPECT_THAT(other.err, HasSubstr(kind)) << content;
    }
  }
  const auto answers = lines(run(command + " --jsonl", "1\n\n[-1]\n{\n\"a\"\n").out);
  ASSERT_EQ(answers.size(), 4U);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(answers[i].contains("error")) << answers[i];
  EXPECT_TRUE(answers[3].contains("ids"));
}

// Another program that asks line by line has its answer before it closes the pipe.
TEST_F(TextCommands, LinesAreAnsweredAsTheyCome) {
  const Outcome got =
      shell(fmt::format("mkfifo pipe && {{ {} tokenize --jsonl --tokenizer {}tiny-bpe/tokenizer.json "
                        "< pipe > out 2> err & exec 3> pipe; echo '\"a\"' >&3; "
                        "until [ -s out ]; do :; done; echo '\"b\"' >&3; exec 3>&-; wait; }}",
                        OCTET_PROGRAM, kGolden));
  EXPECT_EQ(lines(got.out).size(), 2U);
}

TEST_F(TextCommands, ManyLinesAndLongOnesPass) {
  std::string input;
  constexpr int kLines = 20'000;
  for (int i = 0; i < kLines; ++i) input += fmt::format("\"text {}\"\n", i);
  input += "\"" + std::string(1 << 20, ' ') + "\"";
  const auto got = run("tokenize --jsonl --tokenizer " + kGolden + "tiny-bpe/tokenizer.json", input);
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_EQ(std::ranges::count(got.out, '\n'), kLines + 1);
}

}  // namespace
}  // namespace octet
