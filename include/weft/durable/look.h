// SPDX-License-Identifier: MIT
#pragma once
// weft::durable::look(): who holds and who waits in a store, for who only looks. Engine::report() is for who has an engine.
//
//     durable::LockResult<durable::StoreView> seen = co_await durable::look("sqlite:///var/lib/app/locks.db");
//
//   sqlite    the file is read as it is at one moment, and neither written to nor made. It is a reader to those who use it: nobody waits
//             for it, and it waits for nobody who writes; but for who is making the file, or making an older one into one of today.
//   others    by an engine that is opened for it.
//
// Threads        any loop.
// Cancellation   what is being read is read to its end, and dropped.
// Errors         LockError, as of with_engine() and Engine::report().
#include <optional>
#include <string>
#include <vector>

#include "weft/core/task.h"
#include "weft/durable/lock_error.h"
#include "weft/durable/lock_store.h"

namespace weft::inline v0::durable {

struct StoreView {
  bool exists = true;  // false: there is no such file, so there are no locks
  std::vector<ResourceReport> resources{};
};

// Of one resource, or of all.
[[nodiscard]] Task<LockResult<StoreView>> look(std::string url,
                                               std::optional<std::string> resource = {});

}  // namespace weft::inline v0::durable
