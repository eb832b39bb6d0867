// SPDX-License-Identifier: MIT
#pragma once
// weft::net::UdpSocket: datagrams over UDP, one by one, by the batch, and by the segment.
//
//     UdpSocket socket = or_throw(UdpSocket::bind(Address::any_v4(7)));
//     Result<Datagram> got = co_await socket.receive_from(buffer);
//     if (got && !got->truncated()) co_await socket.send_to(got->bytes, got->peer);
//
//     DatagramBatch batch({.count_max = 64, .bytes_max = 1500});
//     co_await ok(socket.receive_some(batch));      // what is there, at least one: one system call
//     co_await ok(socket.send_all(batch));          // each to where it came from
//
// A datagram that was larger than its buffer is cut off by the kernel; Datagram says so, and how
// large it was.
//
// Threads        the loop that first uses it, until move_to(). Moving and destroying it: any
//                thread, while no operation is under way.
// Cancellation   a cancel point on every call. A cancelled one took and sent nothing; one that did
//                all the same delivers it (L5). send_all() and send_segments() advance what they
//                were given before they wait again.
// Errors         as Result; UsageError for what is a mistake: a second reader or writer, another
//                loop. connection_refused, on a socket that has a peer: an earlier datagram met
//                nobody (ICMP said so). It is told once, to whoever sends or receives next, who
//                then has sent or received nothing; the socket is as good as before, and the same
//                call may be made again.
// Closing        close() and the destructor end what waits on it, and what is begun later, with
//                std::errc::bad_file_descriptor.
// Allocation     as Descriptor. send_all(), send_segments(): a frame. A DatagramBatch: when it is
//                made.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/core/make_awaitable.h"
#include "weft/core/task.h"
#include "weft/io/descriptor.h"
#include "weft/net/address.h"
#include "weft/net/socket.h"

namespace weft::inline v0::net {

inline constexpr std::size_t kDatagramBytesMax = 65'507;  // over IPv4; over IPv6 20 more

struct UdpOptions {
  // Several sockets, of one user, share the address, and the kernel spreads the peers among them.
  bool reuse_port = false;
  bool v6_only = false;    // any_v6() does not take datagrams over IPv4 as well
  bool broadcast = false;  // may send to broadcast addresses
  // The kernel may deliver datagrams of one sender and one size as one (UDP_GRO, Linux 5.0): see
  // Datagram::segment_bytes. Wants buffers of 64 KiB. Without the kernel's help each comes by
  // itself.
  bool coalesce = false;
  // send_segments() has the kernel cut its datagrams (UDP_SEGMENT, Linux 4.18), where it can.
  bool kernel_segments = true;
  // What the kernel holds for this socket each way; it has limits of its own.
  std::optional<int> receive_queue_bytes{};
  std::optional<int> send_queue_bytes{};
};

struct Datagram {
  std::span<std::byte> bytes;  // in the buffer that it was received into
  Address peer;                // who sent it, or who is to get it
  std::size_t sent_bytes =
      0;  // what it had when it was sent: more than there are, if it was cut off
  std::size_t segment_bytes =
      0;  // not 0: these are several datagrams, of so many bytes each but the last
  [[nodiscard]] bool truncated() const noexcept { return sent_bytes > bytes.size(); }
};

namespace detail {

// Where the kernel finds and puts what belongs to a datagram, beside its bytes.
struct DatagramSlot {
  iovec part{};
  sockaddr_in6 peer{};  // room for either family
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
};

void prepare_receive(msghdr& message, DatagramSlot& slot, std::span<std::byte> buffer) noexcept;
// `to` null: the socket's peer. segment_bytes 0: it is one.
void prepare_send(msghdr& message, DatagramSlot& slot, std::span<const std::byte> bytes,
                  const Address* to, std::size_t segment_bytes) noexcept;
// After a receive that returned `length`.
[[nodiscard]] Datagram received(const msghdr& message, const DatagramSlot& slot,
                                std::size_t length) noexcept;

class ReceiveAwaiter final : public weft::detail::IoAwaiterBase {
 public:
  ReceiveAwaiter(Descriptor* on, std::span<std::byte> buffer) noexcept
      : IoAwaiterBase(weft::detail::IoCode::recvmsg, on) {
    prepare_receive(message_, slot_, buffer);
    address = &message_;
    flags = MSG_TRUNC;  // returns what the datagram had, whatever there was room for
  }
  Result<Datagram> await_resume() noexcept {
    if (result < 0) return std::unexpected(error());
    return received(message_, slot_, static_cast<std::size_t>(result));
  }

 private:
  msghdr message_;
  DatagramSlot slot_;
};

class SendAwaiter final : public weft::detail::IoAwaiterBase {
 public:
  SendAwaiter(Descriptor* on, std::span<const std::byte> bytes, std::optional<Address> to,
              std::size_t segment_bytes) noexcept
      : IoAwaiterBase(weft::detail::IoCode::sendmsg, on) {
    prepare_send(message_, slot_, bytes, to ? &*to : nullptr, segment_bytes);
    address = &message_;
  }
  Result<void> await_resume() noexcept {
    if (result < 0) return std::unexpected(error());
    return {};
  }

 private:
  msghdr message_;
  DatagramSlot slot_;
};

class BatchReceiveAwaiter;
class BatchSendAwaiter;

}  // namespace detail

// Several datagrams and room for more, in one block of memory, for one system call.
//
// Threads        the loop that uses it.
//
// Invariants
//   I1  the datagrams are items_[first_] to items_[last_ - 1].
//   I2  items_[i].bytes lies in the i-th piece of memory_, and messages_[i] names slots_[i].
class DatagramBatch {
 public:
  struct Limits {
    std::size_t count_max = 64;    // at most kCountMax. Not 0
    std::size_t bytes_max = 2048;  // of one datagram: what is larger is cut off. Not 0
  };
  static constexpr std::size_t kCountMax = 1024;  // Linux takes no more

  DatagramBatch() : DatagramBatch(Limits()) {}
  // UsageError: outside of the limits.
  explicit DatagramBatch(Limits limits);
  DatagramBatch(DatagramBatch&&) noexcept = default;
  DatagramBatch& operator=(DatagramBatch&&) noexcept = default;

  [[nodiscard]] std::size_t size() const noexcept { return last_ - first_; }
  [[nodiscard]] bool empty() const noexcept { return first_ == last_; }
  [[nodiscard]] const Datagram& operator[](std::size_t index) const noexcept {
    return items_[first_ + index];
  }
  // The bytes may be written to; add() and clear() change how many they are.
  [[nodiscard]] const Datagram* begin() const noexcept { return items_.data() + first_; }
  [[nodiscard]] const Datagram* end() const noexcept { return items_.data() + last_; }

  void clear() noexcept { first_ = last_ = 0; }
  // Takes a copy. Returns: false if there is no room for one more. UsageError: larger than
  // bytes_max.
  [[nodiscard]] bool add(std::span<const std::byte> bytes, const Address& to);
  // Forgets the oldest ones. Requires: there are as many.
  void drop_front(std::size_t count) noexcept;

 private:
  friend class detail::BatchReceiveAwaiter;
  friend class detail::BatchSendAwaiter;

  // For the kernel: room for as many as there may be; those that are there.
  [[nodiscard]] std::span<mmsghdr> to_receive() noexcept;
  [[nodiscard]] std::span<mmsghdr> to_send() noexcept;
  void note_received(std::size_t count) noexcept;
  [[nodiscard]] std::span<std::byte> room(std::size_t index) const noexcept {
    return {memory_.get() + index * bytes_max_, bytes_max_};
  }

  std::size_t bytes_max_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<Datagram> items_;
  std::vector<mmsghdr> messages_;
  std::vector<detail::DatagramSlot> slots_;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

namespace detail {

class BatchReceiveAwaiter final : public weft::detail::IoAwaiterBase {
 public:
  BatchReceiveAwaiter(Descriptor* on, DatagramBatch& batch) noexcept
      : IoAwaiterBase(weft::detail::IoCode::recvmmsg, on), batch_(batch) {
    std::span<mmsghdr> messages = batch.to_receive();
    address = messages.data();
    length = messages.size();
    flags = MSG_TRUNC;
  }
  Result<std::size_t> await_resume() noexcept {
    if (result < 0) return std::unexpected(error());
    batch_.note_received(static_cast<std::size_t>(result));
    return batch_.size();
  }

 private:
  DatagramBatch& batch_;
};

class BatchSendAwaiter final : public weft::detail::IoAwaiterBase {
 public:
  BatchSendAwaiter(Descriptor* on, DatagramBatch& batch) noexcept
      : IoAwaiterBase(weft::detail::IoCode::sendmmsg, on), batch_(batch) {
    std::span<mmsghdr> messages = batch.to_send();
    address = messages.data();
    length = messages.size();
  }
  Result<std::size_t> await_resume() noexcept {
    if (result < 0) return std::unexpected(error());
    batch_.drop_front(static_cast<std::size_t>(result));
    return static_cast<std::size_t>(result);
  }

 private:
  DatagramBatch& batch_;
};

}  // namespace detail

class [[nodiscard]] UdpSocket : public Socket {
 public:
  UdpSocket() noexcept = default;

  // Does not wait. Port 0: one that is free, local_address() tells which.
  [[nodiscard]] static Result<UdpSocket> bind(Address where, UdpOptions options = {});
  // With a port of its own, and with a peer, as connect_to(). Does not wait, and asks nobody.
  [[nodiscard]] static Result<UdpSocket> connect(Address peer, UdpOptions options = {});

  // From now on the socket has a peer: send() sends to it, what others send is not received, and
  // that nobody is there is reported (connection_refused). Does not wait.
  [[nodiscard]] Result<void> connect_to(const Address& peer) noexcept;

  // The next datagram, into `buffer`.
  [[nodiscard]] auto receive_from(std::span<std::byte> buffer) {
    return make_awaitable<detail::ReceiveAwaiter>(&here(), buffer);
  }
  // One datagram, whole. message_size: it is too large for one.
  [[nodiscard]] auto send_to(std::span<const std::byte> bytes, const Address& to) {
    return make_awaitable<detail::SendAwaiter>(&here(), bytes, std::optional<Address>(to),
                                               std::size_t{0});
  }
  // The same, to the socket's peer. destination_address_required: it has none.
  [[nodiscard]] auto send(std::span<const std::byte> bytes) {
    return make_awaitable<detail::SendAwaiter>(&here(), bytes, std::optional<Address>(),
                                               std::size_t{0});
  }

  // Waits for one datagram, and takes what others there are as well; what was in `batch` before is
  // forgotten. Returns: how many it has now. Requires: the batch lives until the wait has ended.
  [[nodiscard]] auto receive_some(DatagramBatch& batch) {
    return make_awaitable<detail::BatchReceiveAwaiter>(&here(), std::ref(batch));
  }
  // Sends the first ones of the batch, each to its peer, and takes them out. Returns: how many, at
  // least 1. An error is the first one's, which then is still there: drop_front(1) to go on without
  // it. Requires: it is not empty.
  [[nodiscard]] auto send_some(DatagramBatch& batch) {
    return make_awaitable<detail::BatchSendAwaiter>(&here(), std::ref(batch));
  }
  // All of them.
  [[nodiscard]] Task<Result<void>> send_all(DatagramBatch& batch);

  // Sends `rest`, and advances it meanwhile, as datagrams of segment_bytes each, the last one maybe
  // smaller; many of them by one system call, where the kernel can cut them. UsageError:
  // segment_bytes is 0.
  [[nodiscard]] Task<Result<void>> send_segments(std::span<const std::byte>& rest,
                                                 std::size_t segment_bytes, Address to);

  [[nodiscard]] Result<Address> local_address() const noexcept;

 private:
  explicit UdpSocket(Descriptor descriptor, bool kernel_segments) noexcept
      : Socket(std::move(descriptor)), kernel_segments_(kernel_segments) {}
  static Result<UdpSocket> make(int family, const UdpOptions& options);

  bool kernel_segments_ = false;
};

}  // namespace weft::inline v0::net
