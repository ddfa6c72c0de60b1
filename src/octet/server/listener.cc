#include "octet/server/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <optional>
#include <system_error>
#include <thread>

namespace octet::server {
namespace {

constexpr int kListenBacklog = 4096;
constexpr std::chrono::milliseconds kLookupTimeout{800};

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  int family = 0;
};

struct Lookup {
  int code = 0;
  std::vector<Address> addresses;
};

std::string system_error() { return std::generic_category().message(errno); }

Lookup look_up(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  Lookup lookup;
  lookup.code = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (lookup.code != 0) return lookup;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    Address address;
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.length = at->ai_addrlen;
    address.family = at->ai_family;
    lookup.addresses.push_back(address);
  }
  ::freeaddrinfo(found);
  return lookup;
}

// A name server that does not answer must not hold up the start: the lookup then goes on by itself until it ends.
Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port) {
  Lookup lookup = look_up(host, AI_NUMERICHOST);
  if (lookup.code != 0) {
    std::promise<Lookup> promise;
    std::future<Lookup> future = promise.get_future();
    std::thread([host, answer = std::move(promise)]() mutable { answer.set_value(look_up(host, 0)); }).detach();
    if (future.wait_for(kLookupTimeout) != std::future_status::ready) {
      return fail(ErrorCode::kIo, "cannot listen on {}:{}: no answer to the lookup of the host name", host, port);
    }
    lookup = future.get();
  }
  if (lookup.code != 0 || lookup.addresses.empty()) {
    return fail(ErrorCode::kInvalid, "cannot listen on {}:{}: {}", host, port, ::gai_strerror(lookup.code));
  }
  return std::move(lookup.addresses);
}

void set_port(Address& address, std::uint16_t port) {
  if (address.family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(address.storage).sin_port = htons(port);
  }
}

std::string address_text(const Address& address) {
  char text[NI_MAXHOST] = "?";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address.storage), address.length, text, sizeof text, nullptr, 0,
                NI_NUMERICHOST);
  return address.family == AF_INET6 ? fmt::format("[{}]", text) : text;
}

Result<Listener> open_address(Address address, std::uint16_t port) {
  set_port(address, port);
  const auto refuse = [&](const char* step) {
    return fail(ErrorCode::kIo, "cannot listen on {}:{}: {}: {}", address_text(address), port, step, system_error());
  };
  const int fd = ::socket(address.family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
  if (fd < 0) return refuse("socket");
  Listener guard(fd, address.family, IPPROTO_TCP, 0, {});
  const int on = 1, off = 0;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family == AF_INET6) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) return refuse("bind");
  if (::listen(fd, kListenBacklog) != 0) return refuse("listen");
  Address bound = address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) != 0) return refuse("getsockname");
  const std::uint16_t real = ntohs(bound.family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound.storage).sin6_port
                                                            : reinterpret_cast<sockaddr_in&>(bound.storage).sin_port);
  return Listener(guard.release(), address.family, IPPROTO_TCP, real,
                  fmt::format("http://{}:{}", address_text(address), real));
}

bool ipv6_missing() {
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
  if (fd < 0) return true;
  ::close(fd);
  return false;
}

}  // namespace

Listener::Listener(Listener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      family_(other.family_),
      protocol_(other.protocol_),
      port_(other.port_),
      url_(std::move(other.url_)) {}

Listener::~Listener() {
  if (fd_ >= 0) ::close(fd_);
}

int Listener::release() { return std::exchange(fd_, -1); }

Result<std::vector<Listener>> listen_tcp(const std::string& host, std::uint16_t port) {
  const std::string name = !host.empty() ? host : ipv6_missing() ? "0.0.0.0" : "::";
  OCTET_TRY(std::vector<Address> addresses, resolve(name, port));
  std::vector<Listener> listeners;
  std::optional<Error> first_error;
  for (const Address& address : addresses) {
    auto listener = open_address(address, port);
    if (!listener) {
      // A name may stand for an address family that this machine has switched off.
      if (!first_error) first_error = listener.error();
      if (errno == EADDRINUSE) return std::unexpected(listener.error());
      continue;
    }
    if (port == 0) port = static_cast<std::uint16_t>(listener->port());
    listeners.push_back(*std::move(listener));
  }
  if (listeners.empty()) return std::unexpected(*first_error);
  return listeners;
}

Result<Listener> listen_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::kInvalid, "cannot listen on {}: the path of a Unix socket has at most {} bytes", path,
                sizeof address.sun_path - 1);
  }
  path.copy(address.sun_path, path.size());
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(ErrorCode::kIo, "cannot listen on {}: socket: {}", path, system_error());
  Listener listener(fd, AF_UNIX, 0, 0, "unix:" + path);
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
    const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool refused = ::connect(probe, raw, sizeof address) != 0 && errno == ECONNREFUSED;
    ::close(probe);
    if (refused) ::unlink(path.c_str());
  }
  if (::bind(fd, raw, sizeof address) != 0 || ::listen(fd, kListenBacklog) != 0) {
    return fail(ErrorCode::kIo, "cannot listen on {}: {}", path, system_error());
  }
  return listener;
}

}  // namespace octet::server
