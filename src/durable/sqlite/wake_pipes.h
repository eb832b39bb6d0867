// SPDX-License-Identifier: MIT
#pragma once
// How the sessions on a lock file wake each other: a named pipe per session, in a folder beside the file. The session has it
// open and reads; who has news for it writes a byte. A pipe that nobody reads, or that is not there, is that of a session whose
// process is dead: the kernel closes what a process had open, however it ended.
//
// If the folder itself was removed, nobody is dead by that: who waits is left to its lease, and hears its news with its next renewal.
// (Who opens the file then makes the folder anew, and takes those of before for dead at their turn: they are told that they lost
// their place.)
//
// Threads        one at a time.
#include <string>

#include "weft/base/unique_fd.h"
#include "weft/durable/lock_error.h"
#include "weft/durable/lock_table.h"

namespace weft::inline v0::durable::detail {

class WakePipes {
 public:
  // Beside this file, for whoever may use it. Nothing is made yet.
  explicit WakePipes(std::string lock_file);

  // Makes the session's pipe, and removes those of the dead. Returns: the end to read from.
  [[nodiscard]] LockResult<UniqueFd> open(SessionId session);
  void close(SessionId session) noexcept;

  // Returns: whether its process lives. Removes the pipe of one that is dead. In doubt (it is another
  // user's, the folder is gone, we have too many files open: that is logged once): true.
  bool wake(SessionId session) const noexcept { return reach(session, true); }
  [[nodiscard]] bool is_alive(SessionId session) const noexcept { return reach(session, false); }

  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }

 private:
  [[nodiscard]] std::string path_of(SessionId session) const;
  bool reach(SessionId session, bool wake) const noexcept;
  void remove_dead() const;
  void complain(int why) const noexcept;

  std::string lock_file_;
  std::string folder_;
  mutable bool has_complained_ = false;
};

}  // namespace weft::inline v0::durable::detail
