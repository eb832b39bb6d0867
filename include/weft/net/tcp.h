// SPDX-License-Identifier: MIT
#pragma once
// weft::net::TcpStream, TcpListener: connections over TCP, ours and theirs.
//
//     Result<TcpStream> peer = co_await within(2s, TcpStream::connect(address));
//     Result<TcpListener> listener = TcpListener::listen(Address::loopback_v4(8080));
//     Result<TcpStream> next = co_await listener->accept();
//
// net/serve.h has the loop around accept() that a server needs; net/connect.h connects by a host's name.
//
// Threads, Cancellation, Errors, Closing: as StreamSocket. A cancelled accept() took no connection; a
// cancelled connect() closes its own.
// Allocation     connect(), accept(): a frame.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/core/task.h"
#include "weft/net/address.h"
#include "weft/net/socket.h"

namespace weft::inline v0::net {

struct TcpOptions {
  // Small writes leave at once, and do not wait for the answer to the one before.
  bool nodelay = true;
  // Asks an idle peer after this while whether it is still there, and then twice a minute: half a dozen
  // questions without an answer end the connection.
  std::optional<std::chrono::seconds> keepalive{};
  // Set: close() drops what was not sent yet, and the peer sees a reset. (To wait for the peer: net/close_within.h.)
  bool reset_on_close = false;
};

struct ListenOptions {
  TcpOptions connections{};  // of those that are accepted
  int backlog =
      1024;  // connections that the kernel holds until they are accepted; it has a limit of its own
  // Several listeners, of one user, share the address, and the kernel spreads the connections among them.
  bool reuse_port = false;
  bool v6_only = false;  // any_v6() does not take connections over IPv4 as well
};

struct ConnectOptions;

class [[nodiscard]] TcpStream : public StreamSocket {
 public:
  TcpStream() noexcept = default;
  // A connected socket of the caller's, whose options are as they are.
  explicit TcpStream(Descriptor connected) noexcept : StreamSocket(std::move(connected)) {}

  [[nodiscard]] static Task<Result<TcpStream>> connect(Address where, TcpOptions options = {});
  // To whichever of the host's addresses answers first: net/connect.h has the details and the options. In the target
  // weft::resolve.
  [[nodiscard]] static Task<Result<TcpStream>> connect(std::string host, std::uint16_t port);
  [[nodiscard]] static Task<Result<TcpStream>> connect(std::string host, std::uint16_t port,
                                                       ConnectOptions options);

  // Errors: as getsockname() and getpeername(); not_connected when the peer has reset it.
  [[nodiscard]] Result<Address> local_address() const noexcept;
  [[nodiscard]] Result<Address> peer_address() const noexcept;

  [[nodiscard]] Result<void> set_nodelay(bool on) noexcept;
  [[nodiscard]] Result<void> set_keepalive(std::optional<std::chrono::seconds> idle) noexcept;
  [[nodiscard]] Result<void> set_reset_on_close(bool on) noexcept;
};
static_assert(Stream<TcpStream>);

class [[nodiscard]] TcpListener {
 public:
  TcpListener() noexcept = default;

  // Does not wait. Port 0: one that is free, local_address() tells which.
  [[nodiscard]] static Result<TcpListener> listen(Address where, ListenOptions options = {});

  // The next connection. An error of one connection is not the listener's: after any error accept() may be
  // called again; without descriptors or memory it waits for a moment first (Descriptor::kAcceptPause).
  [[nodiscard]] Task<Result<TcpStream>> accept();

  [[nodiscard]] Result<Address> local_address() const noexcept;
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(descriptor_); }
  // Ends an accept() that waits with std::errc::bad_file_descriptor. The kernel refuses who comes from now on, and
  // resets who was not accepted.
  void close() noexcept { descriptor_.close(); }
  [[nodiscard]] Descriptor& descriptor() noexcept { return descriptor_; }

 private:
  explicit TcpListener(Descriptor descriptor) noexcept : descriptor_(std::move(descriptor)) {}

  Descriptor descriptor_;
};

}  // namespace weft::inline v0::net
