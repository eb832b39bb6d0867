// SPDX-License-Identifier: MIT
#include "weft/tls/identity.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "support/tls_engines.h"
#include "weft/base/assert.h"
#include "weft/tls/error.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace weft::tls;

TEST(TlsIdentity, SelfSignedIsForEachOfItsNames) {
  Identity identity = self_signed({"weft.test", "*.weft.test", "10.1.2.3", "::1"});
  ClientContext client =
      client_context({.system_roots = false, .roots_pem = identity.certificate_pem});
  ServerContext server = server_context({.identity = identity});
  for (const char* host : {"weft.test", "www.weft.test", "10.1.2.3", "::1"}) {
    EnginePair pair(client, server, host);
    pair.shake_hands();
    EXPECT_TRUE(pair.done()) << host << ": " << pair.client.failure();
  }
  EnginePair wrong(client, server, "localhost");
  wrong.shake_hands();
  EXPECT_EQ(wrong.client_error, Error::certificate_wrong_host);
}

TEST(TlsIdentity, NoTwoAreTheSame) {
  Identity one = self_signed({"localhost"}), other = self_signed({"localhost"});
  EXPECT_NE(one.certificate_pem, other.certificate_pem);
  EXPECT_NE(one.key_pem, other.key_pem);
}

TEST(TlsIdentity, SelfSignedIsNoAuthority) {
  Identity identity = self_signed({"localhost"});
  BIO* bio = BIO_new_mem_buf(identity.certificate_pem.data(), -1);
  X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  ASSERT_NE(certificate, nullptr);
  EXPECT_EQ(X509_check_ca(certificate), 0);
  X509_free(certificate);
  BIO_free(bio);
}

TEST(TlsIdentity, WithoutANameOrWithOneThatIsNoneItIsAMistake) {
  EXPECT_THROW(static_cast<void>(self_signed({})), UsageError);
  EXPECT_THROW(static_cast<void>(self_signed({"a,IP:1.2.3.4"})), UsageError);
}

TEST(TlsIdentity, IsLoadedFromFiles) {
  Identity identity = self_signed({"localhost"});
  std::string certificate = ::testing::TempDir() + "weft_identity_certificate.pem";
  std::string key = ::testing::TempDir() + "weft_identity_key.pem";
  std::ofstream(certificate) << identity.certificate_pem;
  std::ofstream(key) << identity.key_pem;
  Identity loaded = or_throw(load_identity(certificate, key));
  EXPECT_EQ(loaded.certificate_pem, identity.certificate_pem);
  EXPECT_EQ(loaded.key_pem, identity.key_pem);
  std::remove(key.c_str());
  Result<Identity> gone = load_identity(certificate, key);
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error(), std::errc::no_such_file_or_directory);
  std::remove(certificate.c_str());
}

// OpenSSL would ask for the passphrase at the terminal, and the program would seem to hang.
TEST(TlsIdentity, AKeyWithAPassphraseIsRefusedAndNobodyIsAsked) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  BIO* bio = BIO_new(BIO_s_mem());
  char secret[] = "secret";
  ASSERT_EQ(PEM_write_bio_PKCS8PrivateKey(bio, key, EVP_aes_128_cbc(), secret, 6, nullptr, nullptr),
            1);
  char* bytes = nullptr;
  long count = BIO_get_mem_data(bio, &bytes);
  Identity identity = self_signed({"localhost"});
  identity.key_pem.assign(bytes, static_cast<std::size_t>(count));
  BIO_free(bio);
  EVP_PKEY_free(key);
  EXPECT_EQ(ServerContext::create({.identity = identity}).error(), Error::bad_key);
}

TEST(TlsError, EachHasItsOwnWords) {
  std::string last;
  for (int code = 1; code <= static_cast<int>(Error::out_of_memory); ++code) {
    std::string words = std::error_code(code, tls::error_category()).message();
    EXPECT_FALSE(words.starts_with("unknown error")) << code;
    EXPECT_NE(words, last);
    last = words;
  }
  EXPECT_EQ(std::error_code(99, tls::error_category()).message(), "unknown error 99");
}

}  // namespace
