// HTTP itself: limits, keep-alive, pipelining (HTTP-05, HTTP-06), several I/O threads.
#include "octet/server/http_server.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "octet/server/http_parser.h"
#include "tests/support/http_client.h"
#include "tests/support/test_server.h"

namespace octet::server {
namespace {

using octet::testing::eventually;
using octet::testing::HttpClient;
using octet::testing::HttpReply;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;

TestServerOptions short_timeouts() {
  TestServerOptions options;
  options.limits.header_timeout = std::chrono::milliseconds(200);
  options.limits.body_timeout = std::chrono::milliseconds(200);
  return options;
}

std::string completion(int max_tokens) { return fmt::format(R"({{"prompt":"a","max_tokens":{}}})", max_tokens); }

TEST(Http05, BodyOverTheLimitIsRefusedBeforeItIsSent) {
  TestServer server;
  HttpClient client(server.port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 314572800\r\n\r\n");
  const HttpReply reply = client.read();
  EXPECT_EQ(reply.status, 413);
  EXPECT_NE(reply.body.find("67108864"), std::string::npos) << reply.body;
  EXPECT_EQ(reply.header("content-type"), "application/json");
  EXPECT_EQ(reply.header("connection"), "close");
  EXPECT_TRUE(client.at_end());
}

TEST(Http05, AbsurdLengthIsRefusedAtOnce) {
  TestServer server;
  HttpClient client(server.port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999999\r\n\r\n0123456789");
  EXPECT_EQ(client.read().status, 413);
  HttpClient beyond(server.port());
  beyond.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999999999999999\r\n\r\n0123456789");
  EXPECT_EQ(beyond.read().status, 400);
}

// Resident memory does not follow what a client says that it will send.
TEST(Http05, AnnouncedBodiesTakeNoMemory) {
  TestServer server;
  const auto resident_kib = [] {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmRSS:")) return std::atoll(line.c_str() + 6);
    }
    return 0LL;
  };
  EXPECT_EQ(server.get("/health").status, 200);
  const long long before = resident_kib();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    // One byte less than the limit, and none but ten of them come.
    clients.back()->send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 67108863\r\n\r\n0123456789");
  }
  EXPECT_TRUE(eventually([&] { return server.http().busy_connections() == 20; }));
  EXPECT_EQ(server.get("/health").status, 200);
  if (std::string_view(OCTET_BUILD_TYPE) == "Release") EXPECT_LT(resident_kib() - before, 2048) << "KiB for 20 clients";
}

TEST(Http05, ChunkedBodyIsHeldToTheLimit) {
  TestServerOptions options;
  options.limits.body_bytes = 1000;
  TestServer server(std::move(options));
  HttpClient client(server.port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 3; ++i) client.send("190\r\n" + std::string(400, ' ') + "\r\n");
  EXPECT_EQ(client.read().status, 413);
}

TEST(Http05, BodiesTogetherAreHeldToALimit) {
  TestServerOptions options;
  options.limits.arriving_bytes = 100'000;
  TestServer server(std::move(options));
  const std::string head = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 90001\r\n\r\n";
  {
    HttpClient first(server.port()), second(server.port());
    first.send(head + std::string(80'000, ' '));
    HttpClient probe(server.port());
    probe.get("/health");
    EXPECT_EQ(probe.read().status, 200);
    second.send(head + std::string(80'000, ' '));
    EXPECT_EQ(second.read().status, 503);
  }
  EXPECT_TRUE(eventually([&] { return server.http().connections() == 0; }));
  HttpClient third(server.port());
  third.send(head + std::string(90'000, ' ') + "x");
  EXPECT_EQ(third.read().status, 400);
}

TEST(Http05, ChunkedBodyIsRead) {
  TestServer server;
  HttpClient client(server.port());
  const std::string body = completion(2);
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (const char c : body) client.send(fmt::format("1\r\n{}\r\n", c));
  client.send("0\r\n\r\n");
  EXPECT_EQ(client.read().json()["choices"][0]["text"], "He");
}

TEST(Http05, LargeHeaderIsRefused) {
  TestServer server;
  HttpClient client(server.port());
  client.send("GET /health HTTP/1.1\r\nX: ");
  const std::string piece(64 << 10, 'x');
  for (int i = 0; i < 160 && client.send(piece); ++i) {
  }
  const HttpReply reply = client.read();
  EXPECT_EQ(reply.status, 431);
  EXPECT_NE(reply.body.find("65536"), std::string::npos) << reply.body;
  EXPECT_TRUE(client.at_end());
}

TEST(Http05, ManyHeadersAreRefused) {
  TestServer server;
  HttpClient client(server.port());
  std::string request = "GET /health HTTP/1.1\r\n";
  for (int i = 0; i < 50'000; ++i) request += "a: b\r\n";
  client.send(request + "\r\n");
  EXPECT_EQ(client.read().status, 431);
  HttpClient few(server.port());
  request = "GET /health HTTP/1.1\r\n";
  for (int i = 0; i < 257; ++i) request += "a: b\r\n";
  few.send(request + "\r\n");
  const HttpReply reply = few.read();
  EXPECT_EQ(reply.status, 431);
  EXPECT_NE(reply.body.find("256"), std::string::npos) << reply.body;
}

TEST(Http05, ContinueIsAnsweredAtOnce) {
  TestServer server;
  HttpClient client(server.port());
  const std::string body = fmt::format(R"({{"prompt":"{}","max_tokens":1}})", std::string(1900, 'a'));
  client.send(fmt::format(
      "POST /v1/completions HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n", body.size()));
  EXPECT_EQ(client.read_head().status, 100);
  client.send(body);
  EXPECT_EQ(client.read().status, 200);
  client.get("/health");
  EXPECT_EQ(client.read().status, 200);
}

TEST(Http05, SlowHeadersAndBodiesAreCutOff) {
  TestServer server(short_timeouts());
  HttpClient header(server.port());
  header.send("POST /v1/completions HTTP/1.1\r\nHos");
  HttpClient body(server.port());
  body.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_EQ(server.get("/health").status, 200);
  EXPECT_EQ(header.read().status, 408);
  EXPECT_TRUE(header.at_end());
  EXPECT_EQ(body.read().status, 408);
  EXPECT_TRUE(body.at_end());
}

TEST(Http05, BodiesThatTrickleAreCutOffInTheEnd) {
  TestServerOptions options;
  options.limits.whole_body_timeout = std::chrono::milliseconds(300);
  TestServer server(std::move(options));
  HttpClient client(server.port());
  client.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
  while (server.http().connections() > 0 && client.send(" ")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(client.read().status, 408);
  EXPECT_TRUE(eventually([&] { return server.http().connections() == 0; }));
}

TEST(Http05, IdleConnectionsAreClosed) {
  TestServerOptions options;
  options.limits.idle_timeout = std::chrono::milliseconds(100);
  TestServer server(std::move(options));
  HttpClient client(server.port());
  client.get("/health");
  EXPECT_EQ(client.read().status, 200);
  EXPECT_TRUE(client.at_end());
}

TEST(Http06, PipelinedRequestsAreAnsweredInOrder) {
  TestServer server;
  HttpClient client(server.port());
  const auto post = [](const std::string& body) {
    return fmt::format("POST /v1/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
  };
  client.send(post(completion(1)) + post(completion(2)) + "GET /health HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.read().json()["choices"][0]["text"], "H");
  EXPECT_EQ(client.read().json()["choices"][0]["text"], "He");
  EXPECT_EQ(client.read().status, 200);
}

TEST(Http06, BodiesOfRefusedRequestsAreNotTakenForRequests) {
  TestServer server;
  HttpClient client(server.port());
  client.post("/nope", std::string(500, 'G') + "\r\n\r\nGET /health HTTP/1.1\r\n\r\n" + std::string(500, ' '));
  client.get("/health");
  EXPECT_EQ(client.read().status, 404);
  EXPECT_EQ(client.read().status, 200);
  client.get("/v1/models/x", "DELETE");
  client.get("/version");
  EXPECT_EQ(client.read().status, 405);
  EXPECT_EQ(client.read().json()["version"], OCTET_VERSION);
}

TEST(Http06, ThousandRequestsOnOneConnection) {
  TestServer server;
  HttpClient client(server.port());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(client.post("/v1/completions", completion(1 + i % 3)));
    ASSERT_EQ(client.read().json()["usage"]["completion_tokens"], 1 + i % 3);
  }
  EXPECT_EQ(server.http().connections(), 1);
}

// What a client sends ahead of an answer must not hide that it has left.
TEST(Http06, ClientsThatSendAheadAndLeaveAreNoticed) {
  TestServerOptions options;
  options.step_time = std::chrono::milliseconds(1);
  options.max_model_len = 1 << 20;
  options.blocks = 1 << 17;
  TestServer server(std::move(options));
  for (const std::size_t ahead : {std::size_t{0}, std::size_t{300} << 10, std::size_t{3} << 20}) {
    HttpClient client(server.port());
    client.post("/v1/completions", R"({"prompt":"a","max_tokens":1000000})");
    EXPECT_TRUE(eventually([&] { return server.engine().stats().running == 1; }));
    client.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 9000000\r\n\r\n" + std::string(ahead, ' '));
    client.close();
    EXPECT_TRUE(eventually([&] { return server.http().connections() == 0; })) << ahead;
    EXPECT_TRUE(server.comes_to_rest()) << ahead;
  }
}

TEST(Http06, RequestsSentFarAheadAreAllAnswered) {
  TestServerOptions options;
  options.step_time = std::chrono::milliseconds(1);
  TestServer server(std::move(options));
  HttpClient client(server.port());
  const std::string body = fmt::format(R"({{"prompt":"{}","max_tokens":3}})", std::string(1500, 'a'));
  std::string requests;
  for (int i = 0; i < 300; ++i) {
    requests += fmt::format("POST /v1/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
  }
  client.send(requests);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(client.read().json()["choices"][0]["text"], "Hel") << i;
}

TEST(Http06, OldClientsGetWhatTheyUnderstand) {
  TestServer server;
  HttpClient client(server.port());
  const std::string body = R"({"prompt":"a","max_tokens":2,"stream":true})";
  client.send(fmt::format("POST /v1/completions HTTP/1.0\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
  const HttpReply reply = client.read();
  EXPECT_EQ(reply.header("transfer-encoding"), "");
  EXPECT_EQ(reply.header("connection"), "close");
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n")) << reply.body;
  HttpClient kept(server.port());
  kept.send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(kept.read().header("connection"), "keep-alive");
  EXPECT_EQ(kept.read().header("connection"), "close");
}

TEST(HttpServer, NotHttpIsRefused) {
  TestServer server;
  for (const std::string_view bytes :
       {"\x16\x03\x01\x02 hello\r\n\r\n", "GET /a%zz HTTP/1.1\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"}) {
    HttpClient client(server.port());
    client.send(bytes);
    EXPECT_EQ(client.read().status, 400) << bytes;
    EXPECT_TRUE(client.at_end());
  }
}

TEST(HttpServer, ABodyOfUnknownCodingIsNoRequest) {
  TestServer server;
  for (const std::string_view coding : {"gzip", "xchunked", "gzip, chunked", "identity"}) {
    HttpClient client(server.port());
    client.send(fmt::format("POST /nope HTTP/1.1\r\nTransfer-Encoding: {}\r\n\r\n", coding));
    client.send("GET /health HTTP/1.1\r\n\r\n");
    EXPECT_EQ(client.read().status, 501) << coding;
    EXPECT_TRUE(client.at_end()) << coding;
  }
}

TEST(HttpServer, ServesOnSeveralThreads) {
  TestServerOptions options;
  options.io_threads = 3;
  TestServer server(std::move(options));
  std::atomic<int> good = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 9; ++i) {
    clients.emplace_back([&server, &good] {
      HttpClient client(server.port());
      for (int round = 0; round < 20; ++round) {
        client.post("/v1/completions", completion(5));
        good += client.read().json()["choices"][0]["text"] == "Hello";
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 180);
  EXPECT_TRUE(eventually([&] { return server.http().connections() == 0; }));
}

TEST(HttpServer, DrainFinishesWhatRunsAndClosesTheRest) {
  TestServerOptions options;
  options.step_time = std::chrono::milliseconds(2);
  TestServer server(std::move(options));
  HttpClient idle(server.port()), running(server.port());
  idle.get("/health");
  EXPECT_EQ(idle.read().status, 200);
  running.post("/v1/completions", R"({"prompt":"a","max_tokens":100,"stream":true})");
  EXPECT_EQ(running.read_head().status, 200);
  HttpClient half_head(server.port()), half_body(server.port());
  half_head.send("POST /v1/completions HTTP/1.1\r\nHo");
  half_body.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_TRUE(eventually([&] { return server.http().busy_connections() == 3; }));
  server.service().begin_drain();
  server.http().drain();
  EXPECT_TRUE(idle.at_end());
  for (HttpClient* half : {&half_head, &half_body}) {
    const HttpReply refused = half->read();
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.header("retry-after"), "5");
  }
  EXPECT_TRUE(eventually([&] { return server.http().busy_connections() == 1; }));
  EXPECT_TRUE(eventually([&] { return !HttpClient(server.port()).connected(); }));
  EXPECT_FALSE(server.http().wait_idle(std::chrono::steady_clock::now()));
  std::string last;
  while (const auto event = running.next_event()) last = *event;
  EXPECT_EQ(last, "[DONE]");
  EXPECT_TRUE(server.http().wait_idle(std::chrono::steady_clock::now() + std::chrono::seconds(60)));
}

TEST(HttpServer, WhatIsCutEndsWithAnError) {
  TestServerOptions options;
  options.step_time = std::chrono::milliseconds(2);
  TestServer server(std::move(options));
  HttpClient stream(server.port()), whole(server.port());
  stream.post("/v1/completions", R"({"prompt":"a","max_tokens":2000,"stream":true})");
  EXPECT_EQ(stream.read_head().status, 200);
  whole.post("/v1/completions", R"({"prompt":"a","max_tokens":2000})");
  EXPECT_TRUE(eventually([&] { return server.engine().stats().running == 2; }));
  server.service().begin_drain();
  server.http().drain();
  server.http().cut();
  std::string last;
  while (const auto event = stream.next_event()) last = *event;
  EXPECT_EQ(Json::parse(last, nullptr, false)["error"]["code"], 503) << last;
  EXPECT_TRUE(stream.at_end());
  const HttpReply reply = whole.read();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.header("retry-after"), "5");
  EXPECT_TRUE(server.http().wait_idle(std::chrono::steady_clock::now() + std::chrono::seconds(60)));
  EXPECT_TRUE(server.comes_to_rest());
}

TEST(HttpParser, TakesRequestsByteByByte) {
  const HttpLimits limits;
  HttpParser parser(limits);
  std::string input;
  for (const char c : std::string_view("POST /a%20b?x=1 HTTP/1.1\r\nX-Y:  z \r\nContent-Length: 2\r\n\r\nhi")) {
    EXPECT_NE(parser.state(), HttpParser::State::kDone);
    input += c;
    parser.feed(input);
  }
  ASSERT_EQ(parser.state(), HttpParser::State::kDone);
  const HttpRequest request = parser.take();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/a b");
  EXPECT_EQ(request.query, "x=1");
  EXPECT_EQ(request.header("x-y"), "z");
  EXPECT_EQ(request.body, "hi");
  EXPECT_TRUE(request.keep_alive);
}

TEST(HttpParser, DecodesPaths) {
  EXPECT_EQ(percent_decode("/%2e%2E%2f"), "/../");
  EXPECT_EQ(percent_decode("/%"), std::nullopt);
  EXPECT_EQ(percent_decode("/%2"), std::nullopt);
  EXPECT_EQ(percent_decode("/%ff"), std::nullopt);
}

}  // namespace
}  // namespace octet::server
