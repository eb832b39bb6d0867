// SPDX-License-Identifier: MIT
// What a context decides: whom to trust, what to agree on, what to remember.
#include "weft/tls/context.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/temporary_directory.h"
#include "support/tls_engines.h"
#include "weft/base/assert.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace weft::tls;
using namespace std::chrono_literals;

constexpr Versions kOnly12{Version::tls_1_2, Version::tls_1_2};
constexpr Versions kOnly13{Version::tls_1_3, Version::tls_1_3};

// What the client says of a server with this certificate.
std::error_code verdict(const Identity& server, const std::string& host = "localhost",
                        ClientOptions client = client_options(), std::string* why = nullptr) {
  EnginePair pair(client_context(client), server_context({.identity = server}), host);
  pair.shake_hands();
  if (why) *why = pair.client.failure();
  EXPECT_EQ(pair.client_done, !pair.client_error);
  if (pair.client_error) {
    EXPECT_TRUE(pair.server_error == Error::own_certificate_refused ||
                pair.server_error == Error::peer_reported)
        << "the server is told: " << pair.server_error.message();
  }
  return pair.client_error;
}

// --- Verification ---------------------------------------------------------------------------------

TEST(TlsVerification, TheRightHostIsAccepted) {
  EXPECT_EQ(verdict(server_identity(), "localhost"), std::error_code());
  EXPECT_EQ(verdict(server_identity(), "LOCALHOST"), std::error_code());
  EXPECT_EQ(verdict(server_identity(), "localhost."), std::error_code());
  EXPECT_EQ(verdict(server_identity(), "127.0.0.1"), std::error_code());
  EXPECT_EQ(verdict(server_identity(), "::1"), std::error_code());
}

TEST(TlsVerification, AWrongHostIsRefusedAndNamed) {
  std::string why;
  EXPECT_EQ(verdict(server_identity(), "example.org", client_options(), &why),
            Error::certificate_wrong_host);
  EXPECT_NE(why.find("example.org"), why.npos) << why;
  EXPECT_NE(why.find("hostname mismatch"), why.npos) << why;
  EXPECT_EQ(verdict(server_identity(), "127.0.0.2"), Error::certificate_wrong_host);
  EXPECT_EQ(verdict(server_identity(), "::2"), Error::certificate_wrong_host);
  EXPECT_EQ(verdict(server_identity(), "sub.localhost"), Error::certificate_wrong_host);
}

TEST(TlsVerification, OnlyTheSubjectAltNameCounts) {
  Identity by_common_name = authority().issue("localhost", "DNS:elsewhere.test");
  EXPECT_EQ(verdict(by_common_name), Error::certificate_wrong_host);
  Identity without = authority().issue("localhost", "");
  EXPECT_EQ(verdict(without), Error::certificate_wrong_host);
  // 127.0.0.1 as a name is not the address.
  Identity as_name = authority().issue("x", "DNS:127.0.0.1");
  EXPECT_EQ(verdict(as_name, "127.0.0.1"), Error::certificate_wrong_host);
}

TEST(TlsVerification, AStarStandsForOneWholeLabel) {
  Identity star = authority().issue("star", "DNS:*.example.org,DNS:pre*.example.net");
  EXPECT_EQ(verdict(star, "www.example.org"), std::error_code());
  EXPECT_EQ(verdict(star, "a.b.example.org"), Error::certificate_wrong_host);
  EXPECT_EQ(verdict(star, "example.org"), Error::certificate_wrong_host);
  EXPECT_EQ(verdict(star, "prefix.example.net"), Error::certificate_wrong_host);
}

TEST(TlsVerification, ExpiredAndNotYetValid) {
  auto now = std::chrono::system_clock::now();
  Identity expired =
      authority().issue("x", "DNS:localhost", {.valid_for = 1h, .valid_from = now - 2h});
  std::string why;
  EXPECT_EQ(verdict(expired, "localhost", client_options(), &why), Error::certificate_expired);
  EXPECT_NE(why.find("localhost"), why.npos) << why;
  EXPECT_NE(why.find("renew"), why.npos) << why;
  Identity future =
      authority().issue("x", "DNS:localhost", {.valid_for = 1h, .valid_from = now + 1h});
  EXPECT_EQ(verdict(future), Error::certificate_not_yet_valid);
}

TEST(TlsVerification, AnUnknownAuthorityAndASelfSignedCertificate) {
  Authority stranger("stranger");
  EXPECT_EQ(verdict(stranger.issue("x", "DNS:localhost")), Error::certificate_unknown_authority);
  Identity itself = self_signed({"localhost"});
  EXPECT_EQ(verdict(itself), Error::certificate_self_signed);
  ClientOptions trusting{.system_roots = false, .roots_pem = itself.certificate_pem};
  EXPECT_EQ(verdict(itself, "localhost", trusting), std::error_code());
  EXPECT_EQ(verdict(itself, "127.0.0.1", trusting), Error::certificate_wrong_host);
}

TEST(TlsVerification, IsOnByDefaultWithTheSystemsRoots) {
  EXPECT_EQ(verdict(server_identity(), "localhost", ClientOptions{}),
            Error::certificate_unknown_authority);
  ClientOptions both;
  both.roots_pem = authority().pem();
  EXPECT_EQ(verdict(server_identity(), "localhost", both), std::error_code());
}

// OpenSSL's environment says where the system has its roots.
TEST(TlsVerification, WhomTheSystemVouchesForIsAcceptedUnlessItIsNotAsked) {
  TemporaryDirectory scratch;
  const std::string path = scratch.file("roots.pem");
  std::ofstream(path) << authority().pem();
  const char* before = std::getenv("SSL_CERT_FILE");
  const std::string kept = before ? before : "";
  ::setenv("SSL_CERT_FILE", path.c_str(), 1);
  EXPECT_EQ(verdict(server_identity(), "localhost", ClientOptions{}), std::error_code());
  EXPECT_EQ(verdict(server_identity(), "example.org", ClientOptions{}),
            Error::certificate_wrong_host);
  ClientOptions others{.system_roots = false, .roots_pem = Authority("another root").pem()};
  EXPECT_EQ(verdict(server_identity(), "localhost", others), Error::certificate_unknown_authority);
  if (before) {
    ::setenv("SSL_CERT_FILE", kept.c_str(), 1);
  } else {
    ::unsetenv("SSL_CERT_FILE");
  }
}

TEST(TlsVerification, CanBeSwitchedOffByAnUglyName) {
  ClientOptions blind;
  blind.dangerously_accept_any_certificate = true;
  EXPECT_EQ(verdict(self_signed({"elsewhere"}), "localhost", blind), std::error_code());
  EXPECT_EQ(verdict(self_signed({"elsewhere"}), "", blind), std::error_code());
}

TEST(TlsVerification, AClientWithoutAHostIsAMistake) {
  ClientContext context = client_context();
  EXPECT_THROW(Engine(context, ""), UsageError);
  EXPECT_THROW(Engine(context, std::string("a\0b", 3)), UsageError);
}

TEST(TlsVerification, TheServerLearnsTheNameAndNoAddress) {
  EnginePair named(client_context(), server_context(), "localhost");
  named.shake_hands();
  EXPECT_EQ(named.server.host(), "localhost");
  EnginePair addressed(client_context(), server_context(), "127.0.0.1");
  addressed.shake_hands();
  ASSERT_TRUE(addressed.done());
  EXPECT_EQ(addressed.server.host(), "") << "RFC 6066, 3: no addresses in SNI";
}

TEST(TlsVerification, AChainIsSentWhole) {
  // The certificate, and behind it another that proves nothing here but must not disturb.
  Identity chain = server_identity();
  chain.certificate_pem += authority().pem();
  EXPECT_EQ(verdict(chain), std::error_code());
}

// --- What both must agree on ----------------------------------------------------------------------

TEST(TlsAgreement, AlpnIsTheServersPreference) {
  ClientOptions client = client_options();
  client.alpn = {"http/1.1", "h2"};
  ServerOptions server = server_options();
  server.alpn = {"h2", "http/1.1"};
  EnginePair pair(client_context(client), server_context(server));
  pair.shake_hands();
  ASSERT_TRUE(pair.done());
  EXPECT_EQ(pair.client.alpn(), "h2");
  EXPECT_EQ(pair.server.alpn(), "h2");
}

TEST(TlsAgreement, NoCommonProtocolIsAFatalAlertForBoth) {
  for (Versions versions : {kOnly12, kOnly13}) {
    ClientOptions client = client_options();
    client.alpn = {"ftp"};
    client.versions = versions;
    ServerOptions server = server_options();
    server.alpn = {"h2", "http/1.1"};
    EnginePair pair(client_context(client), server_context(server));
    pair.shake_hands();
    EXPECT_EQ(pair.server_error, Error::no_application_protocol);
    EXPECT_EQ(pair.client_error, Error::no_application_protocol) << "the alert says it";
  }
}

TEST(TlsAgreement, WhereOnlyOneSideHasAlpnThereIsNone) {
  ClientOptions client = client_options();
  client.alpn = {"h2"};
  EnginePair offered(client_context(client), server_context());
  offered.shake_hands();
  ASSERT_TRUE(offered.done());
  EXPECT_EQ(offered.client.alpn(), "");
  ServerOptions server = server_options();
  server.alpn = {"h2"};
  EnginePair expected(client_context(), server_context(server));
  expected.shake_hands();
  ASSERT_TRUE(expected.done());
  EXPECT_EQ(expected.server.alpn(), "");
}

TEST(TlsAgreement, AnAlpnNameThatNoWireCanCarryIsAMistake) {
  ClientOptions client = client_options();
  client.alpn = {""};
  EXPECT_THROW(static_cast<void>(ClientContext::create(client)), UsageError);
  client.alpn = {std::string(256, 'a')};
  EXPECT_THROW(static_cast<void>(ClientContext::create(client)), UsageError);
}

TEST(TlsAgreement, NoCommonVersion) {
  ClientOptions client = client_options();
  client.versions = kOnly13;
  ServerOptions server = server_options();
  server.versions = kOnly12;
  EnginePair pair(client_context(client), server_context(server));
  pair.shake_hands();
  EXPECT_EQ(pair.server_error, Error::no_common_version) << pair.server.failure();
  EXPECT_EQ(pair.client_error, Error::no_common_version) << pair.client.failure();
}

TEST(TlsAgreement, OldVersionsAreNotSpoken) {
  Engine server(server_context());
  EXPECT_EQ(SSL_get_min_proto_version(server.native()), TLS1_2_VERSION);
  Engine client(client_context(), "localhost");
  EXPECT_EQ(SSL_get_min_proto_version(client.native()), TLS1_2_VERSION);
  SSL_set_min_proto_version(client.native(), TLS1_VERSION);
  SSL_set_max_proto_version(client.native(), TLS1_1_VERSION);
  SSL_set_security_level(client.native(), 0);
  SSL_set_cipher_list(client.native(), "ALL:@SECLEVEL=0");
  EXPECT_FALSE(or_throw(client.handshake()));
  Wire wire;
  ASSERT_TRUE(wire.carry(client, server));
  EXPECT_EQ(server.handshake().error(), Error::no_common_version) << server.failure();
}

// --- Clients' certificates ------------------------------------------------------------------------

ServerOptions asking(ClientCertificate how) {
  ServerOptions options = server_options();
  options.client_certificate = how;
  options.client_roots_pem = authority().pem();
  return options;
}

TEST(TlsClientCertificate, WhoHasOneIsNamed) {
  for (Versions versions : {kOnly12, kOnly13}) {
    ClientOptions client = client_options();
    client.identity = authority().issue("alice", "DNS:alice.test");
    client.versions = versions;
    EnginePair pair(client_context(client), server_context(asking(ClientCertificate::required)));
    pair.shake_hands();
    ASSERT_TRUE(pair.done()) << pair.server.failure();
    std::optional<PeerCertificate> peer = pair.server.peer_certificate();
    ASSERT_TRUE(peer.has_value());
    EXPECT_EQ(peer->subject, "CN=alice");
    EXPECT_EQ(peer->issuer, "CN=weft test root");
    EXPECT_EQ(peer->names, std::vector<std::string>{"alice.test"});
    EXPECT_EQ(peer->sha256.size(), 64u);
    std::optional<PeerCertificate> server = pair.client.peer_certificate();
    ASSERT_TRUE(server.has_value());
    EXPECT_EQ(server->names, (std::vector<std::string>{"localhost", "127.0.0.1", "::1"}));
  }
}

TEST(TlsClientCertificate, WhoHasNoneIsRefusedWhereOneIsRequired) {
  EnginePair pair(client_context(), server_context(asking(ClientCertificate::required)));
  pair.shake_hands();
  EXPECT_EQ(pair.server_error, Error::certificate_missing);
  // A client of TLS 1.3 is done by then, and hears of it when it reads.
  EXPECT_EQ(receive(pair.server, pair.client, pair.back).error, Error::own_certificate_refused)
      << pair.client.failure();
  EnginePair optional(client_context(), server_context(asking(ClientCertificate::optional)));
  optional.shake_hands();
  EXPECT_TRUE(optional.done());
  EXPECT_FALSE(optional.server.peer_certificate().has_value());
}

TEST(TlsClientCertificate, WhomNobodyVouchesForIsRefused) {
  for (ClientCertificate how : {ClientCertificate::required, ClientCertificate::optional}) {
    ClientOptions client = client_options();
    client.identity = self_signed({"mallory"});
    EnginePair pair(client_context(client), server_context(asking(how)));
    pair.shake_hands();
    EXPECT_EQ(pair.server_error, Error::certificate_self_signed);
    EXPECT_EQ(receive(pair.server, pair.client, pair.back).error, Error::own_certificate_refused);
  }
}

TEST(TlsClientCertificate, ServersThatDoNotAskSeeNone) {
  ClientOptions client = client_options();
  client.identity = authority().issue("alice", "");
  EnginePair pair(client_context(client), server_context());
  pair.shake_hands();
  EXPECT_TRUE(pair.done());
  EXPECT_FALSE(pair.server.peer_certificate().has_value());
}

// --- Sessions -------------------------------------------------------------------------------------

// A connection that carries a byte back, so that the client has read its tickets. Returns: whether it was resumed.
bool connects(const ClientContext& client, const ServerContext& server,
              const std::string& host = "localhost") {
  EnginePair pair(client, server, host);
  pair.shake_hands();
  EXPECT_TRUE(pair.done()) << pair.client.failure() << pair.server.failure();
  if (!pair.done()) return false;
  write(pair.server, "x");
  EXPECT_EQ(receive(pair.server, pair.client, pair.back).text, "x");
  EXPECT_EQ(pair.client.is_resumed(), pair.server.is_resumed());
  EXPECT_TRUE(pair.client.peer_certificate().has_value()) << "resumed, too";
  return pair.client.is_resumed();
}

TEST(TlsSessions, AreResumedByHostInBothVersions) {
  for (Versions versions : {kOnly12, kOnly13}) {
    ClientOptions options = client_options();
    options.versions = versions;
    ClientContext client = client_context(options);
    ServerContext server = server_context();
    EXPECT_FALSE(connects(client, server)) << "there is none yet";
    EXPECT_GE(client.session_count(), 1u);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(connects(client, server));
    EXPECT_FALSE(connects(client, server, "127.0.0.1")) << "another host";
    EXPECT_TRUE(connects(client, server, "127.0.0.1"));
    EXPECT_LE(client.session_count(), 2 * kSessionsPerHostMax);
    EXPECT_FALSE(connects(client_context(options), server)) << "another context";
  }
}

TEST(TlsSessions, OfTls13AreUsedOnce) {
  ClientContext client = client_context();
  ServerContext server = server_context();
  connects(client, server);
  std::size_t before = client.session_count();
  Engine engine(client, "localhost");
  EXPECT_EQ(client.session_count(), before - 1);
}

TEST(TlsSessions, CanBeSwitchedOffOnEitherSide) {
  for (Versions versions : {kOnly12, kOnly13}) {
    ServerOptions without = server_options();
    without.resume_sessions = false;
    without.versions = versions;
    ClientContext client = client_context();
    ServerContext server = server_context(without);
    EXPECT_FALSE(connects(client, server));
    EXPECT_FALSE(connects(client, server));
  }
  ClientOptions forgetful = client_options();
  forgetful.resume_sessions = false;
  ClientContext client = client_context(forgetful);
  ServerContext server = server_context();
  EXPECT_FALSE(connects(client, server));
  EXPECT_FALSE(connects(client, server));
  EXPECT_EQ(client.session_count(), 0u);
}

TEST(TlsSessions, AServerThatForgotMakesANewOne) {
  ClientContext client = client_context();
  EXPECT_FALSE(connects(client, server_context()));
  ServerContext restarted = server_context();
  EXPECT_FALSE(connects(client, restarted));
  EXPECT_TRUE(connects(client, restarted));
}

TEST(TlsSessions, TheClientsCertificateIsRememberedWithIt) {
  ClientOptions options = client_options();
  options.identity = authority().issue("alice", "");
  ClientContext client = client_context(options);
  ServerContext server = server_context(asking(ClientCertificate::required));
  EXPECT_FALSE(connects(client, server));
  EnginePair pair(client, server);
  pair.shake_hands();
  ASSERT_TRUE(pair.done()) << pair.server.failure();
  EXPECT_TRUE(pair.server.is_resumed());
  EXPECT_EQ(pair.server.peer_certificate()->subject, "CN=alice");
}

TEST(TlsSessions, AConnectionThatIsCutLeavesItsSessionGood) {
  ClientContext client = client_context();
  ServerContext server = server_context();
  {
    EnginePair pair(client, server);
    pair.shake_hands();
    write(pair.server, "x");
    receive(pair.server, pair.client, pair.back);
    pair.client.feed_end();
    EXPECT_EQ(receive(pair.server, pair.client, pair.back).error, Error::truncated);
  }
  EXPECT_TRUE(connects(client, server));
}

TEST(TlsSessions, TheNumberOfHostsIsBounded) {
  ClientOptions options = client_options();
  options.dangerously_accept_any_certificate = true;
  options.versions = kOnly12;  // quicker, and one session per connection
  ClientContext client = client_context(options);
  ServerContext server = server_context();
  for (std::size_t i = 0; i < kSessionHostsMax + 10; ++i) {
    EnginePair pair(client, server, "host" + std::to_string(i));
    pair.shake_hands();
    ASSERT_TRUE(pair.done());
  }
  EXPECT_EQ(client.session_count(), kSessionHostsMax);
}

// --- Reload ---------------------------------------------------------------------------------------

std::string shown(const ClientContext& client, const ServerContext& server) {
  EnginePair pair(client, server);
  pair.shake_hands();
  EXPECT_TRUE(pair.done()) << pair.client.failure();
  return pair.done() ? pair.client.peer_certificate()->subject : "";
}

TEST(TlsReload, NewHandshakesShowTheNewCertificateAndOpenOnesGoOn) {
  ClientOptions options = client_options();
  options.resume_sessions = false;
  ClientContext client = client_context(options);
  ServerContext server = server_context();
  EnginePair open(client, server);
  open.shake_hands();
  EnginePair begun(client, server);
  EXPECT_FALSE(or_throw(begun.client.handshake()));
  or_throw(server.reload(authority().issue("renewed", "DNS:localhost")));
  EXPECT_EQ(shown(client, server), "CN=renewed");
  write(open.client, "still");
  EXPECT_EQ(receive(open.client, open.server, open.there).text, "still");
  begun.shake_hands();
  EXPECT_TRUE(begun.done());
  EXPECT_EQ(begun.client.peer_certificate()->subject, "CN=server") << "as it began";
}

TEST(TlsReload, SessionsSurviveIt) {
  ClientContext client = client_context();
  ServerContext server = server_context();
  EXPECT_FALSE(connects(client, server));
  or_throw(server.reload(authority().issue("renewed", "DNS:localhost")));
  EXPECT_TRUE(connects(client, server));
}

TEST(TlsReload, WhatCannotBeUsedIsRefusedAndNothingChanges) {
  ClientOptions options = client_options();
  options.resume_sessions = false;
  ClientContext client = client_context(options);
  ServerContext server = server_context();
  Identity good = authority().issue("other", "DNS:localhost");
  Identity mixed{.certificate_pem = good.certificate_pem, .key_pem = server_identity().key_pem};
  EXPECT_EQ(server.reload(mixed).error(), Error::key_does_not_match);
  EXPECT_EQ(server.reload({}).error(), Error::bad_certificate);
  EXPECT_EQ(server.reload({.certificate_pem = "nonsense", .key_pem = good.key_pem}).error(),
            Error::bad_certificate);
  EXPECT_EQ(server.reload({.certificate_pem = good.certificate_pem, .key_pem = ""}).error(),
            Error::bad_key);
  std::string broken = good.certificate_pem;
  broken[60] = '!';
  EXPECT_EQ(server.reload({.certificate_pem = broken, .key_pem = good.key_pem}).error(),
            Error::bad_certificate);
  // A good one, and behind it one that is not.
  EXPECT_EQ(
      server.reload({.certificate_pem = good.certificate_pem + broken, .key_pem = good.key_pem})
          .error(),
      Error::bad_certificate);
  EXPECT_EQ(shown(client, server), "CN=server");
}

TEST(TlsReload, AClientCanRenewItsOwnToo) {
  ClientOptions options = client_options();
  options.identity = authority().issue("alice", "");
  options.resume_sessions = false;
  ClientContext client = client_context(options);
  or_throw(client.reload(authority().issue("alice the second", "")));
  EnginePair pair(client, server_context(asking(ClientCertificate::required)));
  pair.shake_hands();
  ASSERT_TRUE(pair.done());
  EXPECT_EQ(pair.server.peer_certificate()->subject, "CN=alice the second");
}

TEST(TlsReload, UnderLoadEveryConnectionSeesOneWholeIdentity) {
  ServerContext server = server_context();
  std::vector<Identity> identities;
  for (int i = 0; i < 4; ++i) {
    identities.push_back(authority().issue("number " + std::to_string(i), "DNS:localhost"));
  }
  std::jthread reloader([&](std::stop_token stop) {
    for (std::size_t i = 0; !stop.stop_requested(); ++i) {
      or_throw(server.reload(identities[i % identities.size()]));
    }
  });
  auto load = [&] {
    ClientContext client = client_context();
    for (int i = 0; i < 100; ++i) connects(client, server);
  };
  std::jthread other(load);
  load();
}

TEST(TlsContexts, TwoOfThemDoNotMeet) {
  ServerContext one = server_context();
  ServerOptions second = server_options();
  second.identity = authority().issue("second", "DNS:localhost");
  second.alpn = {"h2"};
  ServerContext two = server_context(second);
  ClientOptions options = client_options();
  options.alpn = {"h2"};
  ClientContext client = client_context(options);
  EXPECT_EQ(shown(client, one), "CN=server");
  EXPECT_EQ(shown(client, two), "CN=second");
  connects(client, one);
  EXPECT_FALSE(connects(client, two)) << "a ticket of the other";
  EnginePair pair(client, two);
  pair.shake_hands();
  EXPECT_EQ(pair.server.alpn(), "h2");
}

TEST(TlsContexts, RootsThatAreNoneAreRefused) {
  ClientOptions options;
  options.roots_pem = "nonsense";
  EXPECT_EQ(ClientContext::create(options).error(), Error::bad_roots);
  ServerOptions server = asking(ClientCertificate::required);
  server.client_roots_pem = "";
  EXPECT_EQ(ServerContext::create(server).error(), Error::bad_roots);
}

}  // namespace
