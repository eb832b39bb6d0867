// SPDX-License-Identifier: MIT
#include "weft/net/serve_datagrams.h"

namespace weft::inline v0::net {

Task<Result<void>> DatagramSender::send_to(std::span<const std::byte> bytes, Address to) {
  LocalMutexGuard turn = co_await one_writer_.lock();
  if (!socket_) co_return std::unexpected(make_error_code(std::errc::bad_file_descriptor));
  co_return co_await socket_.send_to(bytes, to);
}

}  // namespace weft::inline v0::net
