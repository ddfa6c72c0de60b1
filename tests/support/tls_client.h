// Certificates made on the spot, and a blocking TLS client. For tests.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;

namespace octet::testing {

// PEM texts. Its certificate is for 127.0.0.1 and localhost.
struct Certificate {
  std::string certificate, key;
};

Certificate make_authority(const std::string& name);
Certificate make_certificate(const std::string& name, const Certificate& authority);

struct TlsClientOptions {
  std::string authority;    // PEM; the server's certificate must be signed by it
  Certificate own;          // shown to the server where not empty
  int highest_version = 0;  // TLS1_1_VERSION and so on; 0: any
  std::string protocols;    // offered through ALPN, in its wire form
};

class TlsClient {
 public:
  TlsClient(int port, const TlsClientOptions& options);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool connected() const { return connected_; }  // the handshake succeeded
  std::string server_name() const;               // common name of the server's certificate
  std::string version() const;                   // "TLSv1.3"
  std::string protocol() const;                  // chosen through ALPN
  bool send(std::string_view bytes);
  // At most `limit` bytes; empty at the end, after a failure, or after 60 s.
  std::string read_some(std::size_t limit = 16384);
  std::string read_all();
  bool closed_properly() const;  // the server said that no more comes
  void close();                  // without a word

 private:
  ssl_ctx_st* context_;
  ssl_st* ssl_;
  int fd_ = -1;
  bool connected_ = false;
};

}  // namespace octet::testing
