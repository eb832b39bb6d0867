// expect: this is neither awaitable nor a function that returns an awaitable
// SPDX-License-Identifier: MIT
#include "weft/weft.h"

struct Something {};
weft::Task<void> user() { co_await Something(); }
