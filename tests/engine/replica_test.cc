// A replica from a folder, as the server makes it.
#include "octet/engine/replica.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/support/byte_tokenizer.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_model.h"

namespace octet::engine {
namespace {

using testing::TempFolder;

ReplicaOptions options_for(const TempFolder& folder) {
  ReplicaOptions options;
  options.model = folder.path();
  options.threads = 1;
  options.kv_cache_bytes = std::int64_t{4} << 20;
  return options;
}

Output answer(Engine& engine, Request request) {
  auto done = std::make_shared<std::promise<Output>>();
  auto all = std::make_shared<Output>();
  request.sink = [done, all](Output&& output) {
    all->tokens.insert(all->tokens.end(), output.tokens.begin(), output.tokens.end());
    all->text += output.text;
    all->finish = output.finish;
    if (output.finish != FinishReason::kNone) done->set_value(*all);
  };
  const Result<RequestId> id = engine.submit(std::move(request));
  EXPECT_TRUE(id.has_value()) << id.error().message;
  return done->get_future().get();
}

TEST(Replica, ServesTokenIdsWithoutATokenizer) {
  const TempFolder folder;
  testing::make_tiny_model({.max_positions = 512}).write(folder.path());
  ReplicaOptions options = options_for(folder);
  options.skip_tokenizer = true;
  std::int64_t done = 0, total = 0;
  options.progress = [&](std::string_view phase, std::int64_t now, std::int64_t of) {
    EXPECT_EQ(phase, "weights");
    EXPECT_GE(now, done);
    done = now;
    total = of;
  };
  auto replica = load_replica(options);
  ASSERT_TRUE(replica.has_value()) << replica.error().message;
  EXPECT_GT(total, 0);
  EXPECT_EQ(done, total);
  EXPECT_EQ((*replica)->max_model_len, 512);
  EXPECT_EQ((*replica)->tokenizer, nullptr);
  EXPECT_GT((*replica)->weight_bytes, 0);
  EXPECT_LE((*replica)->kv_bytes, 4 << 20);
  EXPECT_EQ((*replica)->kv_tokens % 16, 0);
  EXPECT_NE((*replica)->backend.find("1 thread"), std::string::npos);
  const EngineConfig& config = (*replica)->engine->config();
  EXPECT_EQ(config.vocabulary_size, 320);
  EXPECT_GE(config.scheduler.max_step_rows, 64);
  EXPECT_EQ(config.scheduler.eos_tokens, std::vector<TokenId>{2});

  Request request;
  request.prompt = {5, 6, 7};
  request.sampling.temperature = 0;
  request.sampling.max_tokens = 8;
  request.sampling.ignore_eos = true;
  const Output first = answer(*(*replica)->engine, request);
  EXPECT_EQ(first.tokens.size(), 8u);
  EXPECT_EQ(first.finish, FinishReason::kLength);
  EXPECT_EQ(first.text, "");
  EXPECT_EQ(answer(*(*replica)->engine, request).tokens, first.tokens);
}

TEST(Replica, SpeaksThroughItsTokenizer) {
  const TempFolder folder;
  testing::make_tiny_model({.vocabulary = 320, .max_positions = 256}).write(folder.path());
  folder.write("tokenizer.json", testing::byte_tokenizer_json());
  ReplicaOptions options = options_for(folder);
  options.max_num_batched_tokens = 32;
  auto replica = load_replica(options);
  ASSERT_TRUE(replica.has_value()) << replica.error().message;
  ASSERT_NE((*replica)->tokenizer, nullptr);
  // Ids between the tokenizer's end and the embedding's are nobody's.
  EXPECT_EQ((*replica)->engine->config().vocabulary_size, testing::kByteVocabulary);
  EXPECT_EQ((*replica)->engine->config().scheduler.max_step_rows, 32);
  EXPECT_EQ((*replica)->engine->config().scheduler.max_sequences, 32);
  Request request;
  request.prompt = {'h', 'i'};
  request.sampling.max_tokens = 20;
  request.sampling.ignore_eos = true;
  const Output output = answer(*(*replica)->engine, request);
  EXPECT_EQ(output.text, (*replica)->tokenizer->decode(output.tokens));
}

TEST(Replica, TellsWhatItsTokenizerIs) {
  const TempFolder folder;
  testing::make_tiny_model({.vocabulary = 320, .max_positions = 256}).write(folder.path());
  folder.write("tokenizer.json", testing::byte_tokenizer_json());
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class": "GPT2Tokenizer", "vocab_file": "vocab.json", "bos_token": "<s>",)"
               R"( "model_max_length": 77, "chat_template": "own"})");
  ReplicaOptions options = options_for(folder);
  options.max_num_batched_tokens = 32;
  auto replica = load_replica(options);
  ASSERT_TRUE(replica.has_value()) << replica.error().message;
  EXPECT_EQ((*replica)->tokenizer_info, (Json{{"tokenizer_class", "GPT2Tokenizer"},
                                              {"bos_token", "<s>"},
                                              {"model_max_length", 77},
                                              {"chat_template", "own"}}));
  const TempFolder other;
  options.tokenizer = other.write("tokenizer.json", testing::byte_tokenizer_json());
  options.chat_template = "theirs";
  replica = load_replica(options);
  ASSERT_TRUE(replica.has_value()) << replica.error().message;
  EXPECT_EQ((*replica)->tokenizer_info,
            (Json{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"chat_template", "theirs"}}));
}

TEST(Replica, SpeaksThroughASentencePieceModel) {
  const TempFolder folder;
  testing::make_tiny_model({.vocabulary = 800, .max_positions = 256}).write(folder.path());
  std::filesystem::copy(std::string(OCTET_TEST_DATA) + "/text/tiny-sp-bpe/tokenizer.model", folder.path());
  auto replica = load_replica(options_for(folder));
  ASSERT_TRUE(replica.has_value()) << replica.error().message;
  EXPECT_EQ((*replica)->tokenizer->encode("Hello").value().front(), 1);
  EXPECT_EQ((*replica)->engine->config().vocabulary_size, 800);
}

TEST(Replica, ShortensTheContextToThePoolUnlessItWasAskedFor) {
  const TempFolder folder;
  testing::make_tiny_model({.max_positions = 100000}).write(folder.path());
  ReplicaOptions options = options_for(folder);
  options.skip_tokenizer = true;
  options.kv_cache_bytes = 256 << 10;
  auto replica = load_replica(options);
  ASSERT_TRUE(replica.has_value()) << replica.error().message;
  EXPECT_EQ((*replica)->max_model_len, (*replica)->kv_tokens);
  EXPECT_LT((*replica)->max_model_len, 100000);
  EXPECT_EQ((*replica)->kv_bytes, 256 << 10);
  options.max_model_len = 50000;
  EXPECT_EQ(load_replica(options).error().code, ErrorCode::kExhausted);
  options.max_model_len = 100001;
  EXPECT_EQ(load_replica(options).error().code, ErrorCode::kInvalid);
}

TEST(Replica, NamesWhatIsWrong) {
  const TempFolder folder;
  testing::make_tiny_model({.max_positions = 256}).write(folder.path());
  const auto message_of = [&](auto change) {
    ReplicaOptions options = options_for(folder);
    change(options);
    auto replica = load_replica(options);
    EXPECT_FALSE(replica.has_value());
    return replica ? std::string() : replica.error().message;
  };
  const auto expect = [&](const char* part, auto change) {
    const std::string message = message_of(change);
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  };
  expect("--skip-tokenizer-init", [](ReplicaOptions&) {});
  expect("no/such/model", [](ReplicaOptions& o) { o.model = "no/such/model"; });
  expect("nowhere.json", [](ReplicaOptions& o) { o.tokenizer = "nowhere.json"; });
  expect("--dtype int3", [](ReplicaOptions& o) { o.dtype = "int3", o.skip_tokenizer = true; });
  expect("--max-num-seqs 0", [](ReplicaOptions& o) { o.max_num_seqs = 0; });
  expect("--gpu-memory-utilization 1", [](ReplicaOptions& o) { o.memory_share = 1.0; });
}

}  // namespace
}  // namespace octet::engine
