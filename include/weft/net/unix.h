// SPDX-License-Identifier: MIT
#pragma once
// weft::net::UnixStream, UnixListener: connections within this machine, by a path.
//
//     Result<UnixListener> listener = UnixListener::listen("/run/service.sock");
//     Result<UnixStream> peer = co_await UnixStream::connect("/run/service.sock");
//     auto [ours, theirs] = or_throw(UnixStream::pair());
//
// A path that begins with '@' is a name in Linux's abstract namespace: no file, gone with its last socket.
//
// Threads, Cancellation, Errors, Closing: as StreamSocket.
// Allocation     connect(), accept(): a frame.
#include <sys/types.h>

#include <string>
#include <utility>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/net/socket.h"

namespace weft::inline v0::net {

class [[nodiscard]] UnixStream : public StreamSocket {
 public:
  UnixStream() noexcept = default;
  explicit UnixStream(Descriptor connected) noexcept : StreamSocket(std::move(connected)) {}

  // std::errc::filename_too_long: a path has at most 107 bytes.
  [[nodiscard]] static Task<Result<UnixStream>> connect(std::string path);
  // Two ends of one connection.
  [[nodiscard]] static Result<std::pair<UnixStream, UnixStream>> pair();

  // Who connected, or listened, as the kernel knows.
  struct Credentials {
    pid_t process;
    uid_t user;
    gid_t group;
  };
  [[nodiscard]] Result<Credentials> peer_credentials() const noexcept;
};
static_assert(Stream<UnixStream>);

// The file of a path is removed by close() and the destructor, if it is still the one that listen() made.
class [[nodiscard]] UnixListener {
 public:
  UnixListener() noexcept = default;
  UnixListener(UnixListener&& other) noexcept { *this = std::move(other); }
  UnixListener& operator=(UnixListener&& other) noexcept;
  ~UnixListener() { close(); }

  // A socket's file that nobody listens on, left by a process that died, is replaced; anything else at the path is
  // std::errc::address_in_use.
  [[nodiscard]] static Result<UnixListener> listen(std::string path, int backlog = 1024);

  // As TcpListener::accept().
  [[nodiscard]] Task<Result<UnixStream>> accept();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(descriptor_); }
  void close() noexcept;

 private:
  UnixListener(Descriptor descriptor, std::string path, dev_t device, ino_t file) noexcept
      : descriptor_(std::move(descriptor)), path_(std::move(path)), device_(device), file_(file) {}

  Descriptor descriptor_;
  std::string path_;
  dev_t device_ = 0;  // of the file that listen() made, or 0
  ino_t file_ = 0;
};

}  // namespace weft::inline v0::net
