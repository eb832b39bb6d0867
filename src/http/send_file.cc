// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/sendfile.h>

#include <algorithm>
#include <cerrno>

#include "weft/core/ok.h"
#include "weft/http/transport.h"

namespace weft::inline v0::http::detail {

namespace {

// One call may read so much from the disk before it returns, and everybody else on the loop waits.
constexpr std::uint64_t kPieceBytes = 512 * 1024;

// On io_uring a socket blocks. While this lives, it does not: what the ring has in hand on it asks for that with every
// operation of its own, and does not look at the flag.
class WithoutBlocking {
 public:
  explicit WithoutBlocking(int socket) noexcept
      : socket_(socket), flags_(::fcntl(socket, F_GETFL)) {
    if (changes()) ::fcntl(socket_, F_SETFL, flags_ | O_NONBLOCK);
  }
  WithoutBlocking(const WithoutBlocking&) = delete;
  WithoutBlocking& operator=(const WithoutBlocking&) = delete;
  ~WithoutBlocking() {
    if (changes()) ::fcntl(socket_, F_SETFL, flags_);
  }

 private:
  [[nodiscard]] bool changes() const noexcept { return flags_ >= 0 && !(flags_ & O_NONBLOCK); }

  int socket_;
  int flags_;
};

Result<std::size_t> send_piece(int socket, int file, FileRange range) noexcept {
  WithoutBlocking now(socket);
  auto offset = static_cast<off_t>(range.offset);
  auto bytes = static_cast<std::size_t>(std::min(range.bytes, kPieceBytes));
  ssize_t count = ::sendfile(socket, file, &offset, bytes);
  if (count < 0) return std::unexpected(std::error_code(errno, std::system_category()));
  return static_cast<std::size_t>(count);
}

}  // namespace

Task<Result<std::size_t>> send_file(Descriptor& socket, Descriptor& file, FileRange range) {
  while (true) {
    Result<std::size_t> count = send_piece(socket.number(), file.number(), range);
    if (count) co_return count;
    if (count.error() == std::errc::invalid_argument ||
        count.error() == std::errc::function_not_supported) {  // this file system cannot
      co_return std::unexpected(std::make_error_code(std::errc::not_supported));
    }
    if (count.error() == std::errc::resource_unavailable_try_again) {
      co_await ok(socket.writable());
    } else if (count.error() != std::errc::interrupted) {
      co_return count;
    }
  }
}

}  // namespace weft::inline v0::http::detail
