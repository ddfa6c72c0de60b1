// What only a real model can show: SMP-02 (who shares a batch does not matter) and PFX-02 (a prefix from the cache
// gives what it gives when computed), through the whole server.
#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/test_server.h"
#include "tests/support/tiny_server.h"

namespace octet::server {
namespace {

using octet::testing::eventually;
using octet::testing::HttpClient;
using octet::testing::HttpReply;
using octet::testing::StepFaults;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;
using octet::testing::tiny_server;
using octet::testing::TinyServerSpec;

constexpr const char* kRoute = "/v1/completions";

// A server and the hand on its steps.
struct Rig {
  explicit Rig(TestServerOptions options = tiny_server()) : faults(options.faults), server(std::move(options)) {}
  std::shared_ptr<StepFaults> faults;
  TestServer server;

  Json ask(const std::string& body) {
    const HttpReply reply = server.post(kRoute, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json();
  }

  // All in one batch: no step ends before the last of them has come.
  std::vector<Json> ask_together(const std::vector<std::string>& bodies) {
    faults->hold();
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (const std::string& body : bodies) {
      clients.push_back(std::make_unique<HttpClient>(server.port()));
      clients.back()->post(kRoute, body);
    }
    EXPECT_TRUE(eventually([&] {
      const engine::EngineStats stats = server.engine().stats();
      return stats.running + stats.waiting == static_cast<std::int32_t>(bodies.size());
    }));
    faults->let_go();
    std::vector<Json> answers;
    for (const auto& client : clients) {
      const HttpReply reply = client->read();
      EXPECT_EQ(reply.status, 200) << reply.body;
      answers.push_back(reply.json());
    }
    return answers;
  }
};

// What was said: the ids and, where they were asked for, the log-probabilities.
Json said(const Json& answer) {
  const Json& choice = answer.at("choices").at(0);
  return {choice.at("token_ids"), choice.at("logprobs"), choice.value("prompt_logprobs", Json())};
}

std::int32_t cached(const Json& answer) {
  return answer.at("usage").at("prompt_tokens_details").at("cached_tokens").get<std::int32_t>();
}

// ---- SMP-02

std::string the_the(const std::string& sampling) {
  return fmt::format(
      R"({{"prompt":"the the the the","max_tokens":24,"ignore_eos":true,"return_token_ids":true,"logprobs":2,{}}})",
      sampling);
}

const std::string kGreedy = the_the(R"("temperature":0)");
const std::string kFrequency = the_the(R"("temperature":0,"frequency_penalty":2)");
const std::string kRepetition = the_the(R"("temperature":0,"repetition_penalty":1.8)");
const std::string kTinyTemperature = the_the(R"("temperature":1e-4)");
const std::string kTopOne = the_the(R"("temperature":1,"top_k":1)");

TEST(Smp02, GreedyAlone) {
  Rig rig;
  const Json greedy = said(rig.ask(kGreedy));
  ASSERT_EQ(greedy[0].size(), 24U);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(said(rig.ask(kGreedy)), greedy);  // (a)
  for (const std::string& penalized : {kFrequency, kRepetition}) {        // (b), (c)
    const Json answer = said(rig.ask(penalized));
    EXPECT_NE(answer[0], greedy[0]) << "penalties come before the choice of the likeliest";
    EXPECT_EQ(said(rig.ask(penalized)), answer);
  }
  EXPECT_EQ(said(rig.ask(kTinyTemperature)), greedy);  // (d)
  EXPECT_EQ(said(rig.ask(kTopOne)), greedy);           // (e)
  EXPECT_TRUE(rig.server.comes_to_rest());
}

// (f)
TEST(Smp02, EachInAMixedBatchEqualsItsSoloRun) {
  Rig rig;
  std::vector<std::string> bodies(5, kGreedy);
  bodies.insert(bodies.end(), {kFrequency, kRepetition, kTinyTemperature, kTopOne});
  for (int i = 0; i < 8; ++i) bodies.push_back(the_the(fmt::format(R"("temperature":1.5,"seed":{})", i)));
  std::vector<Json> solo;
  for (const std::string& body : bodies) solo.push_back(said(rig.ask(body)));
  EXPECT_NE(solo[9], solo[10]);
  const std::uint64_t before = rig.server.engine().stats().steps;
  const std::vector<Json> together = rig.ask_together(bodies);
  for (std::size_t i = 0; i < bodies.size(); ++i) EXPECT_EQ(said(together[i]), solo[i]) << bodies[i];
  ASSERT_TRUE(rig.server.comes_to_rest());
  // 17 times 24 tokens: they did share their steps.
  EXPECT_LT(rig.server.engine().stats().steps - before, 24U + 17U);
}

// (g)
TEST(Smp02, APenaltyDoesNotReachTheNeighbour) {
  Rig rig;
  const Json plain = said(rig.ask(kGreedy));
  for (const std::string& penalized : {kFrequency, kRepetition, the_the(R"("temperature":0,"presence_penalty":2)")}) {
    const Json alone = said(rig.ask(penalized));
    const std::vector<Json> pair = rig.ask_together({penalized, kGreedy});
    EXPECT_EQ(said(pair[0]), alone);
    EXPECT_EQ(said(pair[1]), plain);
    const std::vector<Json> other_way_round = rig.ask_together({kGreedy, penalized});
    EXPECT_EQ(said(other_way_round[0]), plain);
    EXPECT_EQ(said(other_way_round[1]), alone);
  }
  EXPECT_TRUE(rig.server.comes_to_rest());
}

// ---- SMP-03, SMP-04

TEST(Smp03, TheNarrowestFiltersAreGreedyAndTheWidestAreNone) {
  Rig rig;
  const Json greedy = said(rig.ask(kGreedy));
  for (const char* narrow : {R"("temperature":1,"top_p":1e-9,"min_p":1,"top_k":1)", R"("temperature":2,"top_p":1e-9)",
                             R"("temperature":2,"min_p":1)", R"("temperature":2,"top_k":1)", R"("temperature":1e-9)"}) {
    EXPECT_EQ(said(rig.ask(the_the(narrow))), greedy) << narrow;
  }
  const Json free = said(rig.ask(the_the(R"("temperature":1.5,"seed":3)")));
  EXPECT_NE(free, greedy);
  for (const char* wide : {R"("top_k":-1)", R"("top_k":0)", R"("top_k":1000000000)", R"("top_p":1)", R"("min_p":0)"}) {
    EXPECT_EQ(said(rig.ask(the_the(fmt::format(R"("temperature":1.5,"seed":3,{})", wide)))), free) << wide;
  }
  EXPECT_TRUE(rig.server.comes_to_rest());
}

TEST(Smp04, BiasForbidsAndForcesTokens) {
  Rig rig;
  const Json greedy = said(rig.ask(kGreedy))[0];
  const int first = greedy[0], other = (first + 1) % 256;
  const auto biased = [&](int id, int bias) {
    return the_the(fmt::format(R"("temperature":0,"logit_bias":{{"{}":{}}})", id, bias));
  };
  for (const std::string& body : {biased(first, -100), biased(first, -1000)}) {
    for (const Json& id : said(rig.ask(body))[0]) EXPECT_NE(id, first);
  }
  for (const Json& id : said(rig.ask(biased(other, 100)))[0]) EXPECT_EQ(id, other);
  // What a client gets wrong reaches neither the engine nor a neighbour.
  const std::uint64_t before = rig.server.engine().stats().steps;
  for (const char* wrong : {R"("logit_bias":{"99999999":5})", R"("logit_bias":{"257":5})", R"("stop_token_ids":[257])",
                            R"("allowed_token_ids":[257])", R"("logit_bias":{"5":"x"})"}) {
    EXPECT_EQ(rig.server.post(kRoute, the_the(wrong)).status, 400) << wrong;
  }
  EXPECT_EQ(rig.server.engine().stats().steps, before);
  EXPECT_EQ(said(rig.ask(kGreedy))[0], greedy);
}

// ---- API-04 (a), (b)

TEST(Api04, LogprobsOfThePromptAloneAreThoseBeforeAnAnswer) {
  Rig rig;
  const auto echo = [](int tokens, const char* more = "") {
    return fmt::format(
        R"({{"prompt":"Tea or coffee","echo":true,"max_tokens":{},"logprobs":2,"temperature":0,"return_token_ids":true{}}})",
        tokens, more);
  };
  const Json alone = rig.ask(echo(0)), with_one = rig.ask(echo(1));
  EXPECT_EQ(alone["choices"][0]["text"], "Tea or coffee");
  EXPECT_EQ(alone["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(alone["usage"]["completion_tokens"], 0);
  for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    const Json &prompt = alone["choices"][0]["logprobs"][list], &both = with_one["choices"][0]["logprobs"][list];
    ASSERT_EQ(prompt.size(), 13U) << list;
    ASSERT_EQ(both.size(), 14U) << list;
    for (std::size_t i = 0; i < prompt.size(); ++i) EXPECT_EQ(prompt[i], both[i]) << list << " " << i;
  }
  EXPECT_TRUE(alone["choices"][0]["logprobs"]["token_logprobs"][0].is_null());
  HttpClient client(rig.server.port());
  client.post(kRoute, echo(0, R"(,"stream":true)"));
  EXPECT_EQ(client.read_head().status, 200);
  const Json streamed = Json::parse(client.next_event().value_or(""), nullptr, false);
  EXPECT_EQ(streamed["choices"][0]["text"], "Tea or coffee");
  EXPECT_EQ(streamed["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(streamed["choices"][0]["logprobs"], alone["choices"][0]["logprobs"]);
  EXPECT_EQ(client.next_event(), "[DONE]");
}

// ---- STR-01, STR-06

TEST(Str01, ABiasOnTheEndEndsAtOnce) {
  Rig rig;
  HttpClient client(rig.server.port());
  client.post("/v1/chat/completions",
              R"({"messages":[{"role":"user","content":"hi"}],"stream":true,"logit_bias":{"256":100}})");
  EXPECT_EQ(client.read_head().status, 200);
  std::vector<Json> events;
  std::string last;
  while (const auto event = client.next_event()) {
    last = *event;
    if (last != "[DONE]") events.push_back(Json::parse(last, nullptr, false)["choices"][0]);
  }
  EXPECT_EQ(last, "[DONE]");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0]["delta"]["role"], "assistant");
  EXPECT_EQ(events[1]["delta"]["content"], "");
  EXPECT_EQ(events[1]["finish_reason"], "stop");
}

void expect_sound(const Json& entries) {
  for (const Json& entry : entries) {
    ASSERT_TRUE(entry["logprob"].is_number()) << entry;
    EXPECT_LE(entry["logprob"], 0.0);
    EXPECT_LE(entry["top_logprobs"].size(), 3U);
    double before = 0;
    for (const Json& top : entry["top_logprobs"]) {
      ASSERT_TRUE(top["logprob"].is_number()) << entry;
      EXPECT_LE(top["logprob"].get<double>(), before);
      before = top["logprob"];
    }
  }
}

TEST(Str06, LogprobsAreSoundAndTheSameStreamed) {
  Rig rig;
  for (const char* sampling :
       {R"("temperature":0)", R"("temperature":1,"seed":5,"top_k":1)", R"("temperature":2,"seed":5)",
        R"("temperature":0,"stop":["e","a","\n"],"min_tokens":3)"}) {
    const std::string fields = fmt::format(
        R"("messages":[{{"role":"user","content":"hi"}}],"max_tokens":30,"logprobs":true,"top_logprobs":3,{})",
        sampling);
    const Json whole = rig.server.post("/v1/chat/completions", "{" + fields + "}").json()["choices"][0];
    expect_sound(whole["logprobs"]["content"]);
    HttpClient client(rig.server.port());
    client.post("/v1/chat/completions", "{" + fields + R"(,"stream":true})");
    client.read_head();
    Json entries = Json::array();
    std::string text;
    while (const auto event = client.next_event()) {
      if (*event == "[DONE]") break;
      const Json choice = Json::parse(*event, nullptr, false)["choices"][0];
      text += choice["delta"].value("content", "");
      if (choice["logprobs"].is_null()) continue;
      for (const Json& entry : choice["logprobs"]["content"]) entries.push_back(entry);
    }
    EXPECT_EQ(entries, whole["logprobs"]["content"]) << sampling;
    EXPECT_EQ(Json(text), whole["message"]["content"]) << sampling;
  }
  const auto content = [&](const char* sampling) {
    return rig.server
        .post("/v1/chat/completions",
              fmt::format(R"({{"messages":[{{"role":"user","content":"hi"}}],"max_tokens":30,"logprobs":true,{}}})",
                          sampling))
        .json()["choices"][0]["logprobs"];
  };
  // Raw: neither temperature nor filters change them.
  EXPECT_EQ(content(R"("temperature":1,"seed":5,"top_k":1)"), content(R"("temperature":0)"));
}

// ---- PFX-02: a second server computes every prompt afresh. With keys and values as the model computes them, and in
// FP8.

using Ids = std::vector<std::int32_t>;

class Pfx02 : public ::testing::TestWithParam<std::optional<DType>> {
 protected:
  static TinyServerSpec spec() { return {.cache_dtype = GetParam()}; }
  static TestServerOptions without_cache() {
    TestServerOptions options = tiny_server(spec());
    options.prefix_caching = false;
    return options;
  }
  Ids ids(std::size_t count) {
    Ids out(count);
    for (std::int32_t& id : out) id = static_cast<std::int32_t>(random_() % 256);
    return out;
  }
  static std::string body(const Ids& prompt, const std::string& more = R"("temperature":0)", int tokens = 20) {
    return fmt::format(R"({{"prompt":[{}],"max_tokens":{},"ignore_eos":true,"return_token_ids":true,"logprobs":3,{}}})",
                       fmt::join(prompt, ","), tokens, more);
  }
  Json expected(const std::string& request) {
    const Json answer = reference_.ask(request);
    EXPECT_EQ(cached(answer), 0);
    return said(answer);
  }

  std::mt19937 random_{2};
  Rig reference_{without_cache()};
};

TEST_P(Pfx02, TwiceTheSameAtBlockBorders) {
  Rig rig(tiny_server(spec()));
  for (const std::size_t length : {15, 16, 17, 31, 32, 33, 64, 65}) {
    const std::string request = body(ids(length));
    const Json wanted = expected(request), miss = rig.ask(request), hit = rig.ask(request);
    EXPECT_EQ(said(miss), wanted) << length;
    EXPECT_EQ(said(hit), wanted) << length;
    EXPECT_EQ(cached(miss), 0) << length;
    // Whole blocks, and at least one token is left to compute.
    EXPECT_EQ(cached(hit), static_cast<std::int32_t>((length - 1) / 16 * 16)) << length;
    EXPECT_EQ(hit["usage"]["prompt_tokens"], length);
  }
  EXPECT_TRUE(rig.server.comes_to_rest());
}

TEST_P(Pfx02, PromptsThatBeginAlike) {
  Rig rig(tiny_server(spec()));
  const Ids first = ids(65);
  rig.ask(body(first));
  for (const std::size_t shared : {16, 17, 31}) {
    Ids prompt = ids(40);
    std::copy(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(shared), prompt.begin());
    prompt[shared] = (first[shared] + 1) % 256;
    const std::string request = body(prompt);
    const Json answer = rig.ask(request);
    EXPECT_EQ(cached(answer), 16) << shared;
    EXPECT_EQ(said(answer), expected(request)) << shared;
    EXPECT_EQ(said(rig.ask(body(first))), expected(body(first))) << "the first prompt's blocks were written to";
  }
  EXPECT_TRUE(rig.server.comes_to_rest());
}

// The second prompt of a chat holds the first answer, whose blocks are in the cache, too.
TEST_P(Pfx02, TwoTurnsOfAChat) {
  Rig rig(tiny_server(spec()));
  std::string letters;
  for (char c = 'a'; c <= 'z'; ++c) letters += fmt::format("{}{}", c == 'a' ? "" : ",", static_cast<int>(c));
  const auto chat = [&](Rig& server, const Json& messages) {
    Json request;
    request["messages"] = messages;
    const std::string text = dump_json(request);
    const HttpReply reply = server.server.post(
        "/v1/chat/completions",
        text.substr(0, text.size() - 1) +
            R"(,"temperature":0,"max_tokens":50,"logprobs":true,"top_logprobs":2,"allowed_token_ids":[)" + letters +
            "]}");
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json();
  };
  Json messages = {{{"role", "user"}, {"content", "Name a colour, and a fruit that has it."}}};
  const Json first = chat(rig, messages);
  EXPECT_EQ(first["choices"], chat(reference_, messages)["choices"]);
  messages.push_back({{"role", "assistant"}, {"content", first["choices"][0]["message"]["content"]}});
  messages.push_back({{"role", "user"}, {"content", "Another one."}});
  const Json second = chat(rig, messages);
  EXPECT_EQ(second["choices"], chat(reference_, messages)["choices"]);
  const int prompt = first["usage"]["prompt_tokens"], whole = first["usage"]["total_tokens"];
  EXPECT_GT(cached(second), prompt);
  EXPECT_EQ(cached(second), (whole - 1) / 16 * 16);  // the last token of an answer is not computed any more
  EXPECT_TRUE(rig.server.comes_to_rest());
}

// Their common blocks fill while both run: those that are not full yet must not be shared.
TEST_P(Pfx02, EqualPromptsAtTheSameMoment) {
  Rig rig(tiny_server(spec()));
  for (const std::size_t length : {5, 16, 20, 40}) {
    const Ids prompt = ids(length);
    std::vector<std::string> bodies(2, body(prompt, R"("temperature":0)", 40));
    for (int seed = 0; seed < 4; ++seed) {
      bodies.push_back(body(prompt, fmt::format(R"("temperature":1.3,"seed":{})", seed), 40));
    }
    const std::vector<Json> answers = rig.ask_together(bodies);
    for (std::size_t i = 0; i < bodies.size(); ++i) EXPECT_EQ(said(answers[i]), expected(bodies[i])) << length;
  }
  EXPECT_TRUE(rig.server.comes_to_rest());
}

TEST_P(Pfx02, UnderEvictionPressure) {
  TinyServerSpec tight = spec();
  tight.slots = 6;
  tight.context = 256;
  tight.blocks = 20;  // five of the prompts, without their answers
  Rig rig(tiny_server(tight));
  std::vector<std::string> bodies;
  std::vector<Json> wanted;
  const Ids start = ids(33);
  for (int i = 0; i < 10; ++i) {
    Ids prompt = start;
    const Ids rest = ids(10 + static_cast<std::size_t>(i) * 3);
    prompt.insert(prompt.end(), rest.begin(), rest.end());
    bodies.push_back(body(prompt, i % 2 == 0 ? R"("temperature":0)" : R"("temperature":1,"seed":7)", 40));
    wanted.push_back(expected(bodies.back()));
  }
  int hits = 0;
  for (int round = 0; round < 12; ++round) {
    std::vector<std::string> batch;
    std::vector<std::size_t> picked;
    for (int i = 0; i < 6; ++i) {
      picked.push_back(random_() % bodies.size());
      batch.push_back(bodies[picked.back()]);
    }
    const std::vector<Json> answers = rig.ask_together(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      EXPECT_EQ(said(answers[i]), wanted[picked[i]]) << batch[i];
      EXPECT_EQ(cached(answers[i]) % 16, 0);
      hits += cached(answers[i]) > 0;
    }
  }
  EXPECT_GT(hits, 0);
  EXPECT_GT(rig.server.engine().stats().preemptions, 0U);
  EXPECT_TRUE(rig.server.comes_to_rest());
}

TEST_P(Pfx02, LogprobsOfThePromptAreCompleteOnAHit) {
  Rig rig(tiny_server(spec()));
  for (const std::size_t length : {16, 33, 65}) {
    const Ids prompt = ids(length);
    const std::string plain = body(prompt), scored = body(prompt, R"("temperature":0,"prompt_logprobs":2)");
    const Json wanted = expected(scored);
    rig.ask(plain);
    EXPECT_EQ(cached(rig.ask(plain)), static_cast<std::int32_t>((length - 1) / 16 * 16));
    const Json answer = rig.ask(scored);
    EXPECT_EQ(said(answer), wanted);
    const Json& entries = answer["choices"][0]["prompt_logprobs"];
    ASSERT_EQ(entries.size(), length);
    EXPECT_TRUE(entries[0].is_null());
    for (std::size_t i = 1; i < length; ++i) EXPECT_TRUE(entries[i].contains(std::to_string(prompt[i]))) << i;
    EXPECT_EQ(said(rig.ask(plain)), expected(plain));
  }
  EXPECT_TRUE(rig.server.comes_to_rest());
}

INSTANTIATE_TEST_SUITE_P(Caches, Pfx02, ::testing::Values(std::nullopt, DType::kF8E4M3),
                         [](const ::testing::TestParamInfo<std::optional<DType>>& info) {
                           return info.param ? std::string(dtype_info(*info.param).name) : "AsComputed";
                         });

// Else the tests above would say nothing of an FP8 cache.
TEST(Pfx02Types, AnswerEachInItsOwnWay) {
  Rig wide, narrow(tiny_server({.cache_dtype = DType::kF8E4M3}));
  const std::string request =
      R"({"prompt":"blocks of sixteen tokens each","max_tokens":4,"logprobs":3,"temperature":0})";
  EXPECT_NE(said(wide.ask(request)), said(narrow.ask(request)));
}

}  // namespace
}  // namespace octet::server
