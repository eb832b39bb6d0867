// SPDX-License-Identifier: MIT
#pragma once
// UniqueFd: a file descriptor that is closed once.
//
// Threads        none: as an int.
// Allocation     none.
//
// Invariants
//   I1  fd_ is -1, or a descriptor that this object alone closes.
#include <utility>

namespace weft::inline v0 {

class UniqueFd {
 public:
  UniqueFd() noexcept = default;
  // Takes the descriptor over; any negative number means none.
  explicit UniqueFd(int fd) noexcept : fd_(fd < 0 ? -1 : fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  // Returns: the descriptor, still owned, or -1.
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

  // Returns: the descriptor, now the caller's to close, or -1.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

  // Closes what it has and takes `fd` over. errno stays as it was: this runs in the midst of error
  // handling. What close() has to say about data not yet written is lost; who needs that calls
  // fsync(), or release() and close(). Aborts if the descriptor was closed already, because it may
  // be somebody else's by now.
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

}  // namespace weft::inline v0
