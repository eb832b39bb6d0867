// SPDX-License-Identifier: MIT
#pragma once
// What the parts of `weft lock` share: its smaller commands, where locks are kept, and how a LockError ends it.
#include <optional>
#include <string>

#include "command.h"
#include "weft/durable/lock_error.h"

namespace weft::tool {

// weft lock ls, weft lock show NAME, weft lock revoke NAME. Each returns the exit code.
int list_locks(Words words);
int show_lock(Words words);
int revoke_lock(Words words);

// Whether the folder of the user's own file is made if it is not there.
enum class OwnFile { made, as_it_is };

// The engine to use: --engine, or $WEFT_LOCK_ENGINE, or a file in a folder that is this user's alone.
// A path is a file's, for sqlite. Throws: BadUsage, Failure.
[[nodiscard]] std::string lock_engine(const std::optional<std::string>& given,
                                      OwnFile own = OwnFile::made);
// What the help says of --engine.
[[nodiscard]] std::string lock_engine_help();

// `name`: of the lock that it is about.
[[noreturn]] void fail(const durable::LockError& error, const std::string& name);

}  // namespace weft::tool
