// Listening sockets: names to addresses, and errors that say which address and port.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "octet/base/error.h"

namespace octet::server {

// A socket that listens. Closes it.
class Listener {
 public:
  Listener(int fd, int family, int protocol, int port, std::string url)
      : fd_(fd), family_(family), protocol_(protocol), port_(port), url_(std::move(url)) {}
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) = delete;
  ~Listener();

  int family() const { return family_; }
  int protocol() const { return protocol_; }
  int port() const { return port_; }               // the real one; 0 for a Unix socket
  const std::string& url() const { return url_; }  // "http://[::1]:8000", "unix:/run/octet.sock"
  int release();                                   // the descriptor, which the caller now owns

 private:
  int fd_, family_, protocol_, port_;
  std::string url_;
};

// Listens on every address that host names (an address, a name, "" for all), with port 0 on one that is free. "::"
// takes IPv4 too. Ends within a second, with an error that names host and port.
Result<std::vector<Listener>> listen_tcp(const std::string& host, std::uint16_t port);
// A socket file that nobody listens on is replaced.
Result<Listener> listen_unix(const std::string& path);

}  // namespace octet::server
