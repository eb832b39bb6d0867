// SPDX-License-Identifier: MIT
#pragma once
// weft::net::Socket: what all sockets have in common. StreamSocket: what TcpStream and UnixStream do. A Stream.
//
// Threads        the loop that first uses it, until move_to(). Moving and destroying it: any thread, while no
//                operation is under way.
// Cancellation   a cancel point on every call but shutdown_write(), which does not wait; nothing is lost (see Descriptor).
// Errors         as Result; UsageError for what is a mistake: a second reader or writer, another loop.
// Closing        close() and the destructor end what waits on it, and what is begun later, with std::errc::bad_file_descriptor.
// Allocation     as Descriptor: an entry per loop it comes to.
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/unique_fd.h"
#include "weft/core/primitives.h"
#include "weft/io/descriptor.h"
#include "weft/net/stream.h"
#include "weft/run/event_loop.h"

namespace weft::inline v0::net {

class [[nodiscard]] Socket {
 public:
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(descriptor_); }

  void close() noexcept { descriptor_.close(); }

  // From now on it belongs to `loop`, with what was read ahead. Requires: no operation is under way.
  // UsageError elsewhere than on its loop, and for the next use elsewhere than on `loop`.
  void move_to(EventLoop& loop);

  [[nodiscard]] Descriptor& descriptor() noexcept { return descriptor_; }

 protected:
  Socket() noexcept = default;
  explicit Socket(Descriptor descriptor) noexcept : descriptor_(std::move(descriptor)) {}
  ~Socket() = default;
  Socket(Socket&& other) noexcept
      : descriptor_(std::move(other.descriptor_)),
        destination_(std::exchange(other.destination_, nullptr)) {}
  Socket& operator=(Socket&& other) noexcept {
    descriptor_ = std::move(other.descriptor_);
    destination_ = std::exchange(other.destination_, nullptr);
    return *this;
  }

  [[nodiscard]] int number() const noexcept { return descriptor_.number(); }
  // The descriptor, for use by the loop that is current.
  [[nodiscard]] Descriptor& here() {
    if (destination_) [[unlikely]]
      arrive();
    return descriptor_;
  }

 private:
  void arrive();

  Descriptor descriptor_;
  EventLoop* destination_ = nullptr;  // where it was sent, until it is used there
};

class [[nodiscard]] StreamSocket : public Socket {
 public:
  // Returns: bytes read; 0: the end.
  [[nodiscard]] auto read_some(std::span<std::byte> buffer) { return here().read(buffer); }
  // The next bytes, in a buffer that the loop lends (Descriptor::read_pooled() has the details). Empty: the end.
  [[nodiscard]] auto read_pooled() { return here().read_pooled(); }
  // Returns: bytes written, at least 1 if there were some.
  [[nodiscard]] auto write_some(std::span<const std::byte> bytes) { return here().write(bytes); }
  // Of more than kPartsMax parts, the first ones.
  static constexpr std::size_t kPartsMax = 1024;  // Linux takes no more
  [[nodiscard]] auto write_some(std::span<const Part> parts) {
    const iovec* first = parts.data();
    return here().writev(std::span(first, std::min(parts.size(), kPartsMax)));
  }

  // Does not wait.
  [[nodiscard]] auto shutdown_write() noexcept { return just(shutdown(SHUT_WR)); }

 protected:
  StreamSocket() noexcept = default;
  using Socket::Socket;

 private:
  [[nodiscard]] Result<void> shutdown(int how) noexcept;
};

}  // namespace weft::inline v0::net
