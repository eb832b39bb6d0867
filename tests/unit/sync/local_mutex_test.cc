// SPDX-License-Identifier: MIT
// What only a LocalMutex refuses. It is Mutex's code without its atomic operations (sync/sharing.h):
// exclusive_lock_test.cc has the rules one by one.
#include "weft/sync/local_mutex.h"

#include "support/sync_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

Task<void> lock_once(LocalMutex& mutex) { auto lock = co_await mutex.lock(); }
Task<void> try_once(LocalMutex& mutex) {
  auto lock = mutex.try_lock();
  co_return;
}

TEST(LocalMutexDeathTest, IsTheFirstLoopsOnly) {
  auto misuse = [](Task<void> (*use)(LocalMutex&)) {
    LocalMutex mutex;
    VirtualLoop a, b;
    run(a, lock_once(mutex));
    run(b, use(mutex));
  };
  EXPECT_DEATH(misuse(lock_once), "LocalMutex::lock\\(\\) on loop .*, but loop .* uses it");
  EXPECT_DEATH(misuse(try_once), "LocalMutex::try_lock\\(\\) on loop .*, but loop .* uses it");
}

}  // namespace
