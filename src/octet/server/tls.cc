#include "octet/server/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <sys/stat.h>

#include "octet/base/file.h"
#include "octet/base/log.h"

namespace octet::server {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;
constexpr std::chrono::seconds kLookPeriod{1};
constexpr unsigned char kSessionContext[] = "octet";

// The first error is the cause; later ones say who noticed.
std::string openssl_error() {
  const unsigned long code = ::ERR_get_error();
  ::ERR_clear_error();
  const char* reason = ::ERR_reason_error_string(code);
  return reason != nullptr ? reason : fmt::format("OpenSSL error {:x}", code);
}

std::unexpected<Error> refuse(std::string_view flag, const std::string& value) {
  return fail(ErrorCode::kInvalid, "{} {}: {}", flag, value, openssl_error());
}

// OpenSSL's own messages about files name neither file nor reason.
Result<> check_readable(std::string_view flag, const std::string& path) {
  const auto text = read_file(path, kMaxFileBytes);
  if (!text) return within(flag, text.error());
  return {};
}

// A pass phrase would be asked for on the terminal, which a server may not have.
int no_pass_phrase(char*, int, int, void*) { return -1; }

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
                    unsigned int in_size, void*) {
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (::SSL_select_next_proto(&chosen, out_size, kHttp11, sizeof kHttp11 - 1, in, in_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Result<> load_pair(SSL_CTX* context, const TlsOptions& options) {
  OCTET_TRY_VOID(check_readable("--ssl-certfile", options.cert_file));
  if (::SSL_CTX_use_certificate_chain_file(context, options.cert_file.c_str()) != 1) {
    return refuse("--ssl-certfile", options.cert_file);
  }
  const bool own_file = !options.key_file.empty();
  const std::string& key = own_file ? options.key_file : options.cert_file;
  const std::string_view flag = own_file ? "--ssl-keyfile" : "--ssl-certfile";
  OCTET_TRY_VOID(check_readable(flag, key));
  // A key of the certificate's kind is compared with it at once.
  const bool loaded = ::SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) == 1;
  const bool mismatch = !loaded && ERR_GET_REASON(::ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH;
  if (!loaded && !mismatch) {
    if (!own_file) {
      ::ERR_clear_error();
      return fail(ErrorCode::kInvalid, "--ssl-certfile {}: holds no private key, and there is no --ssl-keyfile", key);
    }
    return refuse(flag, key);
  }
  if (mismatch || ::SSL_CTX_check_private_key(context) != 1) {
    ::ERR_clear_error();
    return fail(ErrorCode::kInvalid, "{} {}: is not the key of the certificate {}", flag, key, options.cert_file);
  }
  return {};
}

Result<> check_clients(SSL_CTX* context, const TlsOptions& options) {
  if (!options.ca_file.empty()) {
    OCTET_TRY_VOID(check_readable("--ssl-ca-certs", options.ca_file));
    if (::SSL_CTX_load_verify_locations(context, options.ca_file.c_str(), nullptr) != 1) {
      return refuse("--ssl-ca-certs", options.ca_file);
    }
    // Tells clients whose certificates are taken.
    ::SSL_CTX_set_client_CA_list(context, ::SSL_load_client_CA_file(options.ca_file.c_str()));
  } else if (options.cert_reqs != 0) {
    return fail(ErrorCode::kInvalid, "--ssl-cert-reqs {}: needs --ssl-ca-certs to check certificates with",
                options.cert_reqs);
  }
  const int required = options.cert_reqs == 2 ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
  ::SSL_CTX_set_verify(context, options.cert_reqs == 0 ? SSL_VERIFY_NONE : SSL_VERIFY_PEER | required, nullptr);
  return {};
}

Result<std::shared_ptr<SSL_CTX>> make_context(const TlsOptions& options) {
  ::ERR_clear_error();
  const std::shared_ptr<SSL_CTX> context(::SSL_CTX_new(::TLS_server_method()), ::SSL_CTX_free);
  if (!context) return fail(ErrorCode::kExhausted, "TLS: {}", openssl_error());
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF |
                                           SSL_OP_CIPHER_SERVER_PREFERENCE);
  ::SSL_CTX_set_mode(context.get(),
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  ::SSL_CTX_set_session_id_context(context.get(), kSessionContext, sizeof kSessionContext - 1);
  ::SSL_CTX_set_default_passwd_cb(context.get(), no_pass_phrase);
  ::SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  OCTET_TRY_VOID(load_pair(context.get(), options));
  OCTET_TRY_VOID(check_clients(context.get(), options));
  if (!options.ciphers.empty() && ::SSL_CTX_set_cipher_list(context.get(), options.ciphers.c_str()) != 1) {
    return refuse("--ssl-ciphers", options.ciphers);
  }
  ::ERR_clear_error();
  return context;
}

}  // namespace

TlsSession::~TlsSession() { ::SSL_free(ssl_); }

TlsSession::State TlsSession::state_after(int result) {
  if (result > 0) return State::kDone;
  switch (::SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return State::kWantsRead;
    case SSL_ERROR_WANT_WRITE:
      return State::kWantsWrite;
    case SSL_ERROR_ZERO_RETURN:
      return State::kEnded;
    default:
      broken_ = true;
      return ERR_GET_REASON(::ERR_peek_error()) == SSL_R_HTTP_REQUEST ? State::kPlainHttp : State::kFailed;
  }
}

TlsSession::State TlsSession::read(std::span<char> into, std::size_t& taken) {
  ::ERR_clear_error();
  return state_after(::SSL_read_ex(ssl_, into.data(), into.size(), &taken));
}

TlsSession::State TlsSession::write(std::string_view bytes, std::size_t& taken) {
  ::ERR_clear_error();
  return state_after(::SSL_write_ex(ssl_, bytes.data(), bytes.size(), &taken));
}

bool TlsSession::has_pending() const { return ::SSL_pending(ssl_) > 0; }

bool TlsSession::established() const { return ::SSL_is_init_finished(ssl_) == 1; }

void TlsSession::close() {
  if (broken_ || closed_ || !established()) return;
  closed_ = true;
  ::ERR_clear_error();
  ::SSL_shutdown(ssl_);
}

Result<std::shared_ptr<TlsContext>> TlsContext::load(const TlsOptions& options) {
  std::shared_ptr<TlsContext> context(new TlsContext(options));
  OCTET_TRY_VOID(context->reload());
  return context;
}

TlsContext::Stamps TlsContext::look() const {
  Stamps stamps{};
  const std::string* const files[] = {&options_.cert_file, &options_.key_file, &options_.ca_file};
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    struct stat status{};
    if (files[i]->empty() || ::stat(files[i]->c_str(), &status) != 0) continue;
    const std::int64_t seconds = status.st_mtim.tv_sec;
    stamps[i] = {status.st_ino, status.st_size, seconds * 1'000'000'000 + status.st_mtim.tv_nsec};
  }
  return stamps;
}

Result<> TlsContext::reload() {
  const Stamps stamps = look();  // before the files are read: what changes meanwhile is read once more
  auto context = make_context(options_);
  const std::lock_guard lock(mutex_);
  stamps_ = stamps;
  if (!context) return std::unexpected(context.error());
  context_ = *std::move(context);
  return {};
}

void TlsContext::reload_if_changed() {
  {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now < next_look_) return;
    next_look_ = now + kLookPeriod;
    if (look() == stamps_) return;
  }
  if (const auto reloaded = reload()) {
    log_info("the certificate was read again");
  } else {
    // Half a new pair, most likely; the other half changes the stamps once more.
    log_warning("the certificate stays what it was: {}", reloaded.error().message);
  }
}

std::unique_ptr<TlsSession> TlsContext::start(int socket) {
  if (options_.watch_files) reload_if_changed();
  std::shared_ptr<SSL_CTX> context;
  {
    const std::lock_guard lock(mutex_);
    context = context_;
  }
  SSL* ssl = ::SSL_new(context.get());
  if (ssl == nullptr || ::SSL_set_fd(ssl, socket) != 1) {
    ::SSL_free(ssl);
    return nullptr;
  }
  ::SSL_set_accept_state(ssl);
  return std::make_unique<TlsSession>(ssl);
}

}  // namespace octet::server
