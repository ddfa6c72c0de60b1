#include "tests/support/tls_client.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>

namespace octet::testing {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Cert = std::unique_ptr<X509, decltype(&X509_free)>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

Bio reader(const std::string& text) {
  return Bio(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
}
Cert read_certificate(const std::string& text) {
  return Cert(::PEM_read_bio_X509(reader(text).get(), nullptr, nullptr, nullptr), &X509_free);
}
Key read_key(const std::string& text) {
  return Key(::PEM_read_bio_PrivateKey(reader(text).get(), nullptr, nullptr, nullptr), &EVP_PKEY_free);
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

void add_extension(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = ::X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  if (extension == nullptr) throw std::runtime_error("no such certificate extension");
  ::X509_add_ext(certificate, extension, -1);
  ::X509_EXTENSION_free(extension);
}

// authority null: signed by itself.
Certificate make(const std::string& name, const Certificate* authority) {
  static std::atomic<long> serial = 1;
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const Cert certificate(::X509_new(), &X509_free);
  X509* x = certificate.get();
  ::X509_set_version(x, X509_VERSION_3);
  ::ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
  ::X509_gmtime_adj(X509_getm_notBefore(x), -3600);
  ::X509_gmtime_adj(X509_getm_notAfter(x), 24 * 3600);
  ::X509_set_pubkey(x, key.get());
  X509_NAME* subject = ::X509_get_subject_name(x);
  ::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name.data()),
                               static_cast<int>(name.size()), -1, 0);
  const Cert issuer = authority != nullptr ? read_certificate(authority->certificate) : Cert(nullptr, &X509_free);
  const Key issuer_key = authority != nullptr ? read_key(authority->key) : Key(nullptr, &EVP_PKEY_free);
  ::X509_set_issuer_name(x, issuer ? ::X509_get_subject_name(issuer.get()) : subject);
  add_extension(x, issuer ? issuer.get() : x, NID_basic_constraints, issuer ? "CA:FALSE" : "critical,CA:TRUE");
  add_extension(x, issuer ? issuer.get() : x, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
  ::X509_sign(x, issuer_key ? issuer_key.get() : key.get(), ::EVP_sha256());
  const Bio out(::BIO_new(::BIO_s_mem()), &BIO_free), key_out(::BIO_new(::BIO_s_mem()), &BIO_free);
  ::PEM_write_bio_X509(out.get(), x);
  ::PEM_write_bio_PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {text_of(out.get()), text_of(key_out.get())};
}

int connect_to(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{60, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return fd;
}

}  // namespace

Certificate make_authority(const std::string& name) { return make(name, nullptr); }

Certificate make_certificate(const std::string& name, const Certificate& authority) { return make(name, &authority); }

TlsClient::TlsClient(int port, const TlsClientOptions& options) : context_(::SSL_CTX_new(::TLS_client_method())) {
  ::signal(SIGPIPE, SIG_IGN);
  ::SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
  if (options.highest_version != 0) {
    ::SSL_CTX_set_max_proto_version(context_, options.highest_version);
    ::SSL_CTX_set_security_level(context_, 0);
  }
  if (!options.authority.empty()) {
    ::X509_STORE_add_cert(::SSL_CTX_get_cert_store(context_), read_certificate(options.authority).get());
    ::SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
  }
  if (!options.own.certificate.empty()) {
    ::SSL_CTX_use_certificate(context_, read_certificate(options.own.certificate).get());
    ::SSL_CTX_use_PrivateKey(context_, read_key(options.own.key).get());
  }
  ssl_ = ::SSL_new(context_);
  if (!options.protocols.empty()) {
    ::SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(options.protocols.data()),
                          static_cast<unsigned>(options.protocols.size()));
  }
  ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl_), "127.0.0.1");
  fd_ = connect_to(port);
  ::SSL_set_fd(ssl_, fd_);
  connected_ = ::SSL_connect(ssl_) == 1;
}

TlsClient::~TlsClient() {
  close();
  ::SSL_free(ssl_);
  ::SSL_CTX_free(context_);
}

void TlsClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string TlsClient::server_name() const {
  const Cert certificate(::SSL_get1_peer_certificate(ssl_), &X509_free);
  char name[256] = "";
  if (certificate) {
    ::X509_NAME_get_text_by_NID(::X509_get_subject_name(certificate.get()), NID_commonName, name, sizeof name);
  }
  return name;
}

std::string TlsClient::version() const { return ::SSL_get_version(ssl_); }

std::string TlsClient::protocol() const {
  const unsigned char* data = nullptr;
  unsigned int size = 0;
  ::SSL_get0_alpn_selected(ssl_, &data, &size);
  return {reinterpret_cast<const char*>(data), size};
}

bool TlsClient::send(std::string_view bytes) {
  std::size_t sent = 0;
  return ::SSL_write_ex(ssl_, bytes.data(), bytes.size(), &sent) == 1 && sent == bytes.size();
}

std::string TlsClient::read_some(std::size_t limit) {
  std::string out(limit, '\0');
  std::size_t got = 0;
  if (::SSL_read_ex(ssl_, out.data(), out.size(), &got) != 1) got = 0;
  out.resize(got);
  return out;
}

std::string TlsClient::read_all() {
  std::string all;
  for (std::string piece = read_some(); !piece.empty(); piece = read_some()) all += piece;
  return all;
}

bool TlsClient::closed_properly() const { return (::SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0; }

}  // namespace octet::testing
