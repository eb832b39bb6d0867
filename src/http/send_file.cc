// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/sendfile.h>

#include <algorithm>
#include <cerrno>

#include "weft/core/ok.h"
#include "weft/http/transport.h"

namespace weft::inline v0::http::detail {

Task<Result<std::size_t>> send_file(Descriptor& socket, Descriptor& file, FileRange range) {
  // One call may read so much from the disk before it returns, and everybody else on the loop waits.
  constexpr std::uint64_t kPieceBytes = 512 * 1024;
  // On io_uring a socket blocks, and so would this.
  int flags = ::fcntl(socket.number(), F_GETFL);
  if (flags < 0 || (flags & O_NONBLOCK) == 0) {
    co_return std::unexpected(std::make_error_code(std::errc::not_supported));
  }
  while (true) {
    auto offset = static_cast<off_t>(range.offset);
    ssize_t count = ::sendfile(socket.number(), file.number(), &offset,
                               static_cast<std::size_t>(std::min(range.bytes, kPieceBytes)));
    if (count >= 0) co_return static_cast<std::size_t>(count);
    if (errno == EINVAL || errno == ENOSYS) {  // this file system cannot
      co_return std::unexpected(std::make_error_code(std::errc::not_supported));
    }
    if (errno != EAGAIN && errno != EINTR) {
      co_return std::unexpected(std::error_code(errno, std::system_category()));
    }
    co_await ok(socket.writable());
  }
}

}  // namespace weft::inline v0::http::detail
