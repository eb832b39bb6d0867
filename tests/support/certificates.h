// SPDX-License-Identifier: MIT
#pragma once
// Certificates for tests: an authority, and what it vouches for.
//
//     Authority authority("Test root");
//     tls::Identity server = authority.issue("CN=server", {"localhost"});
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/tls/identity.h"

namespace weft::test {

class Authority {
 public:
  explicit Authority(const std::string& name) : key_(EVP_EC_gen("P-256")) {
    certificate_ = sign(name, key_.get(), nullptr, "", {});
  }
  [[nodiscard]] std::string pem() const { return pem_of(*certificate_); }

  // `alternatives` as OpenSSL writes them: "DNS:localhost,IP:127.0.0.1".
  [[nodiscard]] tls::Identity issue(const std::string& name, const std::string& alternatives,
                                    tls::SelfSignedOptions options = {}) const {
    Key key(EVP_EC_gen("P-256"));
    Certificate made = sign(name, key.get(), certificate_.get(), alternatives, options);
    return {.certificate_pem = pem_of(*made), .key_pem = pem_of(*key)};
  }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(BIO* bio) const { BIO_free(bio); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;

  static std::string text_of(BIO* bio) {
    char* bytes = nullptr;
    long count = BIO_get_mem_data(bio, &bytes);
    return std::string(bytes, static_cast<std::size_t>(count));
  }
  static std::string pem_of(X509& certificate) {
    std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(bio.get(), &certificate);
    return text_of(bio.get());
  }
  static std::string pem_of(EVP_PKEY& key) {
    std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_PKCS8PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr);
    return text_of(bio.get());
  }
  static void extend(X509* certificate, X509* issuer, int id, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value);
    if (!extension) throw std::runtime_error(std::string("no such extension: ") + value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }

  // By the authority; by itself, without an issuer.
  Certificate sign(const std::string& name, EVP_PKEY* key, X509* issuer,
                   const std::string& alternatives, tls::SelfSignedOptions options) const {
    static long serial = 1000;
    Certificate made(X509_new());
    X509* bare = made.get();
    X509_set_version(bare, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(bare), ++serial);
    using std::chrono::system_clock;
    ASN1_TIME_set(X509_getm_notBefore(bare), system_clock::to_time_t(options.valid_from));
    ASN1_TIME_set(X509_getm_notAfter(bare),
                  system_clock::to_time_t(options.valid_from + options.valid_for));
    X509_set_pubkey(bare, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(bare), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(name.data()),
                               static_cast<int>(name.size()), -1, 0);
    X509_set_issuer_name(bare, X509_get_subject_name(issuer ? issuer : bare));
    extend(bare, issuer ? issuer : bare, NID_basic_constraints,
           issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (!alternatives.empty()) {
      extend(bare, issuer, NID_subject_alt_name, alternatives.c_str());
    }
    if (X509_sign(bare, key_.get(), EVP_sha256()) == 0) throw std::runtime_error("X509_sign");
    return made;
  }

  Key key_;
  Certificate certificate_;
};

}  // namespace weft::test
