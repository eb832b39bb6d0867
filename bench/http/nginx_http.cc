// SPDX-License-Identifier: MIT
// Becomes nginx, with one process that answers from its configuration; `--tls`: over TLS, as weft_server does.
//
// It must be told its port, and does not tell when it listens there: so a child of ours tries, and announces
// it. (To hand it a socket that listens already, as nginx does for its own successor, makes 1.22 crash without a
// master process.)
#include <unistd.h>
#include <weft/tls/identity.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "harness/closed_loop.h"
#include "harness/loopback.h"
#include "http/plaintext.h"

namespace weft::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kTriesMax = 400;
constexpr auto kTryAgain = std::chrono::milliseconds(10);

// Beside this program: nginx keeps its files there.
fs::path folder() {
  const fs::path path = fs::read_symlink("/proc/self/exe").parent_path() / "nginx";
  fs::create_directories(path);
  return path;
}

// TLS 1.3 with the ciphers of OpenSSL's choice, and a P-256 key.
std::string secure(const fs::path& prefix) {
  const tls::Identity identity = tls::self_signed({"127.0.0.1"});
  std::ofstream(prefix / "certificate.pem") << identity.certificate_pem;
  std::ofstream(prefix / "key.pem") << identity.key_pem;
  return "    ssl_certificate certificate.pem; ssl_certificate_key key.pem;\n"
         "    ssl_protocols TLSv1.3;\n";
}

std::string configuration(std::uint16_t port, const std::string& tls) {
  return "daemon off; master_process off; worker_processes 1; pid nginx.pid; error_log stderr;\n"
         "events { worker_connections 16384; }\n"
         "http {\n"
         "  access_log off;\n"
         "  keepalive_requests 1000000000; keepalive_timeout 60s;\n"
         "  default_type text/plain;\n"
         "  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;\n"
         "  uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n"
         "  server {\n"
         "    listen 127.0.0.1:" +
         std::to_string(port) + (tls.empty() ? ";\n" : " ssl;\n") + tls +
         "    location / { return 200 '" + std::string(kPlaintext) +
         "'; }\n"
         "  }\n"
         "}\n";
}

std::uint16_t free_port() {
  const int listener = listen_on_loopback();
  const std::uint16_t port = port_of(listener);
  close(listener);
  return port;
}

void announce_when_it_listens(std::uint16_t port) {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    try {
      close(connect_to_loopback(port));
      announce(port);
      return;
    } catch (const std::exception&) {
      std::this_thread::sleep_for(kTryAgain);
    }
  }
}

[[noreturn]] void become_nginx(bool encrypts) {
  const fs::path prefix = folder();
  const fs::path file = prefix / (encrypts ? "nginx_tls.conf" : "nginx.conf");
  const std::uint16_t port = free_port();
  std::ofstream(file) << configuration(port, encrypts ? secure(prefix) : "");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    announce_when_it_listens(port);
    _exit(0);
  }
  execlp("nginx", "nginx", "-p", prefix.c_str(), "-c", file.c_str(), nullptr);
  throw std::runtime_error("nginx does not start: it is in Debian's nginx-light");
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  using namespace weft::bench;
  if (argc > 1 && std::string(argv[argc - 1]) == "--info") {
    dup2(STDOUT_FILENO, STDERR_FILENO);  // it says it there
    return execlp("nginx", "nginx", "-v", nullptr);
  }
  try {
    become_nginx(argc > 1 && std::string(argv[1]) == "--tls");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "nginx_http: %s\n", e.what());
    return 1;
  }
}
