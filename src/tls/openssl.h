// SPDX-License-Identifier: MIT
#pragma once
// OpenSSL's objects, owned.
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <climits>
#include <memory>
#include <new>
#include <string_view>

namespace weft::inline v0::tls::detail {

template <auto kFree>
struct Freed {
  void operator()(auto* object) const noexcept { kFree(object); }
};
template <class T, auto kFree>
using Owned = std::unique_ptr<T, Freed<kFree>>;

using OwnedBio = Owned<BIO, BIO_free>;
using OwnedCertificate = Owned<X509, X509_free>;
using OwnedContext = Owned<SSL_CTX, SSL_CTX_free>;
using OwnedKey = Owned<EVP_PKEY, EVP_PKEY_free>;
using OwnedNumber = Owned<BIGNUM, BN_free>;
using OwnedSession = Owned<SSL_SESSION, SSL_SESSION_free>;
using OwnedStore = Owned<X509_STORE, X509_STORE_free>;

// OpenSSL's makers return null when there is no memory.
template <class T>
T* made(T* object) {
  if (!object) throw std::bad_alloc();
  return object;
}

// To read from. Requires: `text` outlives it.
inline OwnedBio bio_over(std::string_view text) {
  if (text.size() > INT_MAX) throw std::bad_alloc();
  return OwnedBio(made(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))));
}

// A key with a passphrase is refused; without this OpenSSL would ask at the terminal.
inline int no_passphrase(char*, int, int, void*) noexcept { return -1; }

}  // namespace weft::inline v0::tls::detail
