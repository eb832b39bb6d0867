// SPDX-License-Identifier: MIT
#include "weft/tls/engine.h"

#include <arpa/inet.h>
#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "callbacks.h"
#include "reason.h"
#include "snapshot.h"
#include "weft/base/assert.h"
#include "weft/tls/error.h"

namespace weft::inline v0::tls {

namespace {

// The plaintext of record after record, taken from the front of a list of parts.
class Gather {
 public:
  explicit Gather(std::span<const net::Part> parts) noexcept : parts_(parts) { skip(); }

  [[nodiscard]] bool empty() const noexcept { return parts_.empty(); }
  // The next bytes, up to kRecordBytes: where they lie, if that is in one part; else copied to `scratch`.
  // Requires: not empty.
  [[nodiscard]] std::span<const std::byte> next(std::span<std::byte, kRecordBytes> scratch) {
    std::span<const std::byte> piece = take(kRecordBytes);
    if (piece.size() == kRecordBytes || empty()) return piece;
    std::size_t count = 0;
    while (true) {
      std::memcpy(scratch.data() + count, piece.data(), piece.size());
      count += piece.size();
      if (count == kRecordBytes || empty()) return scratch.first(count);
      piece = take(kRecordBytes - count);
    }
  }

 private:
  std::span<const std::byte> take(std::size_t most) noexcept {
    std::span<const std::byte> rest = parts_.front().bytes().subspan(offset_);
    std::span<const std::byte> piece = rest.first(std::min(rest.size(), most));
    offset_ += piece.size();
    skip();
    return piece;
  }
  void skip() noexcept {
    while (!parts_.empty() && offset_ == parts_.front().size()) {
      parts_ = parts_.subspan(1);
      offset_ = 0;
    }
  }

  std::span<const net::Part> parts_;
  std::size_t offset_ = 0;  // in the first
};

bool is_address(const std::string& host) {
  in6_addr any;
  return ::inet_pton(AF_INET, host.c_str(), &any) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

std::string name_text(const X509_NAME* name) {
  detail::OwnedBio bio(detail::made(BIO_new(BIO_s_mem())));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  char* bytes = nullptr;
  long count = BIO_get_mem_data(bio.get(), &bytes);
  return std::string(bytes, static_cast<std::size_t>(count));
}

std::string address_text(const ASN1_OCTET_STRING& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  int family = ASN1_STRING_length(&address) == sizeof(in_addr) ? AF_INET : AF_INET6;
  if (family == AF_INET6 && ASN1_STRING_length(&address) != sizeof(in6_addr)) return {};
  const char* done = ::inet_ntop(family, ASN1_STRING_get0_data(&address), text.data(), text.size());
  return done ? std::string(done) : std::string();
}

std::vector<std::string> alternative_names(const X509& certificate) {
  detail::Owned<GENERAL_NAMES, GENERAL_NAMES_free> found(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> names;
  for (int i = 0; i < sk_GENERAL_NAME_num(found.get()); ++i) {
    const GENERAL_NAME& name = *sk_GENERAL_NAME_value(found.get(), i);
    if (name.type == GEN_DNS) {
      names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name.d.dNSName)),
                         static_cast<std::size_t>(ASN1_STRING_length(name.d.dNSName)));
    } else if (name.type == GEN_IPADD) {
      names.push_back(address_text(*name.d.iPAddress));
    }
  }
  return names;
}

std::string fingerprint(const X509& certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  if (X509_digest(&certificate, EVP_sha256(), digest.data(), &size) != 1) throw std::bad_alloc();
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned char each : std::span(digest).first(size)) {
    text += kDigits[each >> 4];
    text += kDigits[each & 15];
  }
  return text;
}

}  // namespace

Engine::Engine(std::shared_ptr<const detail::Snapshot> snapshot, std::chrono::nanoseconds timeout,
               bool server)
    : snapshot_(std::move(snapshot)), timeout_(timeout), server_(server) {
  detail::Owned<SSL, SSL_free> ssl(detail::made(SSL_new(snapshot_->context.get())));
  BIO* bio = detail::EngineCallbacks::make_bio(*this);
  SSL_set_bio(ssl.get(), bio, bio);  // takes it
  SSL_set_app_data(ssl.get(), this);
  if (server_) {
    SSL_set_accept_state(ssl.get());
  } else {
    SSL_set_connect_state(ssl.get());
  }
  ssl_ = ssl.release();
}

Engine::Engine(const ServerContext& context)
    : Engine(context.cell_->now(), context.handshake_timeout(), true) {}

Engine::Engine(const ClientContext& context, std::string host)
    : Engine(context.cell_->now(), context.handshake_timeout(), false) {
  host_ = std::move(host);
  // The last dot of a complete name is DNS's affair.
  if (host_.ends_with('.')) host_.pop_back();
  if (host_.empty() && snapshot_->verifies) {
    weft::detail::throw_usage_error("tls: a client needs the name of the host, to verify it");
  }
  if (!host_.empty()) expect_host();
  if (!host_.empty() && snapshot_->sessions) resume_session();
}

Engine::~Engine() {
  // Otherwise OpenSSL spoils the session, which somebody may want to resume, of a connection that did not end by the book.
  SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  SSL_free(ssl_);
}

void Engine::expect_host() {
  X509_VERIFY_PARAM* expected = SSL_get0_param(ssl_);
  // OpenSSL would take it for any name below.
  if (host_.starts_with('.')) {
    weft::detail::throw_usage_error("tls: the name of a host does not begin with a dot");
  }
  bool done;
  if (is_address(host_)) {
    done = X509_VERIFY_PARAM_set1_ip_asc(expected, host_.c_str()) == 1;
  } else {
    // RFC 9525: names are in the subjectAltName, and a star stands for a whole label.
    X509_VERIFY_PARAM_set_hostflags(
        expected, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    done = X509_VERIFY_PARAM_set1_host(expected, host_.data(), host_.size()) == 1 &&
           SSL_set_tlsext_host_name(ssl_, host_.c_str()) == 1;  // RFC 6066, 3: no addresses
  }
  if (!done) {
    ERR_clear_error();
    weft::detail::throw_usage_error("tls: this cannot be the name of a host");
  }
}

void Engine::resume_session() {
  detail::OwnedSession session = snapshot_->sessions->take(host_);
  if (session) SSL_set_session(ssl_, session.get());
}

// --- The user's side ------------------------------------------------------------------------------

Result<bool> Engine::handshake() {
  if (failure_) return std::unexpected(failure_);
  if (handshaken_) return true;
  starved_ = false;
  if (SSL_do_handshake(ssl_) == 1) {
    handshaken_ = true;
    return true;
  }
  if (!starved_) return fail_by_openssl();
  if (input_ended_) return fail(make_error_code(Error::closed_in_handshake), {});
  return false;
}

Result<std::optional<std::size_t>> Engine::read(std::span<std::byte> buffer) {
  check_handshaken();
  if (buffer.empty()) return 0;
  std::size_t count = 0;
  while (count < buffer.size() && !failure_ && !peer_ended_) {
    // OpenSSL reads no further than the record at hand: with nothing fed and nothing decrypted it could only say so.
    if (input_.empty() && SSL_pending(ssl_) == 0) break;
    if (ERR_peek_error() != 0)
      ERR_clear_error();  // somebody else's; SSL_get_error() would take it for ours
    starved_ = false;
    std::size_t more = 0;
    int done = SSL_read_ex(ssl_, buffer.data() + count, buffer.size() - count, &more);
    within_message_ = starved_ && SSL_in_init(ssl_) == 1;
    if (done == 1) {
      count += more;
    } else if (!starved_ && SSL_get_error(ssl_, done) == SSL_ERROR_ZERO_RETURN) {
      peer_ended_ = true;
      input_ = {};  // there is nothing after the end
    } else if (!starved_) {
      static_cast<void>(fail_by_openssl());  // what came before it is delivered first
    }
  }
  if (count > 0) return count;
  if (failure_) return std::unexpected(failure_);
  if (peer_ended_) return 0;
  if (input_ended_) return fail(make_error_code(Error::truncated), {});
  return std::nullopt;
}

bool Engine::may_have_plaintext() const noexcept {
  return !input_.empty() || SSL_pending(ssl_) > 0 || !handshaken_ || failure_ || peer_ended_ ||
         input_ended_;
}

Result<std::size_t> Engine::write(std::span<const net::Part> parts) {
  check_handshaken();
  if (failure_) return std::unexpected(failure_);
  if (ended_) return std::unexpected(std::make_error_code(std::errc::broken_pipe));
  Result<bool> can = finish_message();
  if (!can) return std::unexpected(can.error());
  if (!*can) return 0;
  std::array<std::byte, kRecordBytes> scratch;  // not cleared, and mostly not touched
  std::size_t taken = 0;
  Gather rest(parts);
  while (!rest.empty() && output_.size() + kRecordBytes + kRecordGrowthMax <= kOutputBytes) {
    std::span<const std::byte> plain = rest.next(scratch);
    std::size_t written = 0;
    if (SSL_write_ex(ssl_, plain.data(), plain.size(), &written) != 1) return fail_by_openssl();
    taken += written;
  }
  return taken;
}

Result<void> Engine::end() {
  check_handshaken();
  if (failure_) return std::unexpected(failure_);
  if (ended_) return {};
  Result<bool> can = finish_message();
  if (!can) return std::unexpected(can.error());
  if (!*can) {
    return std::unexpected(std::make_error_code(std::errc::resource_unavailable_try_again));
  }
  if (SSL_shutdown(ssl_) < 0) return fail_by_openssl();
  ended_ = true;
  return {};
}

Result<bool> Engine::finish_message() {
  if (!SSL_in_init(ssl_)) return true;
  ERR_clear_error();
  starved_ = false;
  bool done = SSL_do_handshake(ssl_) == 1;
  within_message_ = !done && starved_;
  if (done) return true;
  if (!starved_) return fail_by_openssl();
  if (input_ended_) return fail(make_error_code(Error::truncated), {});
  return false;
}

void Engine::check_handshaken() const {
  if (handshaken_ || failure_) return;
  weft::detail::throw_usage_error("tls: handshake() comes before everything else");
}

// --- What went wrong ------------------------------------------------------------------------------

std::unexpected<std::error_code> Engine::fail(std::error_code error, std::string_view detail) {
  failure_ = error;
  failure_text_ = server_ ? "TLS client" : "TLS server " + host_;
  failure_text_ += ": " + error.message();
  if (!detail.empty()) failure_text_.append(" (").append(detail).append(")");
  return std::unexpected(failure_);
}

std::unexpected<std::error_code> Engine::fail_by_openssl() {
  unsigned long last = ERR_peek_last_error();
  long verified = SSL_get_verify_result(ssl_);
  ERR_clear_error();
  if (detail::is_verification(last) && verified != X509_V_OK) {
    return fail(make_error_code(detail::verification_error(verified)),
                X509_verify_cert_error_string(verified));
  }
  const char* reason = ERR_reason_error_string(last);
  return fail(make_error_code(detail::openssl_error(last)), reason ? reason : "");
}

// --- What was agreed on ---------------------------------------------------------------------------

Version Engine::version() const noexcept {
  return SSL_version(ssl_) >= TLS1_3_VERSION ? Version::tls_1_3 : Version::tls_1_2;
}

std::string_view Engine::cipher() const noexcept {
  const char* name = SSL_get_cipher_name(ssl_);
  return name ? name : "";
}

std::string_view Engine::alpn() const noexcept {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_, &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

bool Engine::is_resumed() const noexcept { return SSL_session_reused(ssl_) == 1; }

std::string_view Engine::host() const noexcept {
  if (!server_) return host_;
  const char* name = SSL_get_servername(ssl_, TLSEXT_NAMETYPE_host_name);
  return name ? name : "";
}

std::optional<PeerCertificate> Engine::peer_certificate() const {
  const X509* certificate = SSL_get0_peer_certificate(ssl_);
  if (!certificate) return std::nullopt;
  return PeerCertificate{.subject = name_text(X509_get_subject_name(certificate)),
                         .issuer = name_text(X509_get_issuer_name(certificate)),
                         .names = alternative_names(*certificate),
                         .sha256 = fingerprint(*certificate)};
}

}  // namespace weft::inline v0::tls
