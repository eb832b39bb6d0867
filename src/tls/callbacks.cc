// SPDX-License-Identifier: MIT
#include "callbacks.h"

#include <openssl/err.h>

#include <algorithm>
#include <cstring>

#include "snapshot.h"

namespace weft::inline v0::tls::detail {

namespace {

const BIO_METHOD* method() {
  static const BIO_METHOD* const made_once = [] {
    BIO_METHOD* method = made(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft"));
    BIO_meth_set_read_ex(method, EngineCallbacks::read);
    BIO_meth_set_write_ex(method, EngineCallbacks::write);
    BIO_meth_set_ctrl(method, EngineCallbacks::control);
    return method;
  }();
  return made_once;
}

Engine& engine_of(BIO* bio) { return *static_cast<Engine*>(BIO_get_data(bio)); }

}  // namespace

BIO* EngineCallbacks::make_bio(Engine& engine) {
  BIO* bio = made(BIO_new(method()));
  BIO_set_data(bio, &engine);
  BIO_set_init(bio, 1);
  return bio;
}

int EngineCallbacks::read(BIO* bio, char* into, std::size_t room, std::size_t* count) noexcept {
  Engine& engine = engine_of(bio);
  BIO_clear_retry_flags(bio);
  *count = std::min(room, engine.input_.size());
  if (*count == 0) {
    engine.starved_ = true;
    BIO_set_retry_read(bio);
    return 0;
  }
  std::memcpy(into, engine.input_.data(), *count);
  engine.input_ = engine.input_.subspan(*count);
  return 1;
}

int EngineCallbacks::write(BIO* bio, const char* from, std::size_t size,
                           std::size_t* count) noexcept {
  Engine& engine = engine_of(bio);
  BIO_clear_retry_flags(bio);
  *count = size;
  if (engine.ended_) return 1;  // I3
  try {
    engine.output_.put(std::as_bytes(std::span(from, size)));
    return 1;
  } catch (const std::bad_alloc&) {
    *count = 0;
    ERR_raise(ERR_LIB_BIO, ERR_R_MALLOC_FAILURE);
    return 0;
  }
}

long EngineCallbacks::control(BIO*, int what, long, void*) noexcept {
  return what == BIO_CTRL_FLUSH ? 1 : 0;
}

int EngineCallbacks::choose_alpn(SSL*, const unsigned char** out, unsigned char* out_size,
                                 const unsigned char* in, unsigned in_size,
                                 void* snapshot) noexcept {
  const std::string& ours = static_cast<const Snapshot*>(snapshot)->alpn;
  unsigned char* chosen = nullptr;
  int found =
      SSL_select_next_proto(&chosen, out_size, reinterpret_cast<const unsigned char*>(ours.data()),
                            static_cast<unsigned>(ours.size()), in, in_size);
  // Without a common one it points to our first, which the client did not offer (RFC 7301, 3.2).
  if (found != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

int EngineCallbacks::keep_session(SSL* ssl, SSL_SESSION* session) noexcept {
  const Engine& engine = *static_cast<const Engine*>(SSL_get_app_data(ssl));
  if (engine.host_.empty()) return 0;
  OwnedSession kept(session);  // on 1 it is ours
  try {
    engine.snapshot_->sessions->put(engine.host_, std::move(kept));
  } catch (const std::bad_alloc&) {
    // put() has not taken it, or has: it is freed either way.
  }
  return 1;
}

}  // namespace weft::inline v0::tls::detail
