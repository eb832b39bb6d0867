// SPDX-License-Identifier: MIT
// The conformance suite on a real etcd.
#include "durable/etcd/etcd_store.h"
#include "support/etcd.h"
#include "support/store_suite.h"

namespace weft::test {
namespace {

struct EtcdFactory {
  using Loop = EventLoop;
  std::unique_ptr<durable::LockStore> make() {
    return or_throw(durable::make_etcd_store(etcd.url(prefix)));
  }
  static std::chrono::nanoseconds lease() { return std::chrono::seconds(2); }

  Etcd& etcd = shared_etcd();
  std::string prefix = fresh_prefix();
};

INSTANTIATE_TYPED_TEST_SUITE_P(Etcd, StoreSuite, EtcdFactory);

}  // namespace
}  // namespace weft::test
