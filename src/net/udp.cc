// SPDX-License-Identifier: MIT
#include "weft/net/udp.h"

#include <algorithm>
#include <cstring>

#include "system.h"
#include "weft/base/assert.h"
#include "weft/core/errors.h"
#include "weft/core/ok.h"

namespace weft::inline v0::net {

namespace {

constexpr std::size_t kSegmentsMax =
    64;  // of one system call: UDP_MAX_SEGMENTS of Linux before 6.9

// Whether it is the cutting that the kernel could not do: for want of a checksum in hardware (EIO),
// or because a segment has to be sent in fragments (EMSGSIZE; EINVAL on older kernels).
bool is_about_segments(std::error_code error) {
  return error == std::errc::io_error || error == std::errc::message_size ||
         error == std::errc::invalid_argument;
}

// Asking for it is the way to learn whether the kernel knows it: an older one would send it all as
// one datagram.
bool knows_segments(int socket) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, IPPROTO_UDP, UDP_SEGMENT, &value, &size) == 0;
}

}  // namespace

namespace detail {

void prepare_receive(msghdr& message, DatagramSlot& slot, std::span<std::byte> buffer) noexcept {
  slot.part = {buffer.data(), buffer.size()};
  message = {};
  message.msg_name = &slot.peer;
  message.msg_namelen = sizeof slot.peer;
  message.msg_iov = &slot.part;
  message.msg_iovlen = 1;
  message.msg_control = slot.control.data();
  message.msg_controllen = slot.control.size();
}

void prepare_send(msghdr& message, DatagramSlot& slot, std::span<const std::byte> bytes,
                  const Address* to, std::size_t segment_bytes) noexcept {
  slot.part = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  message = {};
  if (to) {
    std::memcpy(&slot.peer, &to->native(), to->native_size());
    message.msg_name = &slot.peer;
    message.msg_namelen = to->native_size();
  }
  message.msg_iov = &slot.part;
  message.msg_iovlen = 1;
  if (segment_bytes == 0) return;
  auto size = static_cast<std::uint16_t>(segment_bytes);
  message.msg_control = slot.control.data();
  message.msg_controllen = CMSG_SPACE(sizeof size);
  cmsghdr* control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = IPPROTO_UDP;
  control->cmsg_type = UDP_SEGMENT;
  control->cmsg_len = CMSG_LEN(sizeof size);
  std::memcpy(CMSG_DATA(control), &size, sizeof size);
}

Datagram received(const msghdr& message, const DatagramSlot& slot, std::size_t length) noexcept {
  Datagram datagram;
  auto* start = static_cast<std::byte*>(slot.part.iov_base);
  datagram.bytes = {start, std::min(length, slot.part.iov_len)};
  datagram.sent_bytes = length;
  const auto& peer = reinterpret_cast<const sockaddr&>(slot.peer);
  if (Result<Address> known = Address::from(peer, message.msg_namelen)) datagram.peer = *known;
  if (message.msg_controllen < CMSG_LEN(sizeof(int))) return datagram;
  const cmsghdr* control = CMSG_FIRSTHDR(&message);
  if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO) {
    int size = 0;
    std::memcpy(&size, CMSG_DATA(control), sizeof size);
    // One that is by itself is not worth a word.
    if (static_cast<std::size_t>(size) < length)
      datagram.segment_bytes = static_cast<std::size_t>(size);
  }
  return datagram;
}

}  // namespace detail

// --- DatagramBatch
// --------------------------------------------------------------------------------

DatagramBatch::DatagramBatch(Limits limits) : bytes_max_(limits.bytes_max) {
  if (limits.count_max == 0 || limits.count_max > kCountMax || limits.bytes_max == 0) {
    weft::detail::throw_usage_error(
        "DatagramBatch: count_max is 1 to 1024, and bytes_max is not 0: nothing would fit in");
  }
  memory_ = std::make_unique_for_overwrite<std::byte[]>(limits.count_max * limits.bytes_max);
  items_.resize(limits.count_max);
  messages_.resize(limits.count_max);
  slots_.resize(limits.count_max);
}

bool DatagramBatch::add(std::span<const std::byte> bytes, const Address& to) {
  if (bytes.size() > bytes_max_) {
    weft::detail::throw_usage_error("DatagramBatch::add(): larger than the batch's bytes_max");
  }
  if (last_ == items_.size()) return false;
  std::span<std::byte> copy = room(last_).first(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.begin());
  Datagram& item = items_[last_++];
  item = {};
  item.bytes = copy;
  item.peer = to;
  item.sent_bytes = copy.size();
  return true;
}

void DatagramBatch::drop_front(std::size_t count) noexcept {
  WEFT_ASSERT(count <= size(), "DatagramBatch::drop_front() of more than there are");
  first_ += count;
  if (empty()) clear();
}

std::span<mmsghdr> DatagramBatch::to_receive() noexcept {
  clear();
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    messages_[i] = {};
    detail::prepare_receive(messages_[i].msg_hdr, slots_[i], room(i));
  }
  return messages_;
}

std::span<mmsghdr> DatagramBatch::to_send() noexcept {
  for (std::size_t i = first_; i < last_; ++i) {
    const Datagram& item = items_[i];
    messages_[i] = {};
    detail::prepare_send(messages_[i].msg_hdr, slots_[i], item.bytes, &item.peer,
                         item.segment_bytes);
  }
  return std::span(messages_).subspan(first_, size());
}

void DatagramBatch::note_received(std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    items_[i] = detail::received(messages_[i].msg_hdr, slots_[i], messages_[i].msg_len);
  }
  last_ = count;
}

// --- UdpSocket
// ------------------------------------------------------------------------------------

Result<UdpSocket> UdpSocket::make(int family, const UdpOptions& options) {
  UniqueFd fd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!fd) return detail::last_error();
  auto set = [&](int level, int name, int value) {
    return detail::success_of(::setsockopt(fd.get(), level, name, &value, sizeof value));
  };
  Result<void> done;
  if (options.reuse_port) done = set(SOL_SOCKET, SO_REUSEPORT, 1);
  if (done && family == AF_INET6) done = set(IPPROTO_IPV6, IPV6_V6ONLY, options.v6_only);
  if (done && options.broadcast) done = set(SOL_SOCKET, SO_BROADCAST, 1);
  if (done && options.receive_queue_bytes)
    done = set(SOL_SOCKET, SO_RCVBUF, *options.receive_queue_bytes);
  if (done && options.send_queue_bytes)
    done = set(SOL_SOCKET, SO_SNDBUF, *options.send_queue_bytes);
  if (!done) return std::unexpected(done.error());
  if (options.coalesce) (void)set(IPPROTO_UDP, UDP_GRO, 1);  // or each comes by itself
  bool segments = options.kernel_segments && knows_segments(fd.get());
  return UdpSocket(Descriptor(std::move(fd)), segments);
}

Result<UdpSocket> UdpSocket::bind(Address where, UdpOptions options) {
  Result<UdpSocket> socket = make(where.family(), options);
  if (!socket) return socket;
  if (::bind(socket->number(), &where.native(), where.native_size()) < 0)
    return detail::last_error();
  return socket;
}

Result<UdpSocket> UdpSocket::connect(Address peer, UdpOptions options) {
  Result<UdpSocket> socket = make(peer.family(), options);
  if (!socket) return socket;
  if (Result<void> done = socket->connect_to(peer); !done) return std::unexpected(done.error());
  return socket;
}

Result<void> UdpSocket::connect_to(const Address& peer) noexcept {
  return detail::success_of(::connect(number(), &peer.native(), peer.native_size()));
}

Task<Result<void>> UdpSocket::send_all(DatagramBatch& batch) {
  while (!batch.empty()) co_await ok(send_some(batch));
  co_return {};
}

Task<Result<void>> UdpSocket::send_segments(std::span<const std::byte>& rest,
                                            std::size_t segment_bytes, Address to) {
  if (segment_bytes == 0) {
    weft::detail::throw_usage_error("UdpSocket::send_segments(): segments of 0 bytes");
  }
  bool cuts = kernel_segments_;
  while (!rest.empty()) {
    std::size_t segments =
        cuts ? std::clamp(kDatagramBytesMax / segment_bytes, std::size_t{1}, kSegmentsMax) : 1;
    std::span<const std::byte> piece = rest.first(std::min(rest.size(), segments * segment_bytes));
    bool one = piece.size() <= segment_bytes;
    auto send = make_awaitable<detail::SendAwaiter>(&here(), piece, std::optional<Address>(to),
                                                    one ? std::size_t{0} : segment_bytes);
    Result<void> sent = co_await std::move(send);
    if (!sent && !one && is_about_segments(sent.error())) {
      cuts = false;
      continue;
    }
    if (!sent) co_return sent;
    rest = rest.subspan(piece.size());
  }
  co_return {};
}

Result<Address> UdpSocket::local_address() const noexcept {
  return detail::ask_address(::getsockname, number());
}

}  // namespace weft::inline v0::net
