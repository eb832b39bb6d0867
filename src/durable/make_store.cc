// SPDX-License-Identifier: MIT
#include "durable/memory_store.h"
#include "weft/durable/engine.h"
#if WEFT_HAS_SQLITE
#include "durable/sqlite/sqlite_store.h"
#endif
#if WEFT_HAS_ETCD
#include "durable/etcd/etcd_store.h"
#endif

namespace weft::inline v0::durable {

namespace {

std::unexpected<LockError> invalid(std::string why) {
  return std::unexpected(LockError(LockError::invalid, std::move(why)));
}

#if !WEFT_HAS_SQLITE || !WEFT_HAS_ETCD
std::unexpected<LockError> not_built(std::string_view what, std::string_view needs) {
  return invalid("this weft was built without the engine " + std::string(what) + " (it needs " +
                 std::string(needs) + ")");
}
#endif

}  // namespace

LockResult<std::unique_ptr<LockStore>> make_store(std::string_view url) {
  std::string_view scheme = url.substr(0, url.find(':'));
  if (scheme == "memory") {
    if (!url.starts_with("memory://") || url.size() == 9)
      return invalid("memory: wants a name: memory://name");
    return detail::make_memory_store(std::string(url.substr(9)));
  }
  if (scheme == "sqlite") {
#if WEFT_HAS_SQLITE
    return detail::make_sqlite_store(url);
#else
    return not_built("sqlite", "SQLite");
#endif
  }
  if (scheme == "etcd" || scheme == "etcds") {
#if WEFT_HAS_ETCD
    return make_etcd_store(url);
#else
    return not_built("etcd", "weft::http");
#endif
  }
  return invalid(
      "'" + std::string(url) +
      "' names no lock engine: sqlite:///path/locks.db, etcd://host:port/prefix or memory://name");
}

}  // namespace weft::inline v0::durable
