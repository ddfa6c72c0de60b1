// `octet pull ORG/NAME` and `octet serve ORG/NAME` against a hub on loopback that has faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/support/hub_server.h"
#include "tests/support/interactive_child.h"

namespace fs = std::filesystem;

namespace octet::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int kInterrupted = 128 + SIGINT;
constexpr std::size_t kWeightBytes = 200'000;

std::string noise(std::size_t size, unsigned seed = 1) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    seed = seed * 1664525u + 1013904223u;
    byte = static_cast<char>(seed >> 24);
  }
  return bytes;
}

std::string slurp(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string last_line(std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

class Hub : public ::testing::Test {
 protected:
  void SetUp() override {
    hub_.add("org/name", "config.json", "{\"a\": 1}");
    hub_.add("org/name", "tokenizer.json", noise(3000, 7));
    hub_.add("org/name", "model.safetensors", weights_);
    hub_.add("org/name", "pytorch_model.bin", "pickled");
    hub_.add("org/name", "consolidated.safetensors", "the same once more");
    hub_.add("org/name", "original/params.json", "{}");
    hub_.add("org/name", "README.md", "read me");
  }

  ChildSetup setup(std::vector<std::string> arguments, std::map<std::string, std::string> more = {}) const {
    auto environment = hub_.environment(home_.path());
    for (auto& [name, value] : more) environment[name] = value;
    arguments.insert(arguments.begin(), {OCTET_PROGRAM, "pull"});
    return {.command = std::move(arguments), .environment = std::move(environment)};
  }
  ChildResult pull(std::vector<std::string> arguments, std::map<std::string, std::string> more = {}) const {
    return run_to_end(setup(std::move(arguments), std::move(more)));
  }
  // Paths in a snapshot, once the pull worked.
  static std::set<std::string> files(const ChildResult& result) {
    EXPECT_EQ(result.status, 0) << result.err;
    std::set<std::string> names;
    const fs::path root = last_line(result.out);
    if (result.status != 0) return names;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (entry.is_regular_file()) names.insert(entry.path().lexically_relative(root));
    }
    return names;
  }
  fs::path repository() const { return home_.path() / "hub" / "models--org--name"; }
  std::vector<fs::path> incomplete() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(repository() / "blobs")) {
      if (entry.path().extension() == ".incomplete") found.push_back(entry.path());
    }
    return found;
  }
  void expect_whole(const ChildResult& result) const {
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(slurp(fs::path(last_line(result.out)) / "model.safetensors"), weights_);
    EXPECT_THAT(incomplete(), IsEmpty());
  }

  const std::string weights_ = noise(kWeightBytes);
  HubServer hub_;
  TempFolder home_;
};

TEST_F(Hub, FillsTheCacheAsOtherProgramsDo) {
  const ChildResult result = pull({"org/name"});
  EXPECT_THAT(files(result), ElementsAre("config.json", "model.safetensors", "tokenizer.json"));
  const std::string commit = slurp(repository() / "refs" / "main");
  EXPECT_THAT(commit, SizeIs(40));
  const fs::path snapshot = repository() / "snapshots" / commit;
  EXPECT_EQ(last_line(result.out), snapshot.string());
  EXPECT_THAT(fs::read_symlink(snapshot / "model.safetensors").string(), StartsWith("../../blobs/"));
  // Of Git for small files, `printf '{"a": 1}' | git hash-object --stdin`; SHA-256 for large ones.
  EXPECT_EQ(fs::read_symlink(snapshot / "config.json").filename(), "4a036f56bb619924ec4189bd84ed716c766971ae");
  EXPECT_THAT(fs::read_symlink(snapshot / "tokenizer.json").filename().string(), SizeIs(64));
  expect_whole(result);
}

TEST_F(Hub, SecondPullFetchesNothing) {
  EXPECT_EQ(pull({"org/name"}).status, 0);
  const std::size_t before = hub_.requests("/resolve/").size();
  expect_whole(pull({"org/name"}));
  EXPECT_THAT(hub_.requests("/resolve/"), SizeIs(before));
}

TEST_F(Hub, NewRevisionSharesWhatStayedTheSame) {
  const std::string old = last_line(pull({"org/name"}).out);
  hub_.add("org/name", "config.json", "{\"a\": 2}");
  const std::size_t before = hub_.requests("/resolve/").size();
  const ChildResult result = pull({"org/name"});
  EXPECT_NE(last_line(result.out), old);
  EXPECT_EQ(slurp(last_line(result.out) + "/config.json"), "{\"a\": 2}");
  expect_whole(result);
  EXPECT_THAT(hub_.requests("/resolve/"), SizeIs(before + 1));
}

TEST_F(Hub, PatternsChoose) {
  EXPECT_THAT(files(pull({"org/name", "--include", "*"})), SizeIs(7));
  EXPECT_THAT(files(pull({"org/name", "--include", "*.json", "--exclude", "original/"})), Not(IsEmpty()));
  TempFolder other;
  EXPECT_THAT(files(pull({"org/name", "--include", "*.json", "*.md", "--exclude", "original/*"},
                         {{"HF_HUB_CACHE", other.path()}})),
              ElementsAre("README.md", "config.json", "tokenizer.json"));
}

TEST_F(Hub, RevisionsAreBranchesAndCommits) {
  EXPECT_EQ(pull({"org/name", "--revision", "refs/pr/1"}).status, 0);
  const std::string commit = slurp(repository() / "refs" / "refs" / "pr" / "1");
  EXPECT_EQ(files(pull({"org/name", "--revision", commit})).size(), 3U);
  const ChildResult wrong = pull({"org/name", "--revision", "v9"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("no revision 'v9'"), HasSubstr("/org/name")));
}

TEST_F(Hub, LargeFilesComeInRanges) {
  expect_whole(pull({"org/name", "--range-size", "65536", "--connections", "4"}));
  std::set<std::string> ranges;
  for (const std::string& line : hub_.requests("elsewhere /cdn/org/name/model.safetensors")) {
    ranges.insert(line.substr(line.find("bytes=")));
  }
  EXPECT_THAT(ranges,
              ElementsAre("bytes=0-65535 -", "bytes=131072-196607 -", "bytes=196608-199999 -", "bytes=65536-131071 -"));
}

TEST_F(Hub, CutConnectionsGoOnWhereTheyWere) {
  hub_.set_faults(R"([{"match": "elsewhere/cdn/org/name/model", "times": 3, "cut": 50000}])");
  expect_whole(pull({"org/name"}));
  const auto requests = hub_.requests("elsewhere /cdn/org/name/model");
  ASSERT_THAT(requests, SizeIs(4));
  EXPECT_THAT(requests[3], HasSubstr("bytes=150000-199999"));
}

TEST_F(Hub, SilentConnectionsAreDropped) {
  hub_.set_faults(R"([{"match": "elsewhere/cdn/org/name/model", "times": 1, "stall": 50000}])");
  expect_whole(pull({"org/name"}, {{"HF_HUB_DOWNLOAD_TIMEOUT", "1"}}));
  EXPECT_THAT(hub_.requests("elsewhere /cdn/org/name/model").back(), HasSubstr("bytes=50000-199999"));
}

TEST_F(Hub, BusyHubsAreAskedAgain) {
  hub_.set_faults(R"([{"match": "hub/api/models", "times": 1, "status": 503},
                      {"match": "hub/api/models", "times": 1, "status": 429, "rate_limit": 1},
                      {"match": "config.json", "times": 1, "status": 429, "retry_after": 1},
                      {"match": "elsewhere/cdn/org/name/model", "times": 1, "status": 500}])");
  expect_whole(pull({"org/name"}));
  EXPECT_THAT(hub_.requests("config.json"), SizeIs(2));
}

TEST_F(Hub, WaitsAreAsLongAsTheHubAsks) {
  hub_.set_faults(R"([{"match": "hub/api/models", "status": 429, "rate_limit": 3600}])");
  InteractiveChild child(setup({"org/name"}));
  ASSERT_TRUE(child.says("status 429; again in 600.0 s")) << child.errors();
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(), 128 + SIGTERM);
}

TEST_F(Hub, LapsedAddressesAreAskedForAnew) {
  hub_.set_faults(R"([{"match": "elsewhere/cdn/org/name/model", "times": 1, "status": 403}])");
  expect_whole(pull({"org/name"}));
  EXPECT_THAT(hub_.requests("hub /org/name/resolve/"), SizeIs(4));
}

TEST_F(Hub, ServersWithoutRangesServeToo) {
  hub_.set_faults(R"([{"match": "elsewhere/cdn/org/name/model", "no_range": true}])");
  expect_whole(pull({"org/name", "--range-size", "65536"}));
}

TEST_F(Hub, WrongBytesAreFetchedAgainAndNeverKept) {
  hub_.set_faults(R"([{"match": "elsewhere/cdn/org/name/model", "times": 1, "corrupt": true}])");
  const ChildResult once = pull({"org/name"});
  EXPECT_THAT(once.err, HasSubstr("model.safetensors: its checksum is wrong"));
  expect_whole(once);

  fs::remove_all(repository());
  hub_.set_faults(R"([{"match": "none"}, {"match": "config.json", "corrupt": true}])");
  const ChildResult always = pull({"org/name"});
  EXPECT_EQ(always.status, 1);
  EXPECT_THAT(always.err, AllOf(HasSubstr("config.json"), HasSubstr("SHA-1")));
  EXPECT_FALSE(fs::exists(repository() / "refs" / "main"));
  EXPECT_THAT(last_line(always.out), IsEmpty());
}

TEST_F(Hub, TokenGoesToTheHubAlone) {
  expect_whole(pull({"org/name"}, {{"HF_TOKEN", "secret"}}));
  for (const std::string& line : hub_.requests("hub ")) EXPECT_THAT(line, HasSubstr(" secret"));
  EXPECT_THAT(hub_.requests("elsewhere "), Not(IsEmpty()));
  for (const std::string& line : hub_.requests("elsewhere ")) EXPECT_THAT(line, Not(HasSubstr("secret")));
}

TEST_F(Hub, TokenFileIsRead) {
  home_.write("token", "secret\n");
  hub_.set_rules(R"({"gated": ["org/name"]})");
  expect_whole(pull({"org/name"}));
}

TEST_F(Hub, GatedSaysWhatToDo) {
  hub_.set_rules(R"({"gated": ["org/name"], "pending": true})");
  const ChildResult none = pull({"org/name"});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, AllOf(HasSubstr("org/name is gated"), HasSubstr("accept its terms at " + hub_.endpoint()),
                              HasSubstr("set HF_TOKEN")));
  const ChildResult pending = pull({"org/name"}, {{"HF_TOKEN", "secret"}});
  EXPECT_EQ(pending.status, 1);
  EXPECT_THAT(pending.err, AllOf(HasSubstr("gated"), HasSubstr("the account of HF_TOKEN has no access")));
  const ChildResult wrong = pull({"org/name"}, {{"HF_TOKEN", "wrong"}});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("refuses the token of HF_TOKEN"));
  EXPECT_THAT(none.err + pending.err + wrong.err, Not(HasSubstr("secret")));
}

TEST_F(Hub, UnknownRepositoryIsOneLine) {
  const ChildResult result = pull({"org/nmae"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("no repository 'org/nmae'"), HasSubstr("HF_TOKEN"), HasSubstr("did you mean org/name?")));
  EXPECT_THAT(pull({"org/entirely-other"}).err, Not(HasSubstr("did you mean")));
  EXPECT_THAT(pull({"grO/name"}).err, AllOf(HasSubstr("no repository 'grO/name'"), Not(HasSubstr("did you mean"))));
  EXPECT_FALSE(fs::exists(home_.path() / "hub" / "models--org--nmae"));
}

TEST_F(Hub, UnreachableHubIsNamed) {
  const ChildResult result = pull({"org/name", "--log-level", "error"}, {{"HF_ENDPOINT", "http://127.0.0.1:1"}});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("http://127.0.0.1:1/api/models/org/name"));
}

TEST_F(Hub, OfflineTakesWhatIsComplete) {
  const ChildResult missing = pull({"org/name"}, {{"HF_HUB_OFFLINE", "1"}});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("offline"), HasSubstr("org/name"), HasSubstr("HF_HUB_OFFLINE")));
  EXPECT_THAT(hub_.requests(), IsEmpty());

  const std::string path = last_line(pull({"org/name"}).out);
  const std::size_t before = hub_.requests().size();
  EXPECT_EQ(last_line(pull({"org/name", "--offline"}).out), path);
  EXPECT_THAT(hub_.requests(), SizeIs(before));
  fs::remove(fs::path(path) / "model.safetensors");
  EXPECT_EQ(pull({"org/name", "--offline"}).status, 1);
}

TEST_F(Hub, InterruptKeepsWhatIsThere) {
  hub_.set_faults(R"([{"match": "elsewhere/cdn/org/name/model", "times": 2, "stall": 40000}])");
  InteractiveChild child(setup({"org/name", "--range-size", "100000"}));
  ASSERT_TRUE(comes_true([&] { return hub_.requests("elsewhere /cdn/org/name/model").size() == 2; }));
  ASSERT_TRUE(child.says("org/name"));
  ASSERT_TRUE(comes_true([&] { return fs::exists(repository() / "blobs") && incomplete().size() == 1; }));
  child.signal(SIGINT);
  EXPECT_EQ(child.wait(), kInterrupted);
  EXPECT_THAT(child.errors(), HasSubstr("the same command goes on from there"));
  EXPECT_THAT(incomplete(), SizeIs(1));
  EXPECT_EQ(child.output(), "");

  const std::size_t before = hub_.requests("elsewhere /cdn/org/name/model").size();
  expect_whole(pull({"org/name"}));
  const auto requests = hub_.requests("elsewhere /cdn/org/name/model");
  ASSERT_THAT(requests, SizeIs(before + 2));
  for (std::size_t i = before; i < requests.size(); ++i) {
    EXPECT_THAT(requests[i], ::testing::AnyOf(HasSubstr("bytes=40000-99999"), HasSubstr("bytes=140000-199999")));
  }
}

TEST_F(Hub, BeginningOfAnotherProgramIsTakenOver) {
  EXPECT_EQ(pull({"org/name"}).status, 0);
  const fs::path snapshot = repository() / "snapshots" / slurp(repository() / "refs" / "main");
  const fs::path blob = fs::canonical(snapshot / "model.safetensors");
  fs::rename(blob, blob.string() + ".incomplete");
  fs::resize_file(blob.string() + ".incomplete", 70'000);
  expect_whole(pull({"org/name"}));
  EXPECT_THAT(hub_.requests("elsewhere /cdn/org/name/model").back(), HasSubstr("bytes=70000-199999"));
}

TEST_F(Hub, TwoPullsShareTheWork) {
  hub_.set_faults(R"([{"match": "elsewhere/cdn/org/name/model", "pause": 0.05}])");
  InteractiveChild first(setup({"org/name"})), second(setup({"org/name"}));
  EXPECT_EQ(first.wait(), 0) << first.errors();
  EXPECT_EQ(second.wait(), 0) << second.errors();
  EXPECT_EQ(first.output(), second.output());
  EXPECT_THAT(hub_.requests("elsewhere /cdn/org/name/model"), SizeIs(1));
  EXPECT_THAT(first.errors() + second.errors(), HasSubstr("another process fetches it"));
}

TEST_F(Hub, WorkOfAKilledPullIsTakenOver) {
  hub_.set_faults(R"([{"match": "elsewhere/cdn/org/name/model", "times": 1, "stall": 40000}])");
  InteractiveChild first(setup({"org/name"}));
  ASSERT_TRUE(comes_true([&] { return hub_.requests("elsewhere /cdn/org/name/model").size() == 1; }));
  InteractiveChild second(setup({"org/name"}));
  ASSERT_TRUE(second.says("another process fetches it")) << second.errors();
  first.signal(SIGKILL);
  EXPECT_EQ(second.wait(), 0) << second.errors();
  expect_whole(pull({"org/name", "--offline"}));
}

TEST_F(Hub, FullDiskIsKnownBefore) {
  hub_.set_rules(R"({"huge": {"model.safetensors": 4000000000000000}})");
  const ChildResult result = pull({"org/name"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("no space left: 4000.0 TB"), HasSubstr("HF_HUB_CACHE")));
  EXPECT_THAT(hub_.requests("/resolve/"), IsEmpty());
}

TEST_F(Hub, HostileListingsAreRefused) {
  const std::string digest(40, 'a');
  for (const std::string path :
       {"../evil.json", "/etc/evil.json", "a/../../evil.json", "a//b.json", "", "b\\\\c.json"}) {
    hub_.set_rules(R"({"extra": [{"rfilename": ")" + path + R"(", "size": 1, "blobId": ")" + digest + R"("}]})");
    const ChildResult result = pull({"org/name"});
    EXPECT_EQ(result.status, 1) << path;
    EXPECT_THAT(result.err, HasSubstr("would leave its folder")) << path;
  }
  hub_.set_rules(R"({"extra": [{"rfilename": "a.json", "size": 1, "blobId": "../../../x"}]})");
  EXPECT_THAT(pull({"org/name"}).err, HasSubstr("a.json: the hub gives no checksum"));
}

TEST_F(Hub, GgufRepositoriesAskForAType) {
  for (const char* name : {"m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m-Q8_0.gguf", "mmproj-Q8_0.gguf"}) {
    hub_.add("org/gguf", name, noise(2000, name[4]));
  }
  hub_.add("org/gguf", "big/m-F16-00001-of-00002.gguf", noise(2000, 8));
  hub_.add("org/gguf", "big/m-F16-00002-of-00002.gguf", noise(2000, 9));
  const ChildResult open = pull({"org/gguf"});
  EXPECT_EQ(open.status, 1);
  EXPECT_THAT(open.err, AllOf(HasSubstr("m-Q4_K_M.gguf"), HasSubstr("m-Q8_0.gguf"), Not(HasSubstr("mmproj"))));
  EXPECT_THAT(pull({"org/gguf:Q5_K"}).err, HasSubstr("no GGUF file is of type Q5_K"));
  EXPECT_THAT(last_line(pull({"org/gguf:q4_k_m"}).out), HasSubstr("/m-Q4_K_M.gguf"));
  const std::string split = last_line(pull({"org/gguf:F16"}).out);
  EXPECT_THAT(split, HasSubstr("/big/m-F16-00001-of-00002.gguf"));
  EXPECT_TRUE(fs::exists(fs::path(split).parent_path() / "m-F16-00002-of-00002.gguf"));
  EXPECT_EQ(last_line(pull({"org/gguf:F16", "--offline"}).out), split);
  EXPECT_EQ(pull({"org/gguf:Q8_0", "--offline"}).status, 1);
}

TEST_F(Hub, PickledWeightsAloneAreNoModel) {
  hub_.add("org/old", "config.json", "{}");
  hub_.add("org/old", "pytorch_model.bin", noise(2000));
  const ChildResult result = pull({"org/old"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("neither safetensors nor GGUF"));
  EXPECT_THAT(files(pull({"org/old", "--include", "*.bin"})), ElementsAre("pytorch_model.bin"));
}

TEST_F(Hub, ProxiesAreUsed) {
  // The hub stands in for a proxy: it is asked for a whole address. What it redirects to is reached directly.
  expect_whole(pull({"org/name"},
                    {{"HF_ENDPOINT", "http://192.0.2.1"}, {"http_proxy", hub_.endpoint()}, {"no_proxy", "127.0.0.1"}}));
  EXPECT_THAT(hub_.requests("hub http://192.0.2.1/api/models/org/name"), SizeIs(1));
}

TEST_F(Hub, TerminalsShowABar) {
  hub_.set_faults(R"([{"match": "elsewhere/cdn/org/name/model", "pause": 0.05}])");
  ChildSetup with_terminal = setup({"org/name"});
  with_terminal.terminal = true;
  InteractiveChild child(with_terminal);
  EXPECT_EQ(child.wait(), 0) << child.output();
  EXPECT_THAT(child.output(), AllOf(HasSubstr("\r"), HasSubstr("="), HasSubstr("100 %"), HasSubstr("/s")));
  TempFolder other;
  EXPECT_THAT(pull({"org/name"}, {{"HF_HUB_CACHE", other.path()}}).err, AllOf(Not(HasSubstr("\r")), HasSubstr(" %")));
}

TEST_F(Hub, CertificatesAreChecked) {
  HubServer secure(HubServer::Scheme::kHttps);
  secure.add("org/name", "config.json", "{}");
  secure.add("org/name", "model.safetensors", weights_);
  const ChildResult refused = pull({"org/name"}, {{"HF_ENDPOINT", secure.endpoint()}});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("certificate"), HasSubstr("SSL_CERT_FILE")));
  expect_whole(pull({"org/name"}, {{"HF_ENDPOINT", secure.endpoint()}, {"SSL_CERT_FILE", secure.certificate()}}));
}

TEST_F(Hub, NamesThatAreNoneAreSaidSo) {
  for (const char* name : {"org", "org/", "a/b/c", "../b", "a/-b", "a/b--c"}) {
    const ChildResult result = pull({name});
    EXPECT_EQ(result.status, 1) << name;
    EXPECT_THAT(result.err, HasSubstr("a model of the hub is ORG/NAME")) << name;
  }
}

}  // namespace
}  // namespace octet::testing
