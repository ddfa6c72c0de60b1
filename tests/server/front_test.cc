// What stands before the routes: keys (HTTP-08), cross-origin requests, request ids, paths.
#include "octet/server/front.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "octet/server/chat_page.h"
#include "tests/support/test_server.h"

namespace octet::server {
namespace {

using octet::testing::eventually;
using octet::testing::HttpClient;
using octet::testing::HttpReply;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;
using ::testing::HasSubstr;
using ::testing::Not;

TestServerOptions with_keys(std::vector<std::string> keys = {"test-key", "other-key"}) {
  TestServerOptions options;
  options.front.api_keys = std::move(keys);
  return options;
}

HttpReply ask(TestServer& server, std::string_view method, std::string_view target, std::string_view headers = {},
              std::string_view body = {}) {
  HttpClient client(server.port());
  client.send(fmt::format("{} {} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n{}\r\n{}", method, target, body.size(),
                          headers, body));
  return method == "HEAD" ? client.read_head() : client.read();
}

// Routes that the server has, might have, and never will.
const std::pair<std::string_view, std::string_view> kClosed[] = {
    {"POST", "/v1/chat/completions"},
    {"POST", "/v1/completions"},
    {"POST", "/v1/responses"},
    {"POST", "/v1/messages"},
    {"POST", "/v1/embeddings"},
    {"POST", "/tokenize"},
    {"POST", "/detokenize"},
    {"GET", "/tokenizer_info"},
    {"GET", "/v1/models"},
    {"GET", "/v1/models/M"},
    {"GET", "/load"},
    {"POST", "/v1/load_lora_adapter"},
    {"POST", "/v1/unload_lora_adapter"},
    {"POST", "/sleep"},
    {"POST", "/wake_up"},
    {"POST", "/pause"},
    {"POST", "/reset_prefix_cache"},
    {"GET", "/slots"},
    {"GET", "/props"},
    {"GET", "/docs"},
    {"GET", "/openapi.json"},
    {"GET", "/no/such/route"},
    {"DELETE", "/v1/models/M"},
    {"GET", "/v1/models/"},
    {"POST", "//v1/chat/completions"},
    {"POST", "/v1/../v1/chat/completions"},
    {"POST", "/v1/%2e%2e/v1/chat/completions"},
    {"POST", "/health/../v1/chat/completions"},
    {"POST", "/health/v1/chat/completions"},
    {"GET", "/healthz"},
    {"GET", "/metrics/"},
    {"GET", "http://test/v1/models"},
    {"OPTIONS", "/v1/chat/completions"},
    {"OPTIONS", "*"},
};

TEST(Http08, EveryRouteAsksForTheKeyKnownOrNot) {
  TestServer server(with_keys());
  for (const auto& [method, path] : kClosed) {
    for (const std::string_view headers :
         {"", "Authorization: Bearer wrong\r\n", "Authorization: Bearer\r\n", "Authorization: Bearer \r\n",
          "Authorization: test-key\r\n", "Authorization: Basic test-key\r\n", "Authorization: Bearer test-keyx\r\n",
          "Authorization: Bearer test-ke\r\n", "Authorization: Bearertest-key\r\n", "x-api-key: wrong\r\n",
          "Authorization: Bearer test-key other-key\r\n"}) {
      const HttpReply reply = ask(server, method, path, headers);
      EXPECT_EQ(reply.status, 401) << method << " " << path << " " << headers;
      const Json error = reply.json()["error"];
      if (path == "/v1/messages") {
        EXPECT_EQ(error["type"], "authentication_error");
      } else {
        EXPECT_EQ(error["code"], 401) << reply.body;
        EXPECT_EQ(error["type"], "Unauthorized");
      }
      EXPECT_EQ(reply.header("content-type"), "application/json");
      EXPECT_EQ(reply.header("www-authenticate"), "Bearer");
    }
  }
  EXPECT_TRUE(server.comes_to_rest());
  EXPECT_EQ(server.engine().stats().generation_tokens, 0U);
}

TEST(Http08, AnyOfTheKeysOpens) {
  TestServer server(with_keys());
  constexpr std::string_view kBody = R"({"prompt":"a","max_tokens":2})";
  for (const std::string_view headers :
       {"Authorization: Bearer test-key\r\n", "Authorization: bearer test-key\r\n",
        "authorization: BEARER other-key\r\n", "Authorization: Bearer   test-key\r\n", "x-api-key: other-key\r\n"}) {
    EXPECT_EQ(ask(server, "POST", "/v1/completions", headers, kBody).status, 200) << headers;
    EXPECT_EQ(ask(server, "GET", "/v1/models/M", headers).status, 200) << headers;
    EXPECT_EQ(ask(server, "GET", "/no/such/route", headers).status, 404) << headers;
    EXPECT_EQ(ask(server, "POST", "//v1/chat/completions", headers, kBody).status, 404) << headers;
    EXPECT_EQ(ask(server, "POST", "/v1/../v1/completions", headers, kBody).status, 404) << headers;
    EXPECT_EQ(ask(server, "OPTIONS", "/v1/completions", headers).status, 405) << headers;
  }
}

TEST(Http08, ProbesMetricsAndThePageStayOpen) {
  TestServer server(with_keys());
  for (const std::string_view path : {"/health", "/ready", "/ping", "/version", "/metrics", "/"}) {
    EXPECT_EQ(ask(server, "GET", path).status, 200) << path;
    EXPECT_EQ(ask(server, "HEAD", path).status, 200) << path;
  }
  EXPECT_EQ(ask(server, "POST", "/ping").status, 200);
}

TEST(Http08, MetricsAndPageCloseWhereAsked) {
  TestServerOptions options = with_keys();
  options.front.guard_metrics = true;
  options.front.chat_page = false;
  TestServer server(std::move(options));
  for (const std::string_view path : {"/metrics", "/"}) {
    EXPECT_EQ(ask(server, "GET", path).status, 401) << path;
    EXPECT_EQ(ask(server, "HEAD", path).status, 401) << path;
  }
  EXPECT_EQ(ask(server, "GET", "/health").status, 200);
  EXPECT_EQ(ask(server, "GET", "/metrics", "Authorization: Bearer test-key\r\n").status, 200);
  EXPECT_EQ(ask(server, "GET", "/", "Authorization: Bearer test-key\r\n").status, 404);
}

TEST(Http08, RootPathIsNoWayRound) {
  TestServerOptions options = with_keys();
  options.front.root_path = "/llm";
  TestServer server(std::move(options));
  EXPECT_EQ(ask(server, "GET", "/llm/v1/models").status, 401);
  EXPECT_EQ(ask(server, "GET", "/llm/health").status, 200);
  EXPECT_EQ(ask(server, "GET", "/llmhealth").status, 401);
  EXPECT_EQ(ask(server, "GET", "/llm/llm/health").status, 401);
}

// HTTP-06 (c).
TEST(Http06, BodyBehindAWrongKeyIsNotTakenForARequest) {
  TestServer server(with_keys());
  HttpClient client(server.port());
  client.post("/v1/completions", std::string(500, 'G') + "\r\n\r\nGET /health HTTP/1.1\r\n\r\n" + std::string(500, ' '),
              "Authorization: Bearer wrong\r\n");
  client.get("/version");
  EXPECT_EQ(client.read().status, 401);
  EXPECT_EQ(client.read().json()["version"], OCTET_VERSION);
}

TEST(Cors, IsOffWithoutOrigins) {
  TestServer server;
  EXPECT_EQ(ask(server, "GET", "/health", "Origin: https://a.example\r\n").header("access-control-allow-origin"), "");
  const HttpReply preflight =
      ask(server, "OPTIONS", "/v1/completions", "Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n");
  EXPECT_EQ(preflight.status, 400);
  EXPECT_EQ(preflight.header("access-control-allow-origin"), "");
  EXPECT_THAT(preflight.body, HasSubstr("origin"));
}

TEST(Cors, AnyOriginGetsAStar) {
  TestServerOptions options = with_keys();
  options.front.cors.origins = {"*"};
  TestServer server(std::move(options));
  const HttpReply preflight = ask(server, "OPTIONS", "/v1/completions",
                                  "Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n"
                                  "Access-Control-Request-Headers: authorization, x-my-own\r\n");
  EXPECT_EQ(preflight.status, 200);
  EXPECT_EQ(preflight.header("access-control-allow-origin"), "*");
  EXPECT_EQ(preflight.header("access-control-allow-headers"), "authorization, x-my-own");
  EXPECT_THAT(preflight.header("access-control-allow-methods"), HasSubstr("POST"));
  EXPECT_EQ(preflight.header("access-control-max-age"), "600");
  // What no key opened must still be readable as what it is.
  const HttpReply refused = ask(server, "GET", "/v1/models", "Origin: https://a.example\r\n");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.header("access-control-allow-origin"), "*");
  EXPECT_EQ(ask(server, "GET", "/health").header("access-control-allow-origin"), "");
}

TEST(Cors, StreamsHaveTheHeadersToo) {
  TestServerOptions options;
  options.front.cors.origins = {"https://a.example"};
  TestServer server(std::move(options));
  HttpClient client(server.port());
  client.post("/v1/completions", R"({"prompt":"a","max_tokens":3,"stream":true})", "Origin: https://a.example\r\n");
  const HttpReply head = client.read_head();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(head.header("vary"), "Origin");
}

TEST(Cors, ListsAreKept) {
  TestServerOptions options;
  options.front.cors = {
      .origins = {"https://a.example"}, .methods = {"GET", "POST"}, .headers = {"X-Mine"}, .credentials = true};
  TestServer server(std::move(options));
  const auto preflight = [&](std::string_view origin, std::string_view method, std::string_view headers) {
    return ask(server, "OPTIONS", "/v1/completions",
               fmt::format("Origin: {}\r\nAccess-Control-Request-Method: {}\r\nAccess-Control-Request-Headers: {}\r\n",
                           origin, method, headers));
  };
  const HttpReply good = preflight("https://a.example", "POST", "x-mine, content-type");
  EXPECT_EQ(good.status, 200);
  EXPECT_EQ(good.header("access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(good.header("access-control-allow-credentials"), "true");
  EXPECT_EQ(good.header("access-control-allow-methods"), "GET, POST");
  EXPECT_THAT(good.header("access-control-allow-headers"), HasSubstr("X-Mine"));
  const HttpReply stranger = preflight("https://b.example", "POST", "x-mine");
  EXPECT_EQ(stranger.status, 400);
  EXPECT_EQ(stranger.header("access-control-allow-origin"), "");
  EXPECT_EQ(stranger.json()["error"]["message"], "Disallowed CORS origin");
  EXPECT_EQ(preflight("https://a.example", "DELETE", "x-mine").json()["error"]["message"], "Disallowed CORS method");
  EXPECT_EQ(preflight("https://a.example", "POST", "x-mine, x-other").json()["error"]["message"],
            "Disallowed CORS headers");
  const HttpReply simple = ask(server, "GET", "/health", "Origin: https://b.example\r\n");
  EXPECT_EQ(simple.status, 200);
  EXPECT_EQ(simple.header("access-control-allow-origin"), "");
  EXPECT_EQ(simple.header("vary"), "Origin");
}

TEST(Cors, CredentialsNeverGoWithAStar) {
  TestServerOptions options;
  options.front.cors = {.origins = {"*"}, .credentials = true};
  TestServer server(std::move(options));
  const HttpReply reply = ask(server, "GET", "/health", "Origin: https://a.example\r\nCookie: a=b\r\n");
  EXPECT_EQ(reply.header("access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(reply.header("access-control-allow-credentials"), "true");
}

TEST(RequestIds, AreEchoedOrMade) {
  TestServerOptions options = with_keys();
  options.front.request_ids = true;
  TestServer server(std::move(options));
  EXPECT_EQ(ask(server, "GET", "/health", "X-Request-Id: mine-1\r\n").header("x-request-id"), "mine-1");
  EXPECT_EQ(ask(server, "GET", "/v1/models", "X-Request-Id: mine-2\r\n").header("x-request-id"), "mine-2");  // 401
  std::set<std::string> made;
  for (int i = 0; i < 10; ++i) made.insert(ask(server, "GET", "/health").header("x-request-id"));
  EXPECT_EQ(made.size(), 10U);
  for (const std::string& id : made) EXPECT_EQ(id.size(), 32U);
  const std::string spaced = ask(server, "GET", "/health", "X-Request-Id: a b\r\n").header("x-request-id");
  EXPECT_EQ(spaced.size(), 32U);
  HttpClient client(server.port());
  client.post("/v1/completions", R"({"prompt":"a","max_tokens":3,"stream":true})",
              "Authorization: Bearer test-key\r\nX-Request-Id: mine-3\r\n");
  EXPECT_EQ(client.read_head().header("x-request-id"), "mine-3");
}

// Their answers' ids end with them, as vLLM's do, so that clients find a request in the server's log.
TEST(RequestIds, NameTheAnswer) {
  TestServer server;
  const auto id_of = [&](std::string_view target, std::string_view headers, std::string_view body) {
    return ask(server, "POST", target, headers, body).json()["id"].get<std::string>();
  };
  constexpr std::string_view kText = R"({"prompt":"a","max_tokens":1})";
  constexpr std::string_view kNamed = R"({"prompt":"a","max_tokens":1,"request_id":"field-1"})";
  constexpr std::string_view kChat =
      R"({"messages":[{"role":"user","content":"a"}],"max_tokens":1,"request_id":"field-2"})";
  EXPECT_EQ(id_of("/v1/completions", "X-Request-Id: mine-1\r\n", kText), "cmpl-mine-1");
  EXPECT_EQ(id_of("/v1/completions", "", kNamed), "cmpl-field-1");
  EXPECT_EQ(id_of("/v1/chat/completions", "", kChat), "chatcmpl-field-2");
  EXPECT_EQ(id_of("/v1/chat/completions", "X-Request-Id: mine-2\r\n", kChat), "chatcmpl-mine-2");
  EXPECT_EQ(id_of("/v1/completions", "X-Request-Id: a b\r\n", kNamed), "cmpl-field-1");
  EXPECT_NE(id_of("/v1/completions", "", kText), id_of("/v1/completions", "", kText));
  for (const std::string_view wrong : {"\"\"", "\"a b\"", "\"a\\n\"", "\"\u00e9\""}) {
    const HttpReply reply =
        ask(server, "POST", "/v1/completions", {}, fmt::format(R"({{"prompt":"a","request_id":{}}})", wrong));
    EXPECT_EQ(reply.status, 400) << wrong;
    EXPECT_EQ(reply.json()["error"]["param"], "request_id") << wrong;
  }
}

// Requests that are refused before they are read whole, and the statuses of these answers.
const std::pair<std::string, int> kUnreadable[] = {
    {"POST /v1/completions HTTP/1.1\r\nOrigin: https://a.example\r\nX-Request-Id: mine-4\r\nContent-Length: "
     "9999\r\n\r\n",
     413},
    {"POST /v1/completions HTTP/1.1\r\nOrigin: https://a.example\r\nX-Request-Id: mine-4\r\nContent-Length: 9\r\n\r\n{",
     408},
    {"POST /v1/completions HTTP/1.1\r\nOrigin: https://a.example\r\nX-Request-Id: mine-4\r\nHos", 408},
    {"POST /v1/completions HTTP/1.1\r\nOrigin: https://a.example\r\nX-Request-Id: mine-4\r\nX: " +
         std::string(70'000, 'x'),
     431},
    {"POST /v1/completions HTTP/1.1\r\nOrigin: https://a.example\r\nX-Request-Id: mine-4\r\nContent-Length: x\r\n\r\n",
     400},
    {"POST /v1/completions HTTP/1.1\r\nOrigin: https://a.example\r\nX-Request-Id: mine-4\r\n"
     "Transfer-Encoding: gzip\r\n\r\n",
     501},
};

TestServerOptions with_small_limits() {
  TestServerOptions options;
  options.limits.body_bytes = 1000;
  options.limits.header_timeout = options.limits.body_timeout = std::chrono::milliseconds(200);
  return options;
}

TEST(Unreadable, AnswersHaveTheHeadersOfAllOthers) {
  TestServerOptions options = with_small_limits();
  options.front.request_ids = true;
  options.front.cors.origins = {"https://a.example"};
  TestServer server(std::move(options));
  for (const auto& [request, status] : kUnreadable) {
    HttpClient client(server.port());
    client.send(request);
    const HttpReply reply = client.read();
    EXPECT_EQ(reply.status, status) << request.substr(0, 200);
    EXPECT_EQ(reply.header("access-control-allow-origin"), "https://a.example") << request.substr(0, 200);
    EXPECT_EQ(reply.header("x-request-id"), "mine-4") << request.substr(0, 200);
    EXPECT_EQ(reply.json()["error"]["code"], status);
    EXPECT_TRUE(client.at_end());
  }
  HttpClient stranger(server.port());
  stranger.send("no HTTP at all\r\n\r\n");
  const HttpReply reply = stranger.read();
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.header("access-control-allow-origin"), "");
  EXPECT_EQ(reply.header("x-request-id").size(), 32U);
}

TEST(Unreadable, LinesThatAreNoneOfHttpsAreNotTakenOver) {
  TestServerOptions options = with_small_limits();
  options.front.request_ids = true;
  options.front.cors = {.origins = {"*"}, .credentials = true};
  TestServer server(std::move(options));
  HttpClient client(server.port());
  client.send("GET /health HTTP/1.1\r\nOrigin: https://a.example\nSet-Cookie: a=b\r\nX-Request-Id: a\nb\r\nX: y");
  const HttpReply reply = client.read();
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.header("access-control-allow-origin"), "");
  EXPECT_EQ(reply.header("set-cookie"), "");
  EXPECT_EQ(reply.header("x-request-id").size(), 32U);
}

TEST(RequestIds, AreOffByDefault) {
  TestServer server;
  EXPECT_EQ(ask(server, "GET", "/health", "X-Request-Id: mine\r\n").header("x-request-id"), "");
}

TEST(Paths, RootPathIsTakenWithAndWithout) {
  TestServerOptions options;
  options.front.root_path = "/llm";
  TestServer server(std::move(options));
  for (const std::string_view path : {"/v1/models/M", "/llm/v1/models/M", "/llm/", "/"}) {
    EXPECT_EQ(server.get(path).status, 200) << path;
  }
  EXPECT_EQ(server.get("/llm/v1/models/no-such").status, 404);
  EXPECT_EQ(server.get("/llm/v1/models/").header("location"), "/llm/v1/models");
  EXPECT_EQ(server.get("/llm").header("location"), "/llm/");
}

TEST(Paths, SlashAtTheEndLeadsToTheRoute) {
  TestServer server;
  const HttpReply reply = server.get("/v1/models/?a=b");
  EXPECT_EQ(reply.status, 307);
  EXPECT_EQ(reply.header("location"), "/v1/models?a=b");
  EXPECT_EQ(server.post("/v1/chat/completions/", "{}").header("location"), "/v1/chat/completions");
  EXPECT_EQ(server.get("/nope/").status, 404);
  EXPECT_EQ(server.get("//evil.example/v1/models/").status, 404);
}

TEST(Paths, AbsoluteTargetsAreTakenAsPaths) {
  TestServer server;
  for (const std::string_view target :
       {"http://test/v1/models", "HTTP://test:80/v1/models", "https://user@test/v1/models?x=1"}) {
    EXPECT_EQ(ask(server, "GET", target).json()["object"], "list") << target;
  }
  for (const std::string_view target : {"http://test", "http://test/", "http://test?x=1"}) {
    EXPECT_EQ(ask(server, "GET", target).header("content-type"), "text/html; charset=utf-8") << target;
  }
  EXPECT_EQ(ask(server, "GET", "ftp://test/v1/models").status, 404);
}

TEST(Paths, HeadIsAnsweredWhereGetIs) {
  TestServer server;
  for (const std::string_view path : {"/v1/models", "/v1/models/M", "/load", "/version", "/metrics", "/"}) {
    HttpClient client(server.port());
    client.get(path, "HEAD");
    const HttpReply head = client.read_head();
    EXPECT_EQ(head.status, 200) << path;
    EXPECT_NE(head.header("content-length"), "0") << path;
    client.get("/health");  // no body stands between
    EXPECT_EQ(client.read().status, 200) << path;
  }
}

TEST(Load, CountsRequestsInFlight) {
  TestServerOptions options;
  options.step_time = std::chrono::milliseconds(1);
  TestServer server(std::move(options));
  EXPECT_EQ(server.get("/load").json(), (Json{{"server_load", 0}}));
  {
    HttpClient stream(server.port()), whole(server.port());
    stream.post("/v1/completions", R"({"prompt":"a","max_tokens":2000,"stream":true})");
    whole.post("/v1/completions", R"({"prompt":"a","max_tokens":2000})");
    EXPECT_TRUE(eventually([&] { return server.get("/load").json()["server_load"] == 2; }));
  }
  EXPECT_TRUE(eventually([&] { return server.get("/load").json()["server_load"] == 0; }));
}

TEST(ChatPage, IsOneFileThatAsksNobodyElse) {
  TestServer server;
  const HttpReply reply = server.get("/");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("content-type"), "text/html; charset=utf-8");
  const std::string policy = reply.header("content-security-policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("connect-src 'self'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  for (const char* outside : {"<script src", "<link rel=\"stylesheet\"", "@import", "url(http", "innerHTML", "eval("}) {
    EXPECT_THAT(reply.body, Not(HasSubstr(outside)));
  }
  for (const char* left : {"@STYLE@", "@SCRIPT@"}) EXPECT_THAT(reply.body, Not(HasSubstr(left)));
}

}  // namespace
}  // namespace octet::server
