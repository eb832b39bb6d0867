// SPDX-License-Identifier: MIT
// weft get: what is at a URL, to standard output or to a file.
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "arguments.h"
#include "command.h"
#include "interrupts.h"
#include "output.h"
#include "progress.h"
#include "weft/core/combinators.h"
#include "weft/core/errors.h"
#include "weft/http/client.h"
#include "weft/io/blocking.h"
#include "weft/net/error.h"
#include "weft/run/io_context.h"
#include "weft/time/timeout.h"
#include "weft/tls/context.h"
#include "weft/tls/error.h"

namespace weft::tool {
namespace {

constexpr std::size_t kPieceBytes = 256 * 1024;

struct Settings {
  std::string url;
  std::optional<std::string> output;
  bool overwrite = false;
  std::optional<std::chrono::milliseconds> timeout;
  std::vector<std::string> headers;
  bool insecure = false;
  bool quiet = false;
};

CommandLine line_for(const Command& self, Settings& settings) {
  CommandLine line("weft " + std::string(self.name), std::string(self.summary));
  line.operand("begins with http:// or https://", text("URL", settings.url));
  line.option('o', "output", "write to this file, and not to standard output",
              text("FILE", settings.output));
  line.option('f', "force", "overwrite FILE if it is there", flag(settings.overwrite));
  line.option('t', "timeout", "give up after so long in all, 30s or 500ms",
              duration("TIME", settings.timeout));
  line.option('H', "header", "send this header field, too; may be repeated",
              texts("'NAME: VALUE'", settings.headers));
  line.option('k', "insecure", "of https: accept any certificate, and so anybody",
              flag(settings.insecure));
  line.option('q', "quiet", "no progress bar", flag(settings.quiet));
  line.note("Redirects are followed. FILE is there when all of it is there, and not before.");
  line.note("The progress bar is for terminals: there is none where messages go elsewhere.");
  line.note("");
  line.note("Ends with 0: it was fetched; 1: it was not; 2: it was asked in the wrong way;");
  line.note("3: the server answered with another status than 2xx; 4: it took too long;");
  line.note("128 + N: signal N ended it.");
  return line;
}

http::Url url_of(const Settings& settings) {
  Result<http::Url, http::UrlError> url = http::Url::parse(settings.url);
  if (url) return std::move(*url);
  throw BadUsage("weft get: " + std::string(url.error().what()));
}

// Those that the client says itself, and would not have from us.
void require_ours(std::string_view name, const std::string& refused) {
  if (http::equal_ignoring_case(name, "host")) {
    throw BadUsage(refused + "the URL says which host is asked: leave it out");
  }
  for (std::string_view own : {"connection", "content-length", "transfer-encoding", "expect"}) {
    if (!http::equal_ignoring_case(name, own)) continue;
    throw BadUsage(refused + "this field is not yours to send: leave it out");
  }
}

http::HeaderLines headers_of(const Settings& settings) {
  http::HeaderLines lines;
  for (const std::string& given : settings.headers) {
    std::size_t colon = given.find(':');
    std::string refused = "weft get: --header '" + given + "': ";
    if (colon == given.npos) throw BadUsage(refused + "'NAME: VALUE' is wanted");
    require_ours(given.substr(0, colon), refused);
    std::size_t value = given.find_first_not_of(' ', colon + 1);
    try {
      lines.add(given.substr(0, colon), value == given.npos ? "" : given.substr(value));
    } catch (const UsageError& error) {
      throw BadUsage(refused + error.what());
    }
  }
  return lines;
}

// What to call it while it comes: the last part of the path, or the host.
std::string name_of(const Settings& settings, const http::Url& url) {
  if (settings.output && *settings.output != "-")
    return settings.output->substr(settings.output->rfind('/') + 1);
  std::string path(url.path());
  std::string name = path.substr(path.rfind('/') + 1);
  return name.empty() ? url.host() : name;
}

bool is_about_certificate(const std::error_code& error) {
  return error.category() == tls::error_category() &&
         error.value() >= static_cast<int>(tls::Error::certificate_missing) &&
         error.value() <= static_cast<int>(tls::Error::certificate_refused);
}

// For who has a command line, and no program in which there could be other roots.
std::string certificate_error_of(const std::error_code& error) {
  if (error == tls::Error::certificate_self_signed)
    return "the server's certificate is self-signed: if it is the right one, name it in "
           "SSL_CERT_FILE";
  if (error == tls::Error::certificate_unknown_authority)
    return "no root of this machine vouches for the server's certificate: if you know one that "
           "does, "
           "name it in SSL_CERT_FILE";
  return error.message();
}

// Who is asked for it: a proxy, if the environment names one.
std::string asked_for(const http::Url& url) {
  Result<std::optional<http::Proxy>> proxy = http::Proxies::from_environment().find(url.origin());
  if (proxy && *proxy) return "the proxy " + (*proxy)->where.authority();
  return url.authority();
}

// What is known to be too slow; nothing if it is not that.
std::string slowness_of(const http::Url& url, const std::error_code& error) {
  if (error == http::Error::connect_timeout || error == std::errc::timed_out)
    return asked_for(url) + " does not answer: look at its host and port, and at the network";
  if (error == http::Error::head_timeout)
    return url.to_string() +
           ": the server has taken the request, and says nothing: try again later";
  if (error == http::Error::body_timeout)
    return url.to_string() + ": the server fell silent in the middle of it: try again";
  return "";
}

// What went wrong with a proxy; nothing if it is not that.
std::string proxy_error_of(const http::Url& url, const std::error_code& error) {
  if (error == http::Error::bad_proxy)
    return "the environment names a proxy that is none: write http_proxy, https_proxy and "
           "all_proxy as http://HOST:PORT";
  if (error == http::Error::proxy_refused)
    return asked_for(url) + " does not let us through to " + url.authority() +
           ": ask who runs it, or name the host in no_proxy";
  if (error == http::Error::proxy_wants_user)
    return asked_for(url) +
           " wants to know who asks: write http://USER:PASSWORD@HOST:PORT into the environment";
  return "";
}

bool is_cut_off(const std::error_code& error) {
  return error == net::Error::unexpected_end || error == tls::Error::truncated ||
         error == tls::Error::closed_in_handshake || error == std::errc::connection_reset ||
         error == std::errc::broken_pipe;
}

[[noreturn]] void fail(const http::Url& url, const std::error_code& error) {
  if (std::string slow = slowness_of(url, error); !slow.empty()) throw Failure(slow, kTooSlow);
  if (std::string why = proxy_error_of(url, error); !why.empty()) throw Failure(why);
  if (error == std::errc::connection_refused)
    throw Failure("nobody listens at " + asked_for(url) + ": look at its host and port");
  if (error == net::Error::host_not_found)
    throw Failure("there is no host '" + url.host() + "': look at its spelling");
  if (error == net::Error::resolver_failed || error == net::Error::resolver_silent)
    throw Failure("no name server answers for '" + url.host() + "': look at the network");
  if (is_cut_off(error))
    throw Failure(url.to_string() + ": the connection ended before all of it was there: try again");
  if (error == tls::Error::protocol_violation)
    throw Failure(asked_for(url) + " does not speak TLS: look at the port, or ask by http://");
  if (is_about_certificate(error))
    throw Failure(url.to_string() + ": " + certificate_error_of(error) +
                  "; if you trust it all the same: --insecure");
  throw Failure(url.to_string() + ": " + error.message());
}

http::ClientOptions client_options(const Settings& settings) {
  http::ClientOptions options;
  if (settings.insecure) {
    tls::ClientOptions anybody{
        .system_roots = false, .alpn = {"http/1.1"}, .dangerously_accept_any_certificate = true};
    http::ConnectorOptions connector;
    connector.tls = or_throw(tls::ClientContext::create(std::move(anybody)));
    options.connector = std::make_shared<http::TcpConnector>(std::move(connector));
  }
  return options;
}

class Fetch {
 public:
  Fetch(const Settings& settings, http::Url url, http::HeaderLines headers)
      : settings_(settings),
        url_(std::move(url)),
        headers_(std::move(headers)),
        output_(settings.output, settings.overwrite) {}

  Task<void> run() {
    http::Client client(client_options(settings_));
    http::ClientRequest request(http::Method::get, url_, headers_);
    http::Url asked = url_;  // after redirects it is another one
    request.asked = &asked;
    Result<http::ClientResponse> response = co_await client.request(std::move(request));
    if (!response) fail(asked, response.error());
    if (response->status() / 100 != 2) {
      std::string status = std::to_string(response->status());
      status.append(" ").append(http::reason_phrase(response->status()));
      throw Failure(response->url().to_string() + ": the server answered " + status, kRefused);
    }
    co_await copy(*response);
    auto keep = [this] { output_.keep(); };
    co_await blocking(keep);
  }

 private:
  Task<void> copy(http::ClientResponse& response) {
    bool shows = !settings_.quiet && ::isatty(STDERR_FILENO) == 1 && !output_.is_terminal();
    Progress progress(shows ? STDERR_FILENO : -1, name_of(settings_, url_),
                      response.body().length());
    std::vector<std::byte> buffer(kPieceBytes);
    for (;;) {
      Result<std::size_t> count = co_await response.body().read_some(buffer);
      if (!count) fail(response.url(), count.error());
      if (*count == 0) break;
      auto write = [&](StopToken stop) { output_.write(std::span(buffer).first(*count), stop); };
      co_await blocking(write);
      progress.add(*count);
    }
    progress.finish();
  }

  const Settings& settings_;
  http::Url url_;
  http::HeaderLines headers_;
  Output output_;
};

Task<int> fetch(const Settings& settings, Fetch& what) {
  if (!settings.timeout) {
    co_await what.run();
    co_return kDone;
  }
  auto in_time = co_await timeout(*settings.timeout, what.run());
  if (in_time) co_return kDone;
  throw Failure(settings.url + ": not there in time: give it more with --timeout", kTooSlow);
}

// The number of the first signal. From then on they have their own effect again.
Task<int> interrupted() {
  Interrupts interrupts({SIGHUP, SIGINT, SIGTERM});
  co_return co_await interrupts.next();
}

Task<int> fetch_unless_interrupted(const Settings& settings, Fetch& what) {
  auto [fetched, signal] = co_await any_of(fetch(settings, what), interrupted());
  co_return fetched ? *fetched : kSignalled + *signal;
}

}  // namespace

int get(const Command& self, Words words) {
  Settings settings;
  CommandLine line = line_for(self, settings);
  if (!line.read(words)) {
    std::fputs(line.help().c_str(), stdout);
    return kDone;
  }
  Fetch what(settings, url_of(settings), headers_of(settings));
  IOContext context({.workers = 1, .stop_on_signals = false});
  return context.run(fetch_unless_interrupted(settings, what));
}

}  // namespace weft::tool
