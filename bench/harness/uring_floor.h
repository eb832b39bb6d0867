// SPDX-License-Identifier: MIT
#pragma once
// weft::bench: the floor of a server on io_uring: one thread, one submit-and-wait per turn.
//
// Multishot accept; multishot receive into a ring of provided buffers. A buffer goes back to the ring
// when the reply to what came in it has been sent: it may be sent from there.
//
// `reply` is called with what has come, and returns what is to be sent: a std::string_view of it, or
// of what lives as long as the server.

#include <liburing.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "harness/loopback.h"

namespace weft::bench {

template <class Reply>
class UringFloor {
 public:
  explicit UringFloor(Reply reply) : reply_(reply) {
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    if (io_uring_queue_init_params(kEntries, &ring_, &params) < 0)
      throw std::runtime_error("io_uring_setup: the kernel is older than 6.1, or forbids it");
    if (io_uring_register_ring_fd(&ring_) < 0) throw std::runtime_error("register_ring_fd");
    provide_buffers();
  }

  [[noreturn]] void serve_forever() {
    accept();
    announce(port_of(listener_));
    for (;;) {
      io_uring_submit_and_wait(&ring_, 1);
      unsigned head = 0;
      unsigned seen = 0;
      io_uring_cqe* completion = nullptr;
      io_uring_for_each_cqe(&ring_, head, completion) {
        complete(*completion);
        ++seen;
      }
      io_uring_cq_advance(&ring_, seen);
      if (returned_ > 0) io_uring_buf_ring_advance(buffers_, returned_);
      returned_ = 0;
    }
  }

 private:
  static constexpr unsigned kEntries = 256;
  static constexpr unsigned kBuffers = 256;  // a power of two, and more than there are connections
  static constexpr int kGroup = 0;

  enum class Kind : std::uint8_t { accept, receive, send };

  // What a completion is for, in its 64 bits.
  struct Tag {
    Kind kind;
    std::uint16_t buffer;
    int fd;
  };
  static std::uint64_t pack(Tag tag) {
    return static_cast<std::uint64_t>(tag.kind) << 48 |
           static_cast<std::uint64_t>(tag.buffer) << 32 | static_cast<std::uint32_t>(tag.fd);
  }
  static Tag unpack(std::uint64_t word) {
    return {.kind = static_cast<Kind>(word >> 48),
            .buffer = static_cast<std::uint16_t>(word >> 32),
            .fd = static_cast<int>(word & 0xffff'ffff)};
  }

  void provide_buffers() {
    const std::size_t bytes = kBuffers * sizeof(io_uring_buf);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    buffers_ = static_cast<io_uring_buf_ring*>(memory);
    io_uring_buf_reg registration{};
    registration.ring_addr = reinterpret_cast<std::uint64_t>(memory);
    registration.ring_entries = kBuffers;
    registration.bgid = kGroup;
    if (io_uring_register_buf_ring(&ring_, &registration, 0) != 0)
      throw std::runtime_error("io_uring_register_buf_ring");
    for (unsigned i = 0; i < kBuffers; ++i) give_back(static_cast<std::uint16_t>(i));
    io_uring_buf_ring_advance(buffers_, returned_);
    returned_ = 0;
  }

  [[nodiscard]] char* buffer(std::uint16_t index) {
    return memory_.data() + index * kReadBufferBytes;
  }

  void give_back(std::uint16_t index) {
    io_uring_buf_ring_add(buffers_, buffer(index), kReadBufferBytes, index,
                          io_uring_buf_ring_mask(kBuffers), returned_);
    ++returned_;
  }

  io_uring_sqe* entry() {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    if (sqe != nullptr) return sqe;
    io_uring_submit(&ring_);
    return io_uring_get_sqe(&ring_);
  }

  void receive(int fd) {
    io_uring_sqe* sqe = entry();
    io_uring_prep_recv_multishot(sqe, fd, nullptr, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = kGroup;
    io_uring_sqe_set_data64(sqe, pack({.kind = Kind::receive, .buffer = 0, .fd = fd}));
  }

  void accept() {
    io_uring_sqe* sqe = entry();
    io_uring_prep_multishot_accept(sqe, listener_, nullptr, nullptr, SOCK_CLOEXEC);
    io_uring_sqe_set_data64(sqe, pack({.kind = Kind::accept, .buffer = 0, .fd = listener_}));
  }

  void complete(const io_uring_cqe& completion) {
    const Tag tag = unpack(completion.user_data);
    switch (tag.kind) {
      case Kind::accept:
        return accepted(completion);
      case Kind::receive:
        return received(tag.fd, completion);
      case Kind::send:
        return give_back(tag.buffer);
    }
  }

  void accepted(const io_uring_cqe& completion) {
    if ((completion.flags & IORING_CQE_F_MORE) == 0) accept();
    if (completion.res < 0) return;
    set_no_delay(completion.res);
    receive(completion.res);
  }

  void received(int fd, const io_uring_cqe& completion) {
    if (completion.res == -ENOBUFS) return receive(fd);
    if (completion.res <= 0) {
      close(fd);
      return;
    }
    const auto index = static_cast<std::uint16_t>(completion.flags >> IORING_CQE_BUFFER_SHIFT);
    io_uring_sqe* sqe = entry();
    const std::string_view reply =
        reply_(std::string_view(buffer(index), static_cast<std::size_t>(completion.res)));
    io_uring_prep_send(sqe, fd, reply.data(), reply.size(), MSG_WAITALL);
    io_uring_sqe_set_data64(sqe, pack({.kind = Kind::send, .buffer = index, .fd = fd}));
    if ((completion.flags & IORING_CQE_F_MORE) == 0) receive(fd);
  }

  Reply reply_;
  int listener_ = listen_on_loopback();
  io_uring ring_ = {};
  io_uring_buf_ring* buffers_ = nullptr;
  std::vector<char> memory_ = std::vector<char>(kBuffers * kReadBufferBytes);
  int returned_ = 0;  // buffers given back in this turn
};

}  // namespace weft::bench
