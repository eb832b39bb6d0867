// SPDX-License-Identifier: MIT
#include "weft/tls/context.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>
#include <string_view>

#include "callbacks.h"
#include "snapshot.h"
#include "weft/base/assert.h"
#include "weft/tls/error.h"

namespace weft::inline v0::tls {

namespace {

using detail::made;

std::unexpected<std::error_code> no(Error error) {
  ERR_clear_error();
  return std::unexpected(make_error_code(error));
}

// Forward secrecy and AEAD, as TLS 1.3 has them anyway.
constexpr const char* kCiphersOf12 = "ECDHE+AESGCM:ECDHE+CHACHA20";
// Sessions are good for contexts that say the same here and can read the ticket.
constexpr std::string_view kSessionContext = "weft";

int number_of(Version version) {
  return version == Version::tls_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION;
}

std::string on_the_wire(const std::vector<std::string>& protocols) {
  std::string wire;
  for (const std::string& protocol : protocols) {
    if (protocol.empty() || protocol.size() > 255) {
      weft::detail::throw_usage_error("tls: the name of an ALPN protocol has 1 to 255 bytes");
    }
    wire += static_cast<char>(protocol.size());
    wire += protocol;
  }
  return wire;
}

// Calls use(certificate) for each in `pem`. Returns: how many there were, or -1 if something else was.
template <class Use>
int for_each_certificate(std::string_view pem, Use use) {
  detail::OwnedBio bio = detail::bio_over(pem);
  int count = 0;
  while (true) {
    detail::OwnedCertificate certificate(
        PEM_read_bio_X509_AUX(bio.get(), nullptr, detail::no_passphrase, nullptr));
    if (!certificate) break;
    use(std::move(certificate));
    ++count;
  }
  bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return at_end ? count : -1;
}

Result<void> use_identity(SSL_CTX& context, const Identity& identity) {
  bool used = true;
  bool first = true;
  int count = for_each_certificate(identity.certificate_pem, [&](detail::OwnedCertificate each) {
    if (std::exchange(first, false)) {
      used = SSL_CTX_use_certificate(&context, each.get()) == 1;
    } else {
      used = used && SSL_CTX_add1_chain_cert(&context, each.get()) == 1;
    }
  });
  if (count < 1 || !used) return no(Error::bad_certificate);
  detail::OwnedBio bio = detail::bio_over(identity.key_pem);
  detail::OwnedKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, detail::no_passphrase, nullptr));
  if (!key) return no(Error::bad_key);
  if (X509_check_private_key(SSL_CTX_get0_certificate(&context), key.get()) != 1) {
    return no(Error::key_does_not_match);
  }
  if (SSL_CTX_use_PrivateKey(&context, key.get()) != 1) return no(Error::bad_key);
  return {};
}

Result<void> add_roots(SSL_CTX& context, std::string_view pem) {
  X509_STORE* store = SSL_CTX_get_cert_store(&context);
  // Who is named here vouches for itself: an intermediate, or a self-signed server, needs no root of its own.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  bool added = true;
  int count = for_each_certificate(pem, [&](detail::OwnedCertificate each) {
    added = added && X509_STORE_add_cert(store, each.get()) == 1;
  });
  if (count < 1 || !added) return no(Error::bad_roots);
  return {};
}

// The names that a client may choose its certificate by.
Result<void> name_roots(SSL_CTX& context, std::string_view pem) {
  bool added = true;
  for_each_certificate(pem, [&](detail::OwnedCertificate each) {
    added = added && SSL_CTX_add_client_CA(&context, each.get()) == 1;
  });
  if (!added) return no(Error::bad_roots);
  return {};
}

detail::OwnedContext bare_context(const Versions& versions) {
  detail::OwnedContext context(made(SSL_CTX_new(TLS_method())));
  SSL_CTX& bare = *context;
  SSL_CTX_set_min_proto_version(&bare, number_of(versions.from));
  SSL_CTX_set_max_proto_version(&bare, number_of(versions.to));
  SSL_CTX_set_options(&bare, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // An idle connection gives its record buffers back.
  SSL_CTX_set_mode(&bare, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
  if (SSL_CTX_set_cipher_list(&bare, kCiphersOf12) != 1) throw std::bad_alloc();
  return context;
}

}  // namespace

namespace detail {

Result<void> ContextCell::set_up(SSL_CTX& context, Snapshot& snapshot,
                                 const ClientOptions& options) {
  if (options.system_roots && SSL_CTX_set_default_verify_paths(&context) != 1) {
    return no(Error::bad_roots);
  }
  if (!options.roots_pem.empty()) {
    Result<void> added = add_roots(context, options.roots_pem);
    if (!added) return added;
  }
  snapshot.verifies = !options.dangerously_accept_any_certificate;
  SSL_CTX_set_verify(&context, snapshot.verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  // 0: it was done.
  if (!snapshot.alpn.empty() &&
      SSL_CTX_set_alpn_protos(&context,
                              reinterpret_cast<const unsigned char*>(snapshot.alpn.data()),
                              static_cast<unsigned>(snapshot.alpn.size())) != 0) {
    throw std::bad_alloc();
  }
  if (options.resume_sessions) {
    // A new one with every reload: a session that is resumed shows the certificate that it began with.
    snapshot.sessions = std::make_shared<SessionCache>();
    SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(&context, EngineCallbacks::keep_session);
  } else {
    SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_OFF);
  }
  return {};
}

Result<void> ContextCell::set_up(SSL_CTX& context, Snapshot& snapshot,
                                 const ServerOptions& options) {
  if (options.client_certificate != ClientCertificate::not_asked) {
    Result<void> added = add_roots(context, options.client_roots_pem);
    if (added) added = name_roots(context, options.client_roots_pem);
    if (!added) return added;
    bool required = options.client_certificate == ClientCertificate::required;
    SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       nullptr);
  }
  if (!snapshot.alpn.empty()) {
    SSL_CTX_set_alpn_select_cb(&context, EngineCallbacks::choose_alpn, &snapshot);
  }
  // Tickets only: what a server would have to remember, it would have to bound.
  SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_SERVER | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_set_session_id_context(&context,
                                 reinterpret_cast<const unsigned char*>(kSessionContext.data()),
                                 static_cast<unsigned>(kSessionContext.size()));
  if (options.resume_sessions) {
    keep_ticket_keys(context);
  } else {
    SSL_CTX_set_options(&context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(&context, 0);
  }
  return {};
}

void ContextCell::keep_ticket_keys(SSL_CTX& context) {
  std::shared_ptr<const Snapshot> last = now();
  if (!last) return;
  long size = SSL_CTX_get_tlsext_ticket_keys(last->context.get(), nullptr, 0);
  std::string keys(static_cast<std::size_t>(size), '\0');
  if (SSL_CTX_get_tlsext_ticket_keys(last->context.get(), keys.data(), size) == 1) {
    SSL_CTX_set_tlsext_ticket_keys(&context, keys.data(), size);
  }
  OPENSSL_cleanse(keys.data(), keys.size());
}

Result<std::shared_ptr<const Snapshot>> ContextCell::build(
    const std::optional<Identity>& identity) {
  auto snapshot = std::make_shared<Snapshot>();
  Result<void> done = std::visit(
      [&](const auto& options) -> Result<void> {
        snapshot->context = bare_context(options.versions);
        snapshot->alpn = on_the_wire(options.alpn);
        if (identity) {
          Result<void> used = use_identity(*snapshot->context, *identity);
          if (!used) return used;
        }
        return set_up(*snapshot->context, *snapshot, options);
      },
      options_);
  ERR_clear_error();
  if (!done) return std::unexpected(done.error());
  return snapshot;
}

Result<void> ContextCell::renew(std::optional<Identity> identity) {
  std::scoped_lock one(renewing_);
  Result<std::shared_ptr<const Snapshot>> next = build(identity);
  if (!next) return std::unexpected(next.error());
  std::scoped_lock lock(mutex_);
  snapshot_.swap(*next);  // the last one is let go of when the lock is
  return {};
}

}  // namespace detail

Result<ClientContext> ClientContext::create(ClientOptions options) {
  std::optional<Identity> identity = std::move(options.identity);
  auto cell = std::make_shared<detail::ContextCell>(std::move(options));
  Result<void> done = cell->renew(std::move(identity));
  if (!done) return std::unexpected(done.error());
  return ClientContext(std::move(cell));
}
Result<void> ClientContext::reload(Identity identity) const {
  return cell_->renew(std::move(identity));
}
std::chrono::nanoseconds ClientContext::handshake_timeout() const noexcept {
  return cell_->handshake_timeout();
}
std::size_t ClientContext::session_count() const noexcept { return cell_->session_count(); }

Result<ServerContext> ServerContext::create(ServerOptions options) {
  Identity identity = std::move(options.identity);
  auto cell = std::make_shared<detail::ContextCell>(std::move(options));
  Result<void> done = cell->renew(std::move(identity));
  if (!done) return std::unexpected(done.error());
  return ServerContext(std::move(cell));
}
Result<void> ServerContext::reload(Identity identity) const {
  return cell_->renew(std::move(identity));
}
std::chrono::nanoseconds ServerContext::handshake_timeout() const noexcept {
  return cell_->handshake_timeout();
}

}  // namespace weft::inline v0::tls
