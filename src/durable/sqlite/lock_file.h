// SPDX-License-Identifier: MIT
#pragma once
// The file of the engine sqlite://: makes it, or makes sure that it is one and whole, before anything is written to it.
//
// What is in the file has a version. One of version 1 is made into one of this, when nobody has it open; all others are
// refused, and so is every other program's file.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "durable/sqlite/connection.h"

namespace weft::inline v0::durable::detail {

inline constexpr std::uint32_t kLockFileId = 0x77654c6b;  // application_id: "weLk"
inline constexpr std::uint32_t kLockFileVersion = 2;      // user_version: see lock_file.cc

// Opens `path` in WAL mode, with synchronous=FULL. Throws LockError::mismatch: another version, or another program's file; storage: it is
// damaged, or cannot be opened. In either case its locks are as they were.
[[nodiscard]] std::unique_ptr<Connection> open_lock_file(const std::string& path,
                                                         std::function<void()> step = {});

// Opens `path` to read. Nothing is written to the file or made of it. Throws as above. Returns: null if it is empty, as a file is
// that somebody is about to make.
[[nodiscard]] std::unique_ptr<Connection> open_to_look(const std::string& path,
                                                       Connection::ReadOnly how);

}  // namespace weft::inline v0::durable::detail
