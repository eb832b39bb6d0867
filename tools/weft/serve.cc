// SPDX-License-Identifier: MIT
// weft serve: a directory over HTTP/1.1.
//
// The first SIGINT or SIGTERM stops it gracefully: what is being answered is finished, for http::Limits::drain_timeout
// at most. From then on signals have their own effect again, so that a second one ends the process.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "arguments.h"
#include "command.h"
#include "interrupts.h"
#include "request_log.h"
#include "weft/core/moving.h"
#include "weft/core/nursery.h"
#include "weft/http/server.h"
#include "weft/http/static_files.h"
#include "weft/net/tcp.h"
#include "weft/run/io_context.h"
#include "weft/time/timeout.h"
#include "weft/tls/context.h"
#include "weft/tls/identity.h"

namespace weft::tool {
namespace {

// What whoever reads the log has for its end, after the last answer.
constexpr std::chrono::seconds kLogPatience{1};

struct Settings {
  std::string directory = ".";
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;
  unsigned workers = 0;
  Driver driver = Driver::automatic;
  bool tls = false;
  std::optional<std::string> certificate, key;
  bool quiet = false;
};

CommandLine line_for(const Command& self, Settings& settings) {
  CommandLine line("weft " + std::string(self.name), std::string(self.summary));
  line.operand("the directory", text("DIR", settings.directory));
  line.option('p', "port", "listen at this port; 0: any that is free",
              number<std::uint16_t>("PORT", settings.port, 0, 65535));
  line.option(0, "host", "listen at this address; 0.0.0.0 or :: is all of this machine's",
              text("ADDRESS", settings.host));
  line.option('w', "workers", "threads that serve; 0: one per processor",
              number<unsigned>("N", settings.workers, 0, IOContext::kWorkersMax));
  line.option(0, "driver", "how the kernel is asked",
              choice<Driver>(settings.driver, {{"auto", Driver::automatic},
                                               {"io_uring", Driver::io_uring},
                                               {"epoll", Driver::epoll},
                                               {"poll", Driver::poll}}));
  line.option(0, "tls", "https, with a certificate of its own making if there is no --cert",
              flag(settings.tls));
  line.option(0, "cert", "https, with the certificate in this PEM file",
              text("FILE", settings.certificate));
  line.option(0, "key", "the key of that certificate", text("FILE", settings.key));
  line.option('q', "quiet", "no line per request", flag(settings.quiet));
  line.note("Files that begin with a dot are not served, nor what links lead out of DIR to.");
  line.note("Ctrl-C ends it when what is being answered is answered; twice: at once.");
  return line;
}

http::StaticFiles open_directory(const std::string& directory) {
  Result<http::StaticFiles> files = http::StaticFiles::open(directory, {.lists_directories = true});
  if (files) return std::move(*files);
  std::string what = "'" + directory + "'";
  if (files.error() == std::errc::no_such_file_or_directory)
    throw Failure("there is no directory " + what + ": name one that is there");
  if (files.error() == std::errc::not_a_directory)
    throw Failure(what + " is no directory: name the one that it lies in");
  throw Failure("cannot open " + what + ": " + files.error().message());
}

net::Address address_of(const Settings& settings) {
  if (settings.host == "localhost") return net::Address::loopback_v4(settings.port);
  Result<net::Address> address = net::Address::parse_host(settings.host, settings.port);
  if (address) return *address;
  throw BadUsage("weft serve: --host '" + settings.host +
                 "': an IP address is wanted, such as 127.0.0.1");
}

net::TcpListener listen(const net::Address& where, bool shared) {
  Result<net::TcpListener> listener = net::TcpListener::listen(where, {.reuse_port = shared});
  if (listener) return std::move(*listener);
  std::string port = "port " + std::to_string(where.port());
  if (listener.error() == std::errc::address_in_use)
    throw Failure(port + " is in use: choose another with --port");
  if (listener.error() == std::errc::permission_denied)
    throw Failure(port + " is not for everybody: choose one above 1023 with --port");
  if (listener.error() == std::errc::address_not_available)
    throw Failure(where.host() + " is no address of this machine: choose another with --host");
  throw Failure("cannot listen at " + where.to_string() + ": " + listener.error().message());
}

// One for each worker.
std::vector<net::TcpListener> listen_for(const net::Address& wanted, std::size_t workers) {
  // Listeners that share a port share it with those of another process of this user, too, and that one would take half
  // of the connections. So the first look is by one that does not share.
  net::TcpListener first = listen(wanted, false);
  std::vector<net::TcpListener> listeners;
  if (workers == 1) {
    listeners.push_back(std::move(first));
    return listeners;
  }
  net::Address where = or_throw(first.local_address());
  first.close();
  for (std::size_t i = 0; i < workers; ++i) listeners.push_back(listen(where, true));
  return listeners;
}

// What encrypts, and how the greeting calls it.
struct Encryption {
  std::optional<tls::ServerContext> context{};
  std::string name{};
};

Encryption encryption_of(const Settings& settings) {
  if (settings.certificate.has_value() != settings.key.has_value())
    throw BadUsage("weft serve: --cert and --key go together: give both");
  if (!settings.tls && !settings.certificate) return {};
  tls::ServerOptions options{.alpn = {"http/1.1"}};
  if (settings.certificate) {
    Result<tls::Identity> identity = tls::load_identity(*settings.certificate, *settings.key);
    if (!identity) {
      throw Failure("cannot read '" + *settings.certificate + "' and '" + *settings.key +
                    "': " + identity.error().message());
    }
    options.identity = std::move(*identity);
  } else {
    std::vector<std::string> names = {"localhost", "127.0.0.1", "::1"};
    if (std::ranges::find(names, settings.host) == names.end()) names.push_back(settings.host);
    options.identity = tls::self_signed(names);
  }
  Result<tls::ServerContext> context = tls::ServerContext::create(std::move(options));
  if (!context) throw Failure("--cert and --key: " + context.error().message());
  return {std::move(*context), settings.certificate ? "" : ", self-signed certificate"};
}

class Service {
 public:
  Service(IOContext& context, http::Handler& handler, std::vector<net::TcpListener> listeners)
      : context_(context), handler_(handler), listeners_(std::move(listeners)) {}

  http::ServerOptions& options() noexcept { return options_; }
  void log_requests() {
    options_.access_log = [this](const http::AccessRecord& record) { log_.add(to_string(record)); };
    options_.handshake_log = [this](const std::optional<net::Address>& peer, std::string_view why) {
      log_.add((peer ? peer->to_string() : "-") + " - - no TLS: " + std::string(why));
    };
  }

  // Until a signal ends it. `greeting` is printed when signals are heard.
  Task<void> run(std::string greeting) {
    auto all = [&](Nursery& nursery) -> Task<NurseryEnd> {
      nursery.start(log_.run());
      co_await serve(std::move(greeting));
      log_.close();
      co_await timeout(kLogPatience, log_.until_written());
      co_return cancel;
    };
    co_await with_nursery(all);
  }

 private:
  Task<void> serve(std::string greeting) {
    options_.limits = share_of(options_.limits, listeners_.size());
    auto all = [&](Nursery& workers) -> Task<NurseryEnd> {
      for (std::size_t i = 0; i < listeners_.size(); ++i) {
        auto serve = [this, i]() -> Task<void> {
          http::Server server(handler_, options_);
          co_await server.serve(listeners_[i]);
        };
        workers.start_on(context_.loop(i), serve);
      }
      Interrupts interrupts({SIGINT, SIGTERM});
      std::puts(greeting.c_str());
      static_cast<void>(co_await interrupts.next());
      co_return cancel;
    };
    co_await with_nursery(all);
  }

  IOContext& context_;
  http::Handler& handler_;
  std::vector<net::TcpListener> listeners_;
  http::ServerOptions options_;
  RequestLog log_;
};

Driver driver_for(Driver wanted) {
  try {
    return choose_driver(wanted);
  } catch (const std::system_error& error) {
    throw Failure(std::string(to_string(wanted)) + " is not to be had here (" +
                  error.code().message() + "): choose another with --driver");
  }
}

}  // namespace

int serve(const Command& self, Words words) {
  Settings settings;
  CommandLine line = line_for(self, settings);
  if (!line.read(words)) {
    std::fputs(line.help().c_str(), stdout);
    return kDone;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // the greeting, before what RequestLog writes
  http::StaticFiles files = open_directory(settings.directory);
  Driver driver = driver_for(settings.driver);
  IOContext context(
      {.workers = settings.workers, .driver = settings.driver, .stop_on_signals = false});
  Encryption encryption = encryption_of(settings);
  std::vector<net::TcpListener> listeners = listen_for(address_of(settings), context.workers());
  std::string url = (encryption.context ? "https://" : "http://") +
                    or_throw(listeners.front().local_address()).to_string() + "/";
  Service service(context, files, std::move(listeners));
  service.options().tls = encryption.context;
  if (!settings.quiet) service.log_requests();
  std::string workers = std::to_string(context.workers());
  workers += context.workers() == 1 ? " worker" : " workers";
  context.run(service.run("serving " + settings.directory + " at " + url + " (" +
                          std::string(to_string(driver)) + ", " + workers + encryption.name +
                          "); Ctrl-C ends it"));
  return kDone;
}

}  // namespace weft::tool
