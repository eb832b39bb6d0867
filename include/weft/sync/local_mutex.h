// SPDX-License-Identifier: MIT
#pragma once
// weft::LocalMutex: a Mutex for the tasks of one loop, without atomic operations.
//
//     LocalMutex mutex;
//     auto lock = co_await mutex.lock();   // all that Mutex has, with the same rules
//
// MEASURED
//
// Threads        the first loop that uses it is the only one: use on another ends the process with a
//                message that names both.
// Condition      works with Mutex and SharedMutex only: any thread may notify it.
#include "weft/sync/mutex.h"

namespace weft::inline v0 {

using LocalMutex = BasicMutex<detail::OnOneLoop>;
using LocalMutexGuard = LocalMutex::Guard;

}  // namespace weft::inline v0
