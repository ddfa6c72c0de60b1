// TLS for connections: certificates from files, and the TLS state of one socket. OpenSSL works on the socket itself,
// which never blocks: Asio's own TLS stream writes until all is written, and connections here wait on one timer for
// reading, writing and news together.
#pragma once
#include <sys/types.h>

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "octet/base/error.h"

struct ssl_ctx_st;
struct ssl_st;

namespace octet::server {

// Named as the flags are.
struct TlsOptions {
  std::string cert_file;     // PEM: the certificate and those that signed it
  std::string key_file;      // PEM, without a pass phrase; empty: it stands in cert_file
  std::string ca_file;       // PEM: who signs clients' certificates
  int cert_reqs = 0;         // of clients: 0 none, 1 checked where there is one, 2 required
  std::string ciphers;       // OpenSSL's list, for TLS 1.2; empty: OpenSSL's choice
  bool watch_files = false;  // files that changed are read again
};

// The TLS state of one connected socket. Used on the connection's thread.
class TlsSession {
 public:
  enum class State {
    kDone,        // bytes were taken
    kWantsRead,   // nothing until the socket can be read
    kWantsWrite,  // nothing until the socket can be written
    kEnded,       // the client sent its last byte
    kFailed,
    kPlainHttp,  // instead of TLS came an HTTP request
  };

  explicit TlsSession(ssl_st* ssl) : ssl_(ssl) {}
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // These do the handshake first.
  State read(std::span<char> into, std::size_t& taken);
  State write(std::string_view bytes, std::size_t& taken);
  bool has_pending() const;  // read() has more without the socket
  bool established() const;  // the handshake is done
  void close();              // tells the client that no more comes, as far as that goes without waiting

 private:
  State state_after(int result);

  ssl_st* ssl_;
  bool broken_ = false, closed_ = false;
};

// Thread-safe.
class TlsContext {
 public:
  // Errors name flag and file.
  static Result<std::shared_ptr<TlsContext>> load(const TlsOptions& options);

  // Reads the files again, for connections that come later. After an error the certificate stays what it was.
  Result<> reload();
  // The server's side of a connection; with watch_files it first looks, once a second at most, for changed files.
  // Null: no memory.
  std::unique_ptr<TlsSession> start(int socket);

 private:
  struct Stamp {
    ino_t inode = 0;
    off_t size = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::array<Stamp, 3>;

  explicit TlsContext(TlsOptions options) : options_(std::move(options)) {}
  Stamps look() const;
  void reload_if_changed();

  const TlsOptions options_;
  std::mutex mutex_;
  std::shared_ptr<ssl_ctx_st> context_;
  Stamps stamps_{};
  std::chrono::steady_clock::time_point next_look_{};
};

}  // namespace octet::server
