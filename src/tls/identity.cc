// SPDX-License-Identifier: MIT
#include "weft/tls/identity.h"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string_view>

#include "openssl.h"
#include "weft/base/assert.h"

namespace weft::inline v0::tls {

namespace {

using detail::made;

void check(int done) {
  if (done != 1) throw std::bad_alloc();
}

Result<std::string> text_of(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (file && text) return std::move(text).str();
  return std::unexpected(std::error_code(errno ? errno : EIO, std::system_category()));
}

bool is_address(const std::string& name) {
  in6_addr any;
  return ::inet_pton(AF_INET, name.c_str(), &any) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), &any) == 1;
}

void add_extension(X509& certificate, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, &certificate, &certificate, nullptr, nullptr, 0);
  detail::Owned<X509_EXTENSION, X509_EXTENSION_free> extension(
      made(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str())));
  check(X509_add_ext(&certificate, extension.get(), -1));
}

void set_serial(X509& certificate) {
  // Browsers refuse two certificates of one issuer with the same number.
  detail::OwnedNumber number(made(BN_new()));
  check(BN_rand(number.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY));
  made(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)));
}

void set_names(X509& certificate, const std::vector<std::string>& names) {
  X509_NAME* subject = X509_get_subject_name(&certificate);
  // A common name has 64 characters at most; what counts is the subjectAltName.
  std::string common = names.front().substr(0, 64);
  check(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(common.data()),
                                   static_cast<int>(common.size()), -1, 0));
  check(X509_set_issuer_name(&certificate, subject));
  std::string alternatives;
  for (const std::string& name : names) {
    if (name.find_first_of(",:\n") != name.npos && !is_address(name)) {
      weft::detail::throw_usage_error("tls::self_signed(): a name is a host's or an IP address");
    }
    if (!alternatives.empty()) alternatives += ',';
    alternatives += (is_address(name) ? "IP:" : "DNS:") + name;
  }
  add_extension(certificate, NID_subject_alt_name, alternatives);
}

std::string text_of(BIO& bio) {
  char* bytes = nullptr;
  long count = BIO_get_mem_data(&bio, &bytes);
  return std::string(bytes, static_cast<std::size_t>(count));
}

}  // namespace

Result<Identity> load_identity(const std::string& certificate_path, const std::string& key_path) {
  Result<std::string> certificate = text_of(certificate_path);
  if (!certificate) return std::unexpected(certificate.error());
  Result<std::string> key = text_of(key_path);
  if (!key) return std::unexpected(key.error());
  return Identity{.certificate_pem = std::move(*certificate), .key_pem = std::move(*key)};
}

Identity self_signed(const std::vector<std::string>& names, SelfSignedOptions options) {
  if (names.empty()) {
    weft::detail::throw_usage_error("tls::self_signed(): a certificate needs a name");
  }
  detail::OwnedKey key(made(EVP_EC_gen("P-256")));
  detail::OwnedCertificate certificate(made(X509_new()));
  check(X509_set_version(certificate.get(), X509_VERSION_3));
  set_serial(*certificate);
  using std::chrono::system_clock;
  std::time_t from = system_clock::to_time_t(options.valid_from);
  std::time_t until = system_clock::to_time_t(options.valid_from + options.valid_for);
  made(ASN1_TIME_set(X509_getm_notBefore(certificate.get()), from));
  made(ASN1_TIME_set(X509_getm_notAfter(certificate.get()), until));
  check(X509_set_pubkey(certificate.get(), key.get()));
  set_names(*certificate, names);
  // Its own root, and good for nothing but to be a server or a client.
  add_extension(*certificate, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(*certificate, NID_key_usage, "critical,digitalSignature");
  add_extension(*certificate, NID_ext_key_usage, "serverAuth,clientAuth");
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) throw std::bad_alloc();

  detail::OwnedBio certificate_text(made(BIO_new(BIO_s_mem())));
  detail::OwnedBio key_text(made(BIO_new(BIO_s_mem())));
  check(PEM_write_bio_X509(certificate_text.get(), certificate.get()));
  check(PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                      nullptr));
  return Identity{.certificate_pem = text_of(*certificate_text), .key_pem = text_of(*key_text)};
}

}  // namespace weft::inline v0::tls
