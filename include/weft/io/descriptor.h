// SPDX-License-Identifier: MIT
#pragma once
// weft::Descriptor: a socket, pipe, file or any other descriptor, owned, with every operation on it
// awaitable. What the streams of net/ are made of.
//
//     Descriptor in(UniqueFd(::open("fifo", O_RDONLY | O_CLOEXEC)));
//     Result<std::size_t> count = co_await in.read(buffer);          // 0: the end
//     Result<Descriptor> file = co_await open_file("notes", O_RDWR | O_CREAT, 0644);
//
// A descriptor belongs to the loop that first uses it, until leave_loop(). One reader and one writer
// may wait on it at once; a second of a kind gets a UsageError. The positional operations of files
// are not bound by that.
//
// Threads        operations: the loop it belongs to (UsageError elsewhere). Moving and destroying:
//                any thread, while no operation is under way. A loop that runs then closes it, in
//                its next turn; if its loop does not run it is closed at once, but for one that
//                io_uring accepts or reads ahead on, on another thread than the loop's last: that
//                one is closed by the next run(), or with the loop's end.
// Cancellation   every operation is a cancel point on every call. A cancelled one took nothing; one
//                that took something (bytes, a connection) all the same delivers it (L5). A
//                connect() that was cancelled leaves the socket good for nothing but close().
// Errors         as Result: what the system call says. EINTR is tried again; EAGAIN does not occur;
//                no operation raises SIGPIPE on a socket (and EventLoop ignores it for the rest).
// Closing        close(), and the destructor on its loop, end what waits on it with
//                std::errc::bad_file_descriptor, as does what is begun later. Its number is free for
//                reuse after that, and nothing that was meant for it reaches the next owner.
// Buffers        what an operation is given must outlive its wait; the awaiting frame is the place.
// Allocation     an entry, when it first comes to a loop; none per operation. read_pooled(): the loop's
//                stock of buffers, once; from the heap, when that is all lent.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/unique_fd.h"
#include "weft/core/make_awaitable.h"
#include "weft/io/platform_io.h"
#include "weft/io/pooled_bytes.h"
#include "weft/time/sleep.h"

namespace weft::inline v0 {

class Descriptor;

namespace detail {

class IoAwaiterBase : protected FileOperation {
 public:
  using native_awaiter = void;
  static constexpr bool await_ready() noexcept { return false; }
  bool await_suspend(Continuation by);
  bool await_cancel(Continuation) noexcept;
  [[nodiscard]] bool await_must_resume() const noexcept;
  void await_introspect(auto& tree) noexcept { tree.node(name()); }

 protected:
  IoAwaiterBase(IoCode what, Descriptor* on) noexcept : FileOperation(what), on_(on) {}
  [[nodiscard]] std::error_code error() const noexcept {
    return std::error_code(-result, std::system_category());
  }
  // Finds the driver and the entry.
  void prepare(Continuation by);
  [[nodiscard]] PlatformIO& io() const noexcept { return *io_; }

 private:
  [[nodiscard]] const char* name() const noexcept;

  Descriptor* on_;  // null: none yet (open), or borrowed. It may be gone when the wait has begun
  PlatformIO* io_ = nullptr;
};

// The result as a T: std::size_t, or nothing.
template <class T, IoCode kCode>
class IoAwaiter final : public IoAwaiterBase {
 public:
  struct Arguments {
    void* address = nullptr;
    std::size_t length = 0;
    std::int64_t offset = 0;
    std::int32_t flags = 0;
    void* second = nullptr;
  };
  IoAwaiter(Descriptor* on, const Arguments& arguments) noexcept : IoAwaiterBase(kCode, on) {
    address = arguments.address;
    length = arguments.length;
    offset = arguments.offset;
    flags = arguments.flags;
    second = arguments.second;
  }
  Result<T> await_resume() noexcept(std::is_nothrow_constructible_v<T>) {
    if (result < 0) return std::unexpected(error());
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return static_cast<T>(result);
    }
  }
};

// After EMFILE and its like, the next one pauses first.
class AcceptAwaiter final : public IoAwaiterBase, private Waker {
 public:
  AcceptAwaiter(Descriptor* on, sockaddr* who, socklen_t* size) noexcept
      : IoAwaiterBase(IoCode::accept, on) {
    address = who;
    second = size;
  }
  bool await_suspend(Continuation by);
  bool await_cancel(Continuation) noexcept;
  Result<Descriptor> await_resume() noexcept;

 private:
  void wake() noexcept override;  // the pause is over
  bool cancel_with(const CancelReason& reason) noexcept override {
    return waiter.cancel_with(reason);
  }
  [[nodiscard]] Strand* waiting() const noexcept override { return waiter.strand(); }

  Alarm pause_;
};

class PooledAwaiter final : public IoAwaiterBase {
 public:
  explicit PooledAwaiter(Descriptor* on) noexcept : IoAwaiterBase(IoCode::read_pooled, on) {}
  ~PooledAwaiter() {
    // It has one, and did not read: it was withdrawn.
    if (second) BufferPool::give_back(*static_cast<PooledBuffer*>(second));
  }
  Result<PooledBytes> await_resume() noexcept {
    if (result < 0) return std::unexpected(error());
    return PooledBytes(static_cast<PooledBuffer*>(std::exchange(second, nullptr)));
  }
};

template <class T, IoCode kCode>
class IoWait {
 public:
  using Awaiter = IoAwaiter<T, kCode>;
  IoWait(Descriptor* on, const typename Awaiter::Arguments& arguments) noexcept
      : on_(on), arguments_(arguments) {}
  Awaiter operator co_await() const noexcept { return Awaiter(on_, arguments_); }

 private:
  Descriptor* on_;
  typename Awaiter::Arguments arguments_;
};

}  // namespace detail

class [[nodiscard]] Descriptor {
  using Code = detail::IoCode;
  template <class T, detail::IoCode kCode>
  using Wait = detail::IoWait<T, kCode>;

 public:
  Descriptor() noexcept = default;
  explicit Descriptor(UniqueFd fd) noexcept : fd_(std::move(fd)) {}
  Descriptor(Descriptor&& other) noexcept
      : fd_(std::move(other.fd_)), entry_(std::exchange(other.entry_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this == &other) return *this;
    close();
    fd_ = std::move(other.fd_);
    entry_ = std::exchange(other.entry_, nullptr);
    return *this;
  }
  ~Descriptor() { close(); }

  // Returns: its number, still owned, or -1.
  [[nodiscard]] int number() const noexcept { return fd_.get(); }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(fd_); }

  void close() noexcept;
  // The next loop that uses it becomes its own. UsageError elsewhere than on its loop, or while an
  // operation is under way.
  void leave_loop();
  // Takes the number out: leave_loop(), and it is the caller's; O_NONBLOCK is set or not, as the loop's
  // driver wanted it. UsageError while accepted_ahead() or has_read_ahead(): then nothing was lost, it
  // has only left its loop, and what is there can be taken before the next attempt.
  [[nodiscard]] UniqueFd release();
  // Connections that the kernel accepted before they were asked for (io_uring does, up to 64 of
  // them, once an accept() has waited). accept() takes them, without waiting; close() closes them.
  [[nodiscard]] std::size_t accepted_ahead() const noexcept {
    return entry_ ? entry_->accepted.size() : 0;
  }

  // Whether the kernel has read bytes, or an error after them, before they were asked for (io_uring
  // does, of TCP, once a read_pooled() has waited). Every operation that reads takes them first,
  // without waiting; leave_loop() takes them along; close() drops them.
  [[nodiscard]] bool has_read_ahead() const noexcept { return entry_ && entry_->has_read_ahead(); }

  // --- Streams and datagrams ----------------------------------------------------------------------

  // Up to buffer.size() bytes. Returns: how many; 0: the end.
  [[nodiscard]] auto read(std::span<std::byte> buffer) noexcept {
    return Wait<std::size_t, Code::read>(this, {.address = buffer.data(), .length = buffer.size()});
  }
  // The next bytes, in a buffer that the loop lends: a connection that waits holds none. Returns: up to
  // PooledBytes::kBytes of them; empty: the end.
  //
  // On io_uring, a TCP connection that has waited in here once is read ahead of its task, up to
  // kReadAheadMax buffers and the few that the kernel had in hand when it was told to stop; it is
  // told to go on when they are all taken. Any other operation that reads ends that, until the next
  // read_pooled(): stay with one kind, and let nobody else read from the socket. Elsewhere nothing is
  // read before it is asked for.
  //
  // Cancel: no bytes are lost, those that came meanwhile are the next reader's.
  static constexpr std::size_t kReadAheadMax = 8;
  [[nodiscard]] auto read_pooled() noexcept { return make_awaitable<detail::PooledAwaiter>(this); }
  // Some of the bytes. Returns: how many, at least 1.
  [[nodiscard]] auto write(std::span<const std::byte> bytes) noexcept {
    return Wait<std::size_t, Code::write>(
        this, {.address = const_cast<std::byte*>(bytes.data()), .length = bytes.size()});
  }
  [[nodiscard]] auto readv(std::span<const iovec> parts) noexcept {
    return Wait<std::size_t, Code::readv>(
        this, {.address = const_cast<iovec*>(parts.data()), .length = parts.size()});
  }
  [[nodiscard]] auto writev(std::span<const iovec> parts) noexcept {
    return Wait<std::size_t, Code::writev>(
        this, {.address = const_cast<iovec*>(parts.data()), .length = parts.size()});
  }
  // Of bytes that were read ahead (read_pooled()) there is no control data, and MSG_WAITALL returns what
  // there is.
  [[nodiscard]] auto recvmsg(msghdr& message, int flags = 0) noexcept {
    return Wait<std::size_t, Code::recvmsg>(this, {.address = &message, .flags = flags});
  }
  [[nodiscard]] auto sendmsg(const msghdr& message, int flags = 0) noexcept {
    return Wait<std::size_t, Code::sendmsg>(
        this, {.address = const_cast<msghdr*>(&message), .flags = flags});
  }
  // Several datagrams by one system call: as many as there are, or as there is room for, now. Returns: how
  // many, at least 1. An error of a later one is the next call's. Not for a descriptor that read_pooled() is
  // used on.
  [[nodiscard]] auto recvmmsg(std::span<mmsghdr> messages, int flags = 0) noexcept {
    return Wait<std::size_t, Code::recvmmsg>(
        this, {.address = messages.data(), .length = messages.size(), .flags = flags});
  }
  [[nodiscard]] auto sendmmsg(std::span<mmsghdr> messages, int flags = 0) noexcept {
    return Wait<std::size_t, Code::sendmmsg>(
        this, {.address = messages.data(), .length = messages.size(), .flags = flags});
  }

  // The next connection, close-on-exec. `address`, where given, is told who it is.
  //
  // Out of descriptors or memory: the error is returned, and the listener stays as it is. The next
  // accept() on it waits kAcceptPause first, so that a loop that only tries again does not spin.
  static constexpr std::chrono::milliseconds kAcceptPause{50};
  [[nodiscard]] auto accept(sockaddr* address = nullptr, socklen_t* length = nullptr) noexcept {
    return make_awaitable<detail::AcceptAwaiter>(this, address, length);
  }
  [[nodiscard]] auto connect(const sockaddr& address, socklen_t length) noexcept {
    return Wait<void, Code::connect>(
        this, {.address = const_cast<sockaddr*>(&address), .length = length});
  }
  // Waits only: a read, or a write, would not block.
  [[nodiscard]] auto readable() noexcept { return Wait<void, Code::readable>(this, {}); }
  [[nodiscard]] auto writable() noexcept { return Wait<void, Code::writable>(this, {}); }

  // --- Files --------------------------------------------------------------------------------------

  [[nodiscard]] auto pread(std::span<std::byte> buffer, std::int64_t offset) noexcept {
    return Wait<std::size_t, Code::pread>(
        this, {.address = buffer.data(), .length = buffer.size(), .offset = offset});
  }
  [[nodiscard]] auto pwrite(std::span<const std::byte> bytes, std::int64_t offset) noexcept {
    return Wait<std::size_t, Code::pwrite>(this, {.address = const_cast<std::byte*>(bytes.data()),
                                                  .length = bytes.size(),
                                                  .offset = offset});
  }
  enum class Sync { data_only = 1, everything = 0 };
  [[nodiscard]] auto fsync(Sync what = Sync::everything) noexcept {
    return Wait<void, Code::fsync>(this, {.flags = static_cast<std::int32_t>(what)});
  }
  [[nodiscard]] auto statx(struct statx& status, unsigned mask = STATX_BASIC_STATS) noexcept {
    static constexpr char kItself[] = "";
    return Wait<void, Code::statx>(this, {.address = const_cast<char*>(kItself),
                                          .length = mask,
                                          .flags = AT_EMPTY_PATH,
                                          .second = &status});
  }

 private:
  friend class detail::IoAwaiterBase;
  // UsageError: it belongs to another loop, or there is nothing open.
  detail::IoEntry& entry_on(PlatformIO& io);

  UniqueFd fd_;
  detail::IoEntry* entry_ = nullptr;
};

namespace detail {

inline Result<Descriptor> AcceptAwaiter::await_resume() noexcept {
  if (result < 0) return std::unexpected(error());
  return Descriptor(UniqueFd(result));
}

class OpenAwaiter final : public IoAwaiterBase {
 public:
  OpenAwaiter(std::string path, int open_flags, unsigned mode) noexcept
      : IoAwaiterBase(IoCode::open, nullptr), path_(std::move(path)) {
    address = path_.data();
    flags = open_flags;
    length = mode;
  }
  Result<Descriptor> await_resume() noexcept {
    if (result < 0) return std::unexpected(error());
    return Descriptor(UniqueFd(result));
  }

 private:
  std::string path_;
};

// Somebody else's descriptor.
template <IoCode kCode>
class BorrowedAwaiter final : public IoAwaiterBase {
 public:
  explicit BorrowedAwaiter(int fd) noexcept : IoAwaiterBase(kCode, nullptr) { flags = fd; }
  Result<void> await_resume() noexcept {
    if (result < 0) return std::unexpected(error());
    return {};
  }
};

}  // namespace detail

// Opens a file, close-on-exec. On io_uring the kernel does it aside, elsewhere the blocking pool.
[[nodiscard]] inline auto open_file(std::string path, int flags, unsigned mode = 0) {
  return make_awaitable<detail::OpenAwaiter>(std::move(path), flags, mode);
}

// Waits until `fd`, somebody else's descriptor, can be read from or written to without blocking.
// Requires: it stays open until the wait has ended; to close it earlier, cancel the wait first.
// UsageError if another task waits for the same.
[[nodiscard]] inline auto readable(int fd) {
  return make_awaitable<detail::BorrowedAwaiter<detail::IoCode::readable>>(fd);
}
[[nodiscard]] inline auto writable(int fd) {
  return make_awaitable<detail::BorrowedAwaiter<detail::IoCode::writable>>(fd);
}

}  // namespace weft::inline v0
