// SPDX-License-Identifier: MIT
// L8: nothing piles up. Ten million short children, awaits and hooks under one scope: resident
// memory stays flat.
#include <unistd.h>

#include <cstdio>

#include "support/loop_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;
using weft::testing::ThreadLoop;

constexpr long kRounds = kSanitized ? 1'000'000 : 10'000'000;
// What may come and go by itself. As shipped a leak of one byte a round shows. Under a sanitizer only
// a gross one does, because ASan keeps 256 MiB of freed memory in quarantine; its leak check sees the
// rest.
constexpr long kSlackBytes = kSanitized ? 450L << 20 : 4L << 20;

long resident_bytes() {
  long size = 0;
  long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file) return 0;
  int read = std::fscanf(file, "%ld %ld", &size, &resident);
  std::fclose(file);
  return read == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

// Grows by how much between two looks?
class Flat {
 public:
  Flat() : before_(resident_bytes()) {}
  ~Flat() {
    EXPECT_GT(before_, 0);
    EXPECT_LE(resident_bytes() - before_, kSlackBytes);
  }

 private:
  long before_;
};

Task<void> child(long& ran) {
  ++ran;
  co_await yield();
}

TEST(Memory, TenMillionChildrenUnderOneNurseryLeaveNothingBehind) {
  ThreadLoop loop;
  auto root = []() -> Task<void> {
    long ran = 0;
    auto body = [&](Nursery& n) -> Task<NurseryEnd> {
      auto batch = [&](long children) {
        for (long i = 0; i < children; ++i) n.start(child(ran));
      };
      batch(1000);
      co_await yields(3);
      Flat flat;
      for (long i = 0; i < kRounds / 1000; ++i) {
        batch(1000);
        co_await yield();
        co_await yield();
        co_await yield();
      }
      EXPECT_EQ(n.size(), 1u);
      co_return join;
    };
    co_await with_nursery(body);
    EXPECT_EQ(ran, kRounds + 1000);
  };
  run_on(loop, root());
}

TEST(Memory, TenMillionChildrenUnderOneFramesScopeLeaveNothingBehind) {
  ThreadLoop loop;
  auto root = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    long ran = 0;
    Flat flat;
    for (long i = 0; i < kRounds; ++i) {
      child(ran).start(scope).detach();
      if (i % 1000 == 0) co_await yields(3);
    }
    while (ran < kRounds) co_await yield();
    co_await yields(3);
  };
  run_on(loop, root());
}

TEST(Memory, TenMillionAwaitsUnderOneScopeLeaveNothingBehind) {
  ThreadLoop loop;
  auto root = []() -> Task<void> {
    long ran = 0;
    co_await child(ran);
    Flat flat;
    for (long i = 1; i < kRounds; ++i) co_await child(ran);
    EXPECT_EQ(ran, kRounds);
  };
  run_on(loop, root());
}

TEST(Memory, TenMillionHooksArmedAndDisarmedLeaveNothingBehind) {
  ThreadLoop loop;
  auto root = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    long fired = 0;
    auto count = [&fired] { ++fired; };
    Flat flat;
    for (long i = 0; i < kRounds; ++i) {
      CancelHook hook(scope, count);
    }
    EXPECT_EQ(fired, 0);
  };
  run_on(loop, root());
}

TEST(Memory, AMillionLeasesAndCancelledChildrenLeaveNothingBehind) {
  ThreadLoop loop;
  auto root = []() -> Task<void> {
    Scope& scope = co_await current_scope();
    auto round = [&]() -> Task<void> {
      PromiseChildLease lease = scope.lease();
      StartedTask<void> s = parked().start_immediate(scope);
      s.cancel();
      co_await yield();
    };
    co_await round();
    Flat flat;
    for (long i = 0; i < kRounds / 10; ++i) co_await round();
  };
  run_on(loop, root());
}

}  // namespace
