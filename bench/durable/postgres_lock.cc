// SPDX-License-Identifier: MIT
// PostgreSQL in suite durable: pg_advisory_lock(), then pg_advisory_unlock(), by libpq over a Unix socket. No lease and no token, and nothing of
// it is on a disk: a session's locks end with its connection.
#include <libpq-fe.h>
#include <pwd.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "durable/lock_bench.h"
#include "harness/contestant.h"

namespace weft::bench {
namespace {

constexpr std::size_t kProcesses = 4;

// A cluster of its own, in a directory of its own, which no network reaches. It refuses root: then it is the user postgres's.
class PostgresServer {
 public:
  PostgresServer() {
    if (::geteuid() == 0) {
      const passwd* user = ::getpwnam("postgres");
      if (!user || ::chown(scratch_.path().c_str(), user->pw_uid, user->pw_gid) != 0)
        throw std::runtime_error("root needs a user postgres for it");
    }
    Spawned(as_user({program("initdb"), "-D", data(), "-A", "trust", "-U", "bench", "--no-sync"}))
        .wait();
    server_.emplace(as_user(
        {program("postgres"), "-D", data(), "-c", "listen_addresses=", "-k", scratch_.path()}));
    const std::string socket = scratch_.path() + "/.s.PGSQL.5432";
    for (int i = 0; i < 1000 && !std::filesystem::exists(socket); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  [[nodiscard]] const std::string& folder() const { return scratch_.path(); }

 private:
  [[nodiscard]] std::string data() const { return scratch_.path() + "/data"; }
  // Debian has it beside the path.
  static std::string program(const std::string& name) {
    const std::string debian = "/usr/lib/postgresql/15/bin/" + name;
    return ::access(debian.c_str(), X_OK) == 0 ? debian : name;
  }
  // It ends with this program. By SIGQUIT, so that it leaves no shared memory behind.
  static std::vector<std::string> as_user(std::vector<std::string> command) {
    std::vector<std::string> words{"setpriv", "--pdeathsig", "QUIT"};
    if (::geteuid() == 0)
      words.insert(words.end(), {"--reuid", "postgres", "--regid", "postgres", "--clear-groups"});
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }

  Scratch scratch_;
  std::optional<Spawned> server_;
};

class AdvisoryLock {
 public:
  explicit AdvisoryLock(const std::string& folder) {
    const std::string where = "host=" + folder + " user=bench dbname=postgres";
    for (int tries = 0; tries < 500; ++tries) {  // it may be starting yet
      connection_ = ::PQconnectdb(where.c_str());
      if (::PQstatus(connection_) == CONNECTION_OK) break;
      ::PQfinish(connection_);
      connection_ = nullptr;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (!connection_) throw std::runtime_error("PostgreSQL does not answer");
    prepare("lock", "SELECT pg_advisory_lock(1)");
    prepare("unlock", "SELECT pg_advisory_unlock(1)");
  }
  AdvisoryLock(const AdvisoryLock&) = delete;
  AdvisoryLock& operator=(const AdvisoryLock&) = delete;
  ~AdvisoryLock() { ::PQfinish(connection_); }

  void lock() { execute("lock"); }
  void unlock() { execute("unlock"); }

 private:
  void check(PGresult* result, ExecStatusType wanted) {
    const bool good = ::PQresultStatus(result) == wanted;
    ::PQclear(result);
    if (!good) throw std::runtime_error(::PQerrorMessage(connection_));
  }
  void prepare(const char* name, const char* sql) {
    check(::PQprepare(connection_, name, sql, 0, nullptr), PGRES_COMMAND_OK);
  }
  void execute(const char* name) {
    check(::PQexecPrepared(connection_, name, 0, nullptr, nullptr, nullptr, 0), PGRES_TUPLES_OK);
  }

  PGconn* connection_ = nullptr;
};

const std::string& folder() {
  static PostgresServer server;
  return server.folder();
}
AdvisoryLock& ours() {
  static AdvisoryLock lock(folder());
  return lock;
}

std::string pair(std::size_t n) {
  AdvisoryLock& lock = ours();
  Stopwatch watch;
  for (std::size_t i = 0; i < n; ++i) {
    lock.lock();
    lock.unlock();
  }
  return watch.per_operation(n);
}

std::string pair_p99(std::size_t n) {
  AdvisoryLock& lock = ours();
  std::vector<double> samples;
  for (std::size_t i = 0; i < n; ++i) {
    auto start = std::chrono::steady_clock::now();
    lock.lock();
    lock.unlock();
    samples.push_back(
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  return percentile(samples, 0.99);
}

std::string handover(std::size_t n) {
  std::size_t each = n / kProcesses;
  ours().lock();
  std::vector<std::string> command{"/proc/self/exe", "--worker", folder(), std::to_string(each)};
  auto release = [](void* lock) { static_cast<AdvisoryLock*>(lock)->unlock(); };
  double taken = time_workers(command, kProcesses, release, &ours());
  return wall_only(taken / static_cast<double>(each * kProcesses));
}

int work(const std::string& folder, std::size_t count) {
  AdvisoryLock lock(folder);
  say_ready();
  for (std::size_t i = 0; i < count; ++i) {
    lock.lock();
    lock.unlock();
  }
  return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  using namespace weft::bench;
  if (argc == 4 && std::string_view(argv[1]) == "--worker")
    return work(argv[2], std::strtoul(argv[3], nullptr, 10));
  constexpr Measure kMeasures[] = {{"pair", pair}, {"pair_p99", pair_p99}, {"handover", handover}};
  return serve("PostgreSQL advisory locks, by libpq over a Unix socket", kMeasures);
}
