// SPDX-License-Identifier: MIT
#pragma once
// The file of the engine sqlite://: makes it, or makes sure that it is one and whole, before anything is written to it.
//
// What is in the file has a version; a library of another version refuses it, and so does every other program's file.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "durable/sqlite/connection.h"

namespace weft::inline v0::durable::detail {

inline constexpr std::uint32_t kLockFileId = 0x77654c6b;  // application_id: "weLk"
inline constexpr std::uint32_t kLockFileVersion = 1;      // user_version: see lock_file.cc

// Opens `path` in WAL mode. Throws LockError::mismatch: another version, or another program's file; storage: it is
// damaged, or cannot be opened. In either case the file is as it was.
[[nodiscard]] std::unique_ptr<Connection> open_lock_file(const std::string& path,
                                                         std::function<void()> step = {});

}  // namespace weft::inline v0::durable::detail
