// SPDX-License-Identifier: MIT
#pragma once
// What OpenSSL calls back, by its own conventions.
#include "openssl.h"
#include "weft/tls/engine.h"

namespace weft::inline v0::tls::detail {

struct EngineCallbacks {
  // The BIO between an Engine and its SSL. One object for both ways.
  static BIO* make_bio(Engine& engine);
  static int read(BIO* bio, char* into, std::size_t room, std::size_t* count) noexcept;
  static int write(BIO* bio, const char* from, std::size_t size, std::size_t* count) noexcept;
  static long control(BIO* bio, int what, long number, void* pointer) noexcept;

  // A server chooses; `snapshot` is a Snapshot. No choice is a fatal alert.
  static int choose_alpn(SSL*, const unsigned char** out, unsigned char* out_size,
                         const unsigned char* in, unsigned in_size, void* snapshot) noexcept;
  // A client got a session. Returns: 1 if it was kept.
  static int keep_session(SSL* ssl, SSL_SESSION* session) noexcept;
};

}  // namespace weft::inline v0::tls::detail
