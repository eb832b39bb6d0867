// SPDX-License-Identifier: MIT
// SQLite itself in suite durable: one row changed by one commit that is synced to the disk.
#include <sqlite3.h>

#include <stdexcept>
#include <string>

#include "durable/lock_bench.h"
#include "harness/contestant.h"

namespace weft::bench {
namespace {

class Database {
 public:
  Database() {
    if (sqlite3_open((scratch_.path() + "/raw.db").c_str(), &database_) != SQLITE_OK)
      throw std::runtime_error("no database");
    run("PRAGMA journal_mode=WAL");
    run("PRAGMA synchronous=FULL");
    run("CREATE TABLE row(id INTEGER PRIMARY KEY, value INTEGER)");
    run("INSERT INTO row VALUES (1, 0)");
    if (sqlite3_prepare_v2(database_, "UPDATE row SET value = value + 1 WHERE id = 1", -1, &update_,
                           nullptr) != SQLITE_OK) {
      throw std::runtime_error(sqlite3_errmsg(database_));
    }
  }
  ~Database() {
    sqlite3_finalize(update_);
    sqlite3_close(database_);
  }
  void commit() {
    if (sqlite3_step(update_) != SQLITE_DONE) throw std::runtime_error(sqlite3_errmsg(database_));
    sqlite3_reset(update_);
  }

 private:
  void run(const char* sql) {
    if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
      throw std::runtime_error(sqlite3_errmsg(database_));
  }
  Scratch scratch_;
  sqlite3* database_ = nullptr;
  sqlite3_stmt* update_ = nullptr;
};

Database& database() {
  static Database one;
  return one;
}

std::string commits(std::size_t n) {
  database();
  Stopwatch watch;
  for (std::size_t i = 0; i < n; ++i) database().commit();
  return watch.per_operation(n);
}

std::string commits_p99(std::size_t n) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < n; ++i) {
    auto start = std::chrono::steady_clock::now();
    database().commit();
    samples.push_back(
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  return percentile(samples, 0.99);
}

}  // namespace
}  // namespace weft::bench

int main() {
  using namespace weft::bench;
  constexpr Measure kMeasures[] = {{"pair", commits}, {"pair_p99", commits_p99}};
  return serve("SQLite " SQLITE_VERSION ", WAL, synchronous=FULL, one update a commit", kMeasures);
}
