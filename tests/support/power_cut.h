// SPDX-License-Identifier: MIT
#pragma once
// What a power cut leaves of a SQLite file, at any moment: SQLite's own VFS, which remembers what each file was when it was last synced.
//
//     PowerCut disk;                                   // from now on for all files of this process that SQLite opens
//     … use "locks.db" …
//     disk.leave("locks.db", "after.db", {.log = PowerCut::Kept::synced});
//
// A disk may keep more than it was asked to, so a test asks for several outcomes: of each file what was synced, all that was
// written, and of the log a part of the rest. Names are kept in order, as journalling file systems do: what was removed is gone
// when anything has been synced afterwards.
//
// Threads        any. SQLite's locks stay: the files are read through SQLite's own descriptors.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstddef>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace weft::test {

class PowerCut {
 public:
  enum class Kept { synced, half, written };
  struct Outcome {
    Kept file = Kept::synced;
    Kept log = Kept::synced;
  };
  static constexpr Outcome kOutcomes[] = {{Kept::synced, Kept::synced},
                                          {Kept::synced, Kept::half},
                                          {Kept::synced, Kept::written},
                                          {Kept::written, Kept::synced},
                                          {Kept::written, Kept::written}};

  PowerCut() {
    vfs_ = *below();
    vfs_.zName = "power-cut";
    vfs_.xOpen = &open;
    vfs_.xDelete = &remove;
    EXPECT_EQ(current_, nullptr);
    current_ = this;
    sqlite3_vfs_register(&vfs_, 1);
  }
  PowerCut(const PowerCut&) = delete;
  PowerCut& operator=(const PowerCut&) = delete;
  // Requires: what was opened is closed.
  ~PowerCut() {
    sqlite3_vfs_unregister(&vfs_);
    EXPECT_TRUE(open_.empty());
    current_ = nullptr;
  }

  // Makes `copy` what is found of `path` after a cut that comes now.
  void leave(const std::string& path, const std::string& copy, Outcome outcome) {
    std::lock_guard lock(mutex_);
    write(copy, kept(path, outcome.file));
    write(copy + "-wal", kept(path + "-wal", outcome.log));
    write(copy + "-journal", kept(path + "-journal", Kept::synced));
  }

 private:
  struct Opened {
    std::string path;
    const sqlite3_io_methods* below;
  };

  static sqlite3_vfs* below() { return sqlite3_vfs_find("unix"); }

  static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
    int code = below()->xOpen(below(), name, file, flags, out);
    constexpr int kKinds = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL;
    if (code != SQLITE_OK || !name || (flags & kKinds) == 0) return code;
    std::lock_guard lock(current_->mutex_);
    const sqlite3_io_methods* methods = file->pMethods;
    std::unique_ptr<sqlite3_io_methods>& ours = current_->methods_[methods];
    if (!ours) {
      ours = std::make_unique<sqlite3_io_methods>(*methods);
      ours->xSync = &sync;
      ours->xClose = &close;
    }
    current_->open_[file] = {name, methods};
    file->pMethods = ours.get();
    return code;
  }

  static int sync(sqlite3_file* file, int flags) {
    std::lock_guard lock(current_->mutex_);
    const Opened& opened = current_->open_.at(file);
    int code = opened.below->xSync(file, flags);
    if (code != SQLITE_OK) return code;
    for (const std::string& name : current_->removed_) current_->synced_.erase(name);
    current_->removed_.clear();
    current_->synced_[opened.path] = content(file, opened);
    return code;
  }

  static int close(sqlite3_file* file) {
    const sqlite3_io_methods* methods = nullptr;
    {
      std::lock_guard lock(current_->mutex_);
      methods = current_->open_.at(file).below;
      current_->open_.erase(file);
    }
    return methods->xClose(file);
  }

  static int remove(sqlite3_vfs*, const char* name, int sync_folder) {
    {
      std::lock_guard lock(current_->mutex_);
      current_->removed_.insert(name);
    }
    return below()->xDelete(below(), name, sync_folder);
  }

  static std::string content(sqlite3_file* file, const Opened& opened) {
    sqlite3_int64 size = 0;
    EXPECT_EQ(opened.below->xFileSize(file, &size), SQLITE_OK);
    std::string text(static_cast<std::size_t>(size), '\0');
    if (size > 0) {
      EXPECT_EQ(opened.below->xRead(file, text.data(), static_cast<int>(size), 0), SQLITE_OK);
    }
    return text;
  }

  // Requires: mutex_ is held.
  [[nodiscard]] std::optional<std::string> kept(const std::string& path, Kept how) const {
    auto place = synced_.find(path);
    std::optional<std::string> synced;
    if (place != synced_.end()) synced = place->second;
    if (how == Kept::synced) return synced;
    for (const auto& [file, opened] : open_) {
      if (opened.path != path) continue;
      std::string written = content(file, opened);
      std::size_t certain = synced ? synced->size() : 0;
      if (how == Kept::half && written.size() > certain) {
        written.resize((certain + written.size()) / 2);
      }
      return written;
    }
    return synced;
  }

  static void write(const std::string& path, const std::optional<std::string>& text) {
    std::remove(path.c_str());
    std::remove((path + "-shm").c_str());
    if (text) std::ofstream(path, std::ios::binary) << *text;
  }

  static inline PowerCut* current_ = nullptr;

  sqlite3_vfs vfs_{};
  std::mutex mutex_;  // guards all that follows
  std::map<const sqlite3_io_methods*, std::unique_ptr<sqlite3_io_methods>> methods_;
  std::map<sqlite3_file*, Opened> open_;
  std::map<std::string, std::string> synced_;
  std::set<std::string> removed_;  // since the last sync
};

}  // namespace weft::test
