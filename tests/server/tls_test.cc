// TLS: what a client gets through it, who is let in, certificates that change, and what is said at start.
#include "octet/server/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "tests/support/temp_folder.h"
#include "tests/support/test_server.h"
#include "tests/support/tls_client.h"

namespace octet::server {
namespace {

using octet::testing::Certificate;
using octet::testing::eventually;
using octet::testing::HttpClient;
using octet::testing::HttpReply;
using octet::testing::TempFolder;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;
using octet::testing::TlsClient;
using octet::testing::TlsClientOptions;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// An authority, and a server's certificate of it in files.
class Tls : public ::testing::Test {
 protected:
  Tls() { write(server_); }

  void write(const Certificate& certificate) {
    options_.cert_file = folder_.write("cert.pem", certificate.certificate).string();
    options_.key_file = folder_.write("key.pem", certificate.key).string();
  }
  std::unique_ptr<TestServer> serve(TestServerOptions options = {}) {
    options.tls = options_;
    return std::make_unique<TestServer>(std::move(options));
  }
  TlsClientOptions trusting() const { return {.authority = authority_.certificate}; }
  std::string refusal() const {
    const auto context = TlsContext::load(options_);
    return context ? "" : context.error().message;
  }

  TempFolder folder_;
  Certificate authority_ = octet::testing::make_authority("authority");
  Certificate server_ = octet::testing::make_certificate("first", authority_);
  TlsOptions options_;
};

std::string post(const std::string& body, std::string_view more = {}) {
  return fmt::format("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n{}\r\n{}", body.size(), more,
                     body);
}

TEST_F(Tls, AnswersAndStreamsAsWithout) {
  const auto server = serve();
  EXPECT_THAT(server->http().urls().front(), StartsWith("https://127.0.0.1:"));
  TlsClient client(server->port(), trusting());
  ASSERT_TRUE(client.connected());
  EXPECT_EQ(client.version(), "TLSv1.3");
  EXPECT_TRUE(client.send("GET /version HTTP/1.1\r\nHost: t\r\n\r\n"));
  EXPECT_THAT(client.read_some(), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr(OCTET_VERSION)));
  EXPECT_TRUE(client.send(post(R"({"prompt":"a","max_tokens":5,"stream":true})", "Connection: close\r\n")));
  EXPECT_THAT(client.read_all(), AllOf(HasSubstr("text/event-stream"), EndsWith("data: [DONE]\n\n\r\n0\r\n\r\n")));
  EXPECT_TRUE(client.closed_properly());
}

TEST_F(Tls, LargeBodiesComeInManyRecords) {
  TestServerOptions options;
  options.max_model_len = 1 << 20;
  const auto server = serve(std::move(options));
  TlsClient client(server->port(), trusting());
  const std::string body = fmt::format(R"({{"prompt":"{}"}})", std::string(900'000, 'x'));
  EXPECT_TRUE(
      client.send(fmt::format("POST /tokenize HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n"
                              "Connection: close\r\n\r\n",
                              body.size())));
  EXPECT_TRUE(client.send(body));
  const std::string answer = client.read_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("\"count\":900000"));
  EXPECT_TRUE(client.closed_properly());
}

TEST_F(Tls, ClientsThatLeaveAreNoticed) {
  TestServerOptions options;
  options.step_time = std::chrono::milliseconds(1);
  const auto server = serve(std::move(options));
  TlsClient client(server->port(), trusting());
  client.send(post(R"({"prompt":"a","max_tokens":2000,"stream":true})"));
  EXPECT_THAT(client.read_some(), StartsWith("HTTP/1.1 200"));
  client.close();
  EXPECT_TRUE(eventually([&] { return server->http().connections() == 0; }));
  EXPECT_TRUE(server->comes_to_rest());
}

TEST_F(Tls, OldVersionsAreRefused) {
  const auto server = serve();
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION}) {
    TlsClientOptions old = trusting();
    old.highest_version = version;
    EXPECT_FALSE(TlsClient(server->port(), old).connected());
  }
  TlsClientOptions second = trusting();
  second.highest_version = TLS1_2_VERSION;
  TlsClient client(server->port(), second);
  EXPECT_EQ(client.version(), "TLSv1.2");
  client.send("GET /health HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 200"));
}

TEST_F(Tls, Http11IsChosenWhereMoreIsOffered) {
  const auto server = serve();
  TlsClientOptions options = trusting();
  options.protocols = std::string("\x02h2\x08http/1.1", 12);
  EXPECT_EQ(TlsClient(server->port(), options).protocol(), "http/1.1");
  options.protocols = std::string("\x02h2", 3);
  EXPECT_EQ(TlsClient(server->port(), options).protocol(), "");
}

TEST_F(Tls, PlainHttpIsToldSo) {
  TestServerOptions options;
  options.limits.linger_timeout = std::chrono::milliseconds(100);
  const auto server = serve(std::move(options));
  HttpClient client(server->port());
  client.get("/health");
  const HttpReply reply = client.read();
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json()["error"]["message"], "this port speaks TLS: use https://");
  EXPECT_TRUE(client.at_end());
  HttpClient noise(server->port());
  noise.send(std::string(200, '\xff'));
  while (!noise.read_raw(1000).empty()) {
  }
  EXPECT_TRUE(noise.at_end());
  EXPECT_TRUE(eventually([&] { return server->http().connections() == 0; }));
}

TEST_F(Tls, SilentClientsAreClosedAtTheHeaderTimeout) {
  TestServerOptions options;
  options.limits.header_timeout = std::chrono::milliseconds(100);
  const auto server = serve(std::move(options));
  HttpClient silent(server->port());
  EXPECT_TRUE(silent.at_end());
  EXPECT_TRUE(eventually([&] { return server->http().connections() == 0; }));
}

TEST_F(Tls, ClientCertificatesAreCheckedAsAsked) {
  options_.ca_file = folder_.write("ca.pem", authority_.certificate).string();
  const Certificate known = octet::testing::make_certificate("client", authority_);
  const Certificate stranger = octet::testing::make_certificate("client", octet::testing::make_authority("other"));
  for (const int required : {0, 1, 2}) {
    options_.cert_reqs = required;
    const auto server = serve();
    const auto is_let_in = [&](const Certificate& own) {
      TlsClientOptions options = trusting();
      options.own = own;
      TlsClient client(server->port(), options);
      client.send("GET /health HTTP/1.1\r\nConnection: close\r\n\r\n");
      return client.read_all().starts_with("HTTP/1.1 200");
    };
    EXPECT_TRUE(is_let_in(known)) << required;
    EXPECT_EQ(is_let_in({}), required < 2) << required;
    EXPECT_EQ(is_let_in(stranger), required == 0) << required;
  }
}

TEST_F(Tls, ReloadTakesTheNewCertificateOrKeepsTheOld) {
  const auto server = serve();
  TlsClient open(server->port(), trusting());
  EXPECT_EQ(open.server_name(), "first");
  write(octet::testing::make_certificate("second", authority_));
  EXPECT_EQ(TlsClient(server->port(), trusting()).server_name(), "first");
  EXPECT_TRUE(server->http().reload_certificate().has_value());
  EXPECT_EQ(TlsClient(server->port(), trusting()).server_name(), "second");
  open.send("GET /health HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(open.read_all(), StartsWith("HTTP/1.1 200"));
  folder_.write("cert.pem", "broken");
  const auto broken = server->http().reload_certificate();
  ASSERT_FALSE(broken.has_value());
  EXPECT_THAT(broken.error().message, AllOf(HasSubstr("--ssl-certfile"), HasSubstr("cert.pem")));
  EXPECT_EQ(TlsClient(server->port(), trusting()).server_name(), "second");
}

TEST_F(Tls, ChangedFilesAreReadAgainWhereAsked) {
  options_.watch_files = true;
  const auto server = serve();
  EXPECT_EQ(TlsClient(server->port(), trusting()).server_name(), "first");
  const Certificate second = octet::testing::make_certificate("second", authority_);
  folder_.write("cert.pem", second.certificate);  // its key comes later: the old pair goes on
  EXPECT_EQ(TlsClient(server->port(), trusting()).server_name(), "first");
  folder_.write("key.pem", second.key);
  EXPECT_TRUE(eventually([&] { return TlsClient(server->port(), trusting()).server_name() == "second"; }));
}

TEST_F(Tls, ErrorsNameFlagAndFile) {
  const Certificate other = octet::testing::make_certificate("other", authority_);
  const std::string good_cert = options_.cert_file, good_key = options_.key_file;
  EXPECT_EQ(refusal(), "");
  options_.cert_file = (folder_.path() / "none.pem").string();
  EXPECT_THAT(refusal(), AllOf(StartsWith("--ssl-certfile"), HasSubstr("none.pem"), HasSubstr("No such file")));
  options_.cert_file = folder_.write("text.pem", "no certificate").string();
  EXPECT_THAT(refusal(), AllOf(StartsWith("--ssl-certfile"), HasSubstr("text.pem")));
  options_.cert_file = good_cert;
  options_.key_file = (folder_.path() / "none.key").string();
  EXPECT_THAT(refusal(), AllOf(StartsWith("--ssl-keyfile"), HasSubstr("none.key")));
  options_.key_file = folder_.write("other.key", other.key).string();
  EXPECT_THAT(refusal(), AllOf(StartsWith("--ssl-keyfile"), HasSubstr("other.key"), HasSubstr("not the key")));
  options_.key_file = "";
  EXPECT_THAT(refusal(), AllOf(HasSubstr(good_cert), HasSubstr("no private key")));
  options_.cert_file = folder_.write("both.pem", server_.certificate + server_.key).string();
  EXPECT_EQ(refusal(), "");
  options_.key_file = good_key;
  options_.ciphers = "no-such-cipher";
  EXPECT_THAT(refusal(), AllOf(StartsWith("--ssl-ciphers no-such-cipher"), HasSubstr("cipher")));
  options_.ciphers = "ECDHE+AESGCM";
  EXPECT_EQ(refusal(), "");
  options_.cert_reqs = 2;
  EXPECT_THAT(refusal(), AllOf(StartsWith("--ssl-cert-reqs 2"), HasSubstr("--ssl-ca-certs")));
  options_.ca_file = folder_.write("ca.pem", "nobody").string();
  EXPECT_THAT(refusal(), AllOf(StartsWith("--ssl-ca-certs"), HasSubstr("ca.pem")));
}

}  // namespace
}  // namespace octet::server
