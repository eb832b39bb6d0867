// SPDX-License-Identifier: MIT
// Where the Client asks instead: redirects and proxies.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "support/http_client_fixture.h"
#include "weft/net/error.h"

namespace {

using namespace weft;
using namespace weft::http;
using namespace weft::test;
using namespace std::chrono_literals;

// --- Redirects --------------------------------------------------------------------------------------

// Answers /NNN/rest with a redirect of that status to /rest, or to what stands behind an "at=", and all else with
// "method target" and what is asked for of the head.
Script redirects(std::vector<std::string>& seen) {
  return [&seen](Peer& peer) -> Task<void> {
    while (true) {
      std::string request = co_await peer.read_request();
      if (request.empty()) co_return;
      seen.push_back(request);
      std::size_t at = request.find(' ') + 1;
      std::string target = request.substr(at, request.find(' ', at) - at);
      if (target.starts_with("/3")) {
        std::size_t other = target.find("at=");
        std::string location = other == target.npos ? target.substr(4) : target.substr(other + 3);
        co_await peer.write("HTTP/1.1 " + target.substr(1, 3) + " Moved\r\nLocation: " + location +
                            "\r\nContent-Length: 5\r\n\r\nthere");
      } else {
        co_await peer.write(kHello);
      }
    }
  };
}

TEST(HttpClient, FollowsRedirects) {
  std::vector<std::string> seen;
  ClientTalk()(redirects(seen), [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    ClientResponse response = or_throw(co_await client.get("http://server/301/302/307/a?b#c"));
    EXPECT_EQ(response.status(), 200);
    EXPECT_EQ(response.url().to_string(), "http://server/a?b");
    EXPECT_EQ(connector.asked.size(), 1u) << "their bodies are read";
    response = or_throw(co_await client.get("http://server/302?at=http://other:81/b"));
    EXPECT_EQ(response.url().to_string(), "http://other:81/b");
    EXPECT_EQ(connector.asked.back(), "http://other:81");
    response = or_throw(co_await client.get("http://server/302/x?at=../y"));
    EXPECT_EQ(response.url().to_string(), "http://server/y");
    Result<ClientResponse> bad = co_await client.get("http://server/302?at=mailto:me");
    EXPECT_EQ(bad.error(), Error::bad_redirect);
    ClientResponse not_one = or_throw(co_await client.get("http://server/304/"));
    EXPECT_EQ(not_one.status(), 304);
    ClientResponse choices = or_throw(co_await client.get("http://server/300/"));
    EXPECT_EQ(choices.status(), 300);
  });
}

TEST(HttpClient, ToldWhereItAsksSoThatAFailureBehindARedirectHasAName) {
  std::vector<std::string> seen;
  ClientTalk()(redirects(seen), [&](Client& client, ScriptedConnector&) -> Task<void> {
    Url asked = or_throw(Url::parse("http://nobody/"));
    for (std::string_view target :
         {"/a", "/302?at=http://other:81/b", "/302?at=http://other/302?at=mailto:me"}) {
      ClientRequest request(Method::get,
                            or_throw(Url::parse("http://server" + std::string(target))));
      request.asked = &asked;
      Result<ClientResponse> response = co_await client.request(std::move(request));
      if (response) {
        EXPECT_EQ(asked.to_string(), response->url().to_string());
      } else {
        EXPECT_EQ(response.error(), Error::bad_redirect);
      }
    }
    EXPECT_EQ(asked.to_string(), "http://other/302?at=mailto:me");
  });
}

// A redirect's body is read, and dropped, so that its connection can be used again; up to a limit.
TEST(HttpClient, ARedirectWithALargeBodyCostsItsConnection) {
  for (std::size_t bytes : {1000u, 100'000u}) {
    auto script = [&](Peer& peer) -> Task<void> {
      while (true) {
        std::string request = co_await peer.read_request();
        if (request.empty()) co_return;
        std::string answer(kHello);
        if (request.starts_with("GET /first")) {
          answer = "HTTP/1.1 302 Found\r\nLocation: /second\r\nContent-Length: " +
                   std::to_string(bytes) + "\r\n\r\n" + std::string(bytes, 'x');
        }
        co_await peer.write(answer);
      }
    };
    ClientTalk talk;
    talk.options.limits.skipped_body_bytes = 1000;
    talk(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
      ClientResponse response = or_throw(co_await client.get("http://server/first"));
      EXPECT_EQ(response.status(), 200);
      EXPECT_EQ(connector.asked.size(), bytes <= 1000 ? 1u : 2u) << bytes;
    });
  }
}

TEST(HttpClient, ChangesTheMethodAsTheStatusSays) {
  struct Change {
    int status;
    Method method;
    std::string becomes;
    bool has_body;
  };
  for (const Change& c : std::vector<Change>{{301, Method::post, "GET", false},
                                             {302, Method::post, "GET", false},
                                             {303, Method::post, "GET", false},
                                             {303, Method::put, "GET", false},
                                             {303, Method::head, "HEAD", false},
                                             {301, Method::put, "PUT", true},
                                             {302, Method::delete_, "DELETE", true},
                                             {307, Method::post, "POST", true},
                                             {308, Method::post, "POST", true},
                                             {307, Method::head, "HEAD", false}}) {
    std::vector<std::string> seen;
    ClientTalk()(redirects(seen), [&](Client& client, ScriptedConnector&) -> Task<void> {
      std::string where = "http://server/" + std::to_string(c.status) + "/a";
      ClientRequest request(c.method, url(where));
      if (c.method != Method::head) {
        request.body = "the body";
        request.headers.add("content-type", "text/plain");
      }
      Result<ClientResponse> response = co_await client.request(std::move(request));
      EXPECT_TRUE(response.has_value());
    });
    ASSERT_EQ(seen.size(), 2u) << c.status;
    EXPECT_TRUE(seen[1].starts_with(c.becomes + " /a HTTP/1.1\r\n")) << c.status << seen[1];
    EXPECT_EQ(seen[1].ends_with("\r\n\r\nthe body"), c.has_body) << c.status;
    EXPECT_EQ(has_line(seen[1], "content-type: text/plain"), c.has_body) << c.status;
    EXPECT_EQ(has_line(seen[1], "content-length: 8"), c.has_body) << c.status;
  }
}

TEST(HttpClient, AStreamedBodyIsNotSentTwice) {
  auto script = [&](Peer& peer) -> Task<void> {
    co_await peer.read_until("0\r\n\r\n");
    co_await peer.write("HTTP/1.1 307 Moved\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n");
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    ClientRequest request(Method::put, url("http://server/"), {},
                          RequestBody::stream(three_pieces));
    ClientResponse response = or_throw(co_await client.request(std::move(request)));
    EXPECT_EQ(response.status(), 307);
  });
}

TEST(HttpClient, GivesSecretsToTheirOriginOnly) {
  for (std::string where : {"/a", "http://server:80/a", "http://other/a", "http://server:81/a"}) {
    bool is_same = where.starts_with("/") || where.starts_with("http://server:80/");
    std::vector<std::string> seen;
    ClientTalk()(redirects(seen), [&](Client& client, ScriptedConnector&) -> Task<void> {
      ClientRequest request(Method::get, url("http://server/302?at=" + where));
      request.headers.add("Authorization", "secret");
      request.headers.add("cookie", "secret");
      request.headers.add("x-plain", "b");
      Result<ClientResponse> response = co_await client.request(std::move(request));
      EXPECT_TRUE(response.has_value());
    });
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[1].find("secret") != std::string::npos, is_same) << where;
    EXPECT_TRUE(has_line(seen[1], "x-plain: b"));
  }
}

TEST(HttpClient, FollowsNoMoreRedirectsThanTheLimit) {
  std::vector<std::string> seen;
  for (std::size_t redirects_max : {0, 2, 3}) {
    ClientTalk talk;
    talk.options.limits.redirects_max = redirects_max;
    talk(redirects(seen), [&](Client& client, ScriptedConnector&) -> Task<void> {
      Result<ClientResponse> response = co_await client.get("http://server/302/302/302/a");
      if (redirects_max == 0) {
        EXPECT_EQ(or_throw(std::move(response)).status(), 302);
      }
      if (redirects_max == 2) {
        EXPECT_EQ(response.error(), Error::too_many_redirects);
      }
      if (redirects_max == 3) {
        EXPECT_EQ(or_throw(std::move(response)).status(), 200);
      }
    });
  }
  auto circle = always("HTTP/1.1 302 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n");
  ClientTalk()(circle, [&](Client& client, ScriptedConnector&) -> Task<void> {
    Result<ClientResponse> response = co_await client.get("http://server/");
    EXPECT_EQ(response.error(), Error::too_many_redirects);
  });
}

TEST(HttpClient, DoesNotReadALargeRedirectToItsEnd) {
  auto script = [&](Peer& peer) -> Task<void> {
    std::string request = co_await peer.read_request();
    if (request.starts_with("GET /a ")) {
      co_await peer.write(kHello);
      co_return;
    }
    co_await peer.write("HTTP/1.1 302 Moved\r\nLocation: /a\r\n\r\n");
    std::string piece(10'000, 'x');
    while (true) {
      Result<void> written = co_await net::write_all(peer.stream(), piece);
      if (!written) co_return;
    }
  };
  ClientTalk()(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    std::string got = co_await fetch(client, "http://server/");
    EXPECT_EQ(got, "200 Hello.");
    EXPECT_EQ(connector.asked.size(), 2u);
    EXPECT_EQ(connector.open, 1);
  });
}

// --- Proxies ----------------------------------------------------------------------------------------

TEST(HttpProxies, AreFoundByTheName) {
  Proxies proxies{.http = "proxy:3128", .https = "http://secure-proxy:8080/", .no_proxy = {}};
  auto ask = [&](std::string_view where) -> std::string {
    Result<std::optional<Proxy>> found = proxies.find(url(where).origin());
    if (!found) return found.error().message();
    return *found ? (*found)->where.authority() : "directly";
  };
  EXPECT_EQ(ask("http://a/"), "proxy:3128");
  EXPECT_EQ(ask("https://a/"), "secure-proxy:8080");
  proxies.no_proxy = "localhost, .example.org,b.net:81,10.0.0.1,::1,[::2]:80";
  EXPECT_EQ(ask("http://localhost/"), "directly");
  EXPECT_EQ(ask("http://LOCALHOST:81/"), "directly");
  EXPECT_EQ(ask("http://notlocalhost/"), "proxy:3128");
  EXPECT_EQ(ask("http://example.org/"), "directly");
  EXPECT_EQ(ask("https://www.example.org/"), "directly");
  EXPECT_EQ(ask("http://badexample.org/"), "proxy:3128");
  EXPECT_EQ(ask("http://example.org.evil/"), "proxy:3128");
  EXPECT_EQ(ask("http://b.net:81/"), "directly");
  EXPECT_EQ(ask("http://b.net/"), "proxy:3128");
  EXPECT_EQ(ask("http://10.0.0.1/"), "directly");
  EXPECT_EQ(ask("http://10.0.0.11/"), "proxy:3128");
  EXPECT_EQ(ask("http://[::1]/"), "directly");
  EXPECT_EQ(ask("http://[::2]/"), "directly");
  EXPECT_EQ(ask("http://[::3]/"), "proxy:3128");
  proxies.no_proxy = "*";
  EXPECT_EQ(ask("http://a/"), "directly");
  proxies = {};
  EXPECT_EQ(ask("http://a/"), "directly");
}

TEST(HttpProxies, MayWantToKnowWhoAsks) {
  auto find = [](std::string proxy) {
    return Proxies{.http = std::move(proxy), .https = {}, .no_proxy = {}}.find(
        url("http://a/").origin());
  };
  struct Case {
    const char* proxy;
    const char* authorization;
  } cases[] = {
      {"http://Aladdin:open%20sesame@proxy/", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},  // RFC 7617, 2
      {"me@proxy", "Basic bWU6"},
      {"me:@proxy", "Basic bWU6"},
      {"me:a:b@proxy", "Basic bWU6YTpi"},
      {"http://me:a@b@proxy", "Basic bWU6YUBi"},  // as others take it
      {"me:p%40ss@proxy", "Basic bWU6cEBzcw=="},
      {"proxy", ""},
  };
  for (const Case& each : cases) {
    Result<std::optional<Proxy>> found = find(each.proxy);
    ASSERT_TRUE(found && *found) << each.proxy;
    EXPECT_EQ((*found)->where, (Endpoint{Scheme::http, "proxy", 80})) << each.proxy;
    EXPECT_EQ((*found)->authorization, each.authorization) << each.proxy;
  }
  for (const char* bad : {"a%3ab:c@proxy", "a:b%0d%0ac@proxy", "a:%4@proxy", "a:b@",
                          "a:b@proxy/x@y", "socks5://proxy", "http://proxy/path"}) {
    Result<std::optional<Proxy>> found = find(bad);
    ASSERT_FALSE(found) << bad;
    EXPECT_EQ(found.error(), Error::bad_proxy) << bad;
  }
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(HttpProxies, ComeFromTheEnvironment) {
  Variable y("all_proxy", nullptr), z("ALL_PROXY", nullptr);
  Variable a("http_proxy", "one:1"), b("HTTP_PROXY", "two:2"), c("https_proxy", nullptr),
      d("HTTPS_PROXY", "three:3"), e("no_proxy", ""), f("NO_PROXY", "x");
  Proxies found = Proxies::from_environment();
  EXPECT_EQ(found.http, "one:1");
  EXPECT_EQ(found.https, "three:3");
  EXPECT_EQ(found.no_proxy, "x");
  EXPECT_EQ(ClientOptions().proxies.http, "one:1") << "a Client asks by itself";
  Variable g("http_proxy", nullptr);
  EXPECT_EQ(Proxies::from_environment().http, "")
      << "HTTP_PROXY may be a header field of a CGI program's client";
  Variable h("all_proxy", nullptr), i("ALL_PROXY", "four:4");
  EXPECT_EQ(Proxies::from_environment().http, "four:4") << "for what has none of its own";
  EXPECT_EQ(Proxies::from_environment().https, "three:3");
  Variable j("all_proxy", "five:5"), k("HTTPS_PROXY", nullptr);
  EXPECT_EQ(Proxies::from_environment().https, "five:5");
}

TEST(HttpClient, AsksAProxyWithTheWholeUrl) {
  std::vector<std::string> seen;
  auto script = [&](Peer& peer) -> Task<void> {
    while (true) {
      std::string request = co_await peer.read_request();
      if (request.empty()) co_return;
      seen.push_back(request);
      co_await peer.write(kHello);
    }
  };
  ClientTalk talk;
  talk.options.proxies = {.http = "http://proxy:3128", .https = {}, .no_proxy = "direct"};
  talk(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    co_await fetch(client, "http://a/x?y");
    co_await fetch(client, "http://b:81/");
    co_await fetch(client, "http://direct/");
    std::vector<std::string> asked{"http://proxy:3128", "http://direct"};
    EXPECT_EQ(connector.asked, asked) << "one connection to the proxy, for all";
  });
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen[0].starts_with("GET http://a/x?y HTTP/1.1\r\nhost: a\r\n")) << seen[0];
  EXPECT_TRUE(seen[1].starts_with("GET http://b:81/ HTTP/1.1\r\nhost: b:81\r\n")) << seen[1];
  EXPECT_TRUE(seen[2].starts_with("GET / HTTP/1.1\r\nhost: direct\r\n")) << seen[2];
}

TEST(HttpClient, GoesThroughATunnelToHttps) {
  std::vector<std::string> seen;
  auto script = [&](Peer& peer) -> Task<void> {
    seen.push_back(co_await peer.read_request());
    co_await peer.write("HTTP/1.1 200 Connection established\r\nContent-Length: 9\r\n\r\n");
    while (true) {
      std::string request = co_await peer.read_request();
      if (request.empty()) co_return;
      seen.push_back(request);
      co_await peer.write(kHello);
    }
  };
  ClientTalk talk;
  talk.options.proxies = {.http = {}, .https = "proxy:3128", .no_proxy = {}};
  talk(script, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    std::string got = co_await fetch(client, "https://[::1]/x");
    EXPECT_EQ(got, "200 Hello.");
    got = co_await fetch(client, "https://[::1]/y");
    EXPECT_EQ(got, "200 Hello.");
    EXPECT_EQ(connector.asked, std::vector<std::string>{"http://proxy:3128"});
    EXPECT_EQ(connector.secured, std::vector<std::string>{"[::1]"});
    co_await fetch(client, "https://other:444/");
    EXPECT_EQ(connector.asked.size(), 2u) << "a tunnel leads to one origin";
  });
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[0], "CONNECT [::1]:443 HTTP/1.1\r\nhost: [::1]:443\r\n\r\n");
  EXPECT_TRUE(seen[1].starts_with("GET /x HTTP/1.1\r\nhost: [::1]\r\n")) << seen[1];
  EXPECT_TRUE(seen[3].starts_with("CONNECT other:444 HTTP/1.1\r\n")) << seen[3];
}

// To the proxy, and to nobody else.
TEST(HttpClient, TellsAProxyWhoAsks) {
  std::vector<std::string> seen;
  auto script = [&](Peer& peer) -> Task<void> {
    while (true) {
      std::string request = co_await peer.read_request();
      if (request.empty()) co_return;
      seen.push_back(request);
      if (request.starts_with("CONNECT")) {
        co_await peer.write("HTTP/1.1 200 Connection established\r\n\r\n");
      } else {
        co_await peer.write(kHello);
      }
    }
  };
  ClientTalk talk;
  talk.options.proxies = {.http = "me:x@proxy", .https = "me:y@proxy", .no_proxy = "direct"};
  talk(script, [&](Client& client, ScriptedConnector&) -> Task<void> {
    co_await fetch(client, "http://a/");
    co_await fetch(client, "https://a/");
    co_await fetch(client, "http://direct/");
    ClientRequest request(Method::get, url("http://b/"));
    request.headers.add("proxy-authorization", "of my own");
    Result<ClientResponse> response = co_await client.request(std::move(request));
    EXPECT_TRUE(response);
  });
  ASSERT_EQ(seen.size(), 5u);
  constexpr std::string_view kField = "proxy-authorization: ";
  EXPECT_NE(seen[0].find("\r\nproxy-authorization: Basic bWU6eA==\r\n"), std::string::npos);
  EXPECT_NE(seen[1].find("\r\nproxy-authorization: Basic bWU6eQ==\r\n"), std::string::npos);
  EXPECT_EQ(seen[2].find(kField), std::string::npos) << "in the tunnel is the server";
  EXPECT_EQ(seen[3].find(kField), std::string::npos) << "asked directly";
  EXPECT_EQ(seen[4].find("Basic"), std::string::npos);
  EXPECT_NE(seen[4].find("proxy-authorization: of my own\r\n"), std::string::npos);
}

TEST(HttpClient, ATunnelMayBeRefused) {
  ClientTalk talk;
  talk.options.proxies = {.http = {}, .https = "proxy:3128", .no_proxy = {}};
  auto refuses = always("HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\nno.\n");
  talk(refuses, [&](Client& client, ScriptedConnector&) -> Task<void> {
    Result<ClientResponse> response = co_await client.get("https://a/");
    EXPECT_EQ(response.error(), Error::proxy_refused);
    EXPECT_EQ(client.connections(), 0u);
  });
  auto asks_back = always("HTTP/1.1 407 Who are you\r\nContent-Length: 4\r\n\r\nno.\n");
  talk(asks_back, [&](Client& client, ScriptedConnector&) -> Task<void> {
    Result<ClientResponse> response = co_await client.get("https://a/");
    EXPECT_EQ(response.error(), Error::proxy_wants_user);
  });
  auto speaks_first = always("HTTP/1.1 200 Fine\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
  talk(speaks_first, [&](Client& client, ScriptedConnector& connector) -> Task<void> {
    Result<ClientResponse> response = co_await client.get("https://a/");
    EXPECT_EQ(response.error(), Error::bad_response);
    EXPECT_TRUE(connector.secured.empty());
  });
}

}  // namespace
