// SPDX-License-Identifier: MIT
#pragma once
// weft::LocalMutex: a Mutex for the tasks of one loop, without atomic operations.
//
//     LocalMutex mutex;
//     auto lock = co_await mutex.lock();   // all that Mutex has, with the same rules
//
// A lock and an unlock that nobody disputes are 3.0 ns, those of a Mutex 5.0 on the machine that the
// README's figures are from (bench: lock_uncontended). Where tasks wait for it there is no difference
// (30 ns a hand-over): use Mutex, which can be shared.
//
// Threads        the first loop that uses it is the only one: use on another ends the process with a
//                message that names both.
// Condition      works with Mutex and SharedMutex only: any thread may notify it.
#include "weft/sync/mutex.h"

namespace weft::inline v0 {

using LocalMutex = BasicMutex<detail::OnOneLoop>;
using LocalMutexGuard = LocalMutex::Guard;

}  // namespace weft::inline v0
