// SPDX-License-Identifier: MIT
#include "system_call.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace weft::inline v0::detail {

namespace {

int ready(int fd, short events) noexcept {
  pollfd asked{fd, events, 0};
  int count = ::poll(&asked, 1, 0);
  if (count > 0 && (asked.revents & POLLNVAL)) {
    errno = EBADF;
    return -1;
  }
  if (count != 0) return count;
  errno = EAGAIN;
  return -1;
}

// A connection that is being made says how it went when the socket is writable.
int finish_connect(IoOperation& operation) noexcept {
  int fd = operation.entry->fd;
  if (!operation.scratch) {
    operation.scratch = &operation;  // begun
    int result = ::connect(fd, static_cast<sockaddr*>(operation.address),
                           static_cast<socklen_t>(operation.length));
    if (result >= 0) return result;
    if (errno == EAGAIN) {
      // A Unix listener whose queue is full. No event says when there is room, and the socket is
      // "writable" all the while; so it is refused, as on the BSDs.
      errno = ECONNREFUSED;
    } else if (errno == EINPROGRESS || errno == EINTR) {
      errno = EAGAIN;  // it goes on, interrupted or not
    }
    return result;
  }
  if (int waits = ready(fd, POLLOUT); waits < 0) return waits;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) return -1;
  errno = error;
  return error == 0 ? 0 : -1;
}

long call(IoOperation& operation) noexcept {
  const int fd = operation.entry ? operation.entry->fd : -1;
  const bool is_socket = operation.entry && operation.entry->is_socket;
  switch (operation.code) {
    case IoCode::readable:
      return ready(fd, POLLIN);
    case IoCode::writable:
      return ready(fd, POLLOUT);
    case IoCode::read:
    case IoCode::read_pooled:
      if (is_socket) return ::recv(fd, operation.address, operation.length, 0);
      return ::read(fd, operation.address, operation.length);
    case IoCode::write:
      if (is_socket) return ::send(fd, operation.address, operation.length, MSG_NOSIGNAL);
      return ::write(fd, operation.address, operation.length);
    case IoCode::readv:
      return ::readv(fd, static_cast<iovec*>(operation.address),
                     static_cast<int>(operation.length));
    case IoCode::writev: {
      if (!is_socket) {
        return ::writev(fd, static_cast<iovec*>(operation.address),
                        static_cast<int>(operation.length));
      }
      msghdr message{};
      message.msg_iov = static_cast<iovec*>(operation.address);
      message.msg_iovlen = operation.length;
      return ::sendmsg(fd, &message, MSG_NOSIGNAL);
    }
    case IoCode::accept:
      return ::accept4(fd, static_cast<sockaddr*>(operation.address),
                       static_cast<socklen_t*>(operation.second), SOCK_CLOEXEC | SOCK_NONBLOCK);
    case IoCode::connect:
      return finish_connect(operation);
    case IoCode::recvmsg:
      return ::recvmsg(fd, static_cast<msghdr*>(operation.address),
                       operation.flags | MSG_CMSG_CLOEXEC);
    case IoCode::recvmmsg:
      return ::recvmmsg(fd, static_cast<mmsghdr*>(operation.address),
                        static_cast<unsigned>(operation.length),
                        operation.flags | MSG_CMSG_CLOEXEC | MSG_DONTWAIT, nullptr);
    case IoCode::sendmsg:
      return ::sendmsg(fd, static_cast<msghdr*>(operation.address), operation.flags | MSG_NOSIGNAL);
    case IoCode::sendmmsg:
      return ::sendmmsg(fd, static_cast<mmsghdr*>(operation.address),
                        static_cast<unsigned>(operation.length),
                        operation.flags | MSG_NOSIGNAL | MSG_DONTWAIT);
    case IoCode::open:
      return ::open(static_cast<const char*>(operation.address), operation.flags | O_CLOEXEC,
                    static_cast<mode_t>(operation.length));
    case IoCode::pread:
      return ::pread(fd, operation.address, operation.length, operation.offset);
    case IoCode::pwrite:
      return ::pwrite(fd, operation.address, operation.length, operation.offset);
    case IoCode::fsync:
      return operation.flags ? ::fdatasync(fd) : ::fsync(fd);
    case IoCode::statx:
      return ::statx(fd, static_cast<const char*>(operation.address), operation.flags,
                     static_cast<unsigned>(operation.length),
                     static_cast<struct statx*>(operation.second));
  }
  errno = ENOSYS;
  return -1;
}

std::size_t bytes_of(const IoOperation& operation) noexcept {
  if (operation.code != IoCode::readv && operation.code != IoCode::writev) return operation.length;
  std::size_t sum = 0;
  auto* parts = static_cast<const iovec*>(operation.address);
  for (std::size_t i = 0; i < operation.length; ++i) sum += parts[i].iov_len;
  return sum;
}

}  // namespace

int perform(IoOperation& operation) noexcept {
  for (;;) {
    long result = call(operation);
    if (result >= 0) return static_cast<int>(result);
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK ? -EAGAIN : -errno;
  }
}

bool is_short(const IoOperation& operation) noexcept {
  switch (operation.code) {
    case IoCode::read:
    case IoCode::read_pooled:
    case IoCode::write:
    case IoCode::readv:
    case IoCode::writev:
      return operation.result > 0 &&
             static_cast<std::size_t>(operation.result) < bytes_of(operation);
    default:
      return false;
  }
}

void tell_peer(IoOperation& operation) noexcept {
  auto* length = static_cast<socklen_t*>(operation.second);
  if (!operation.address || !length) return;
  if (::getpeername(operation.result, static_cast<sockaddr*>(operation.address), length) < 0) {
    *length = 0;
  }
}

const char* name_of(IoCode code) noexcept {
  switch (code) {
    case IoCode::readable:
      return "readable";
    case IoCode::read:
      return "read";
    case IoCode::read_pooled:
      return "read_pooled";
    case IoCode::readv:
      return "readv";
    case IoCode::accept:
      return "accept";
    case IoCode::recvmsg:
      return "recvmsg";
    case IoCode::recvmmsg:
      return "recvmmsg";
    case IoCode::writable:
      return "writable";
    case IoCode::write:
      return "write";
    case IoCode::writev:
      return "writev";
    case IoCode::connect:
      return "connect";
    case IoCode::sendmsg:
      return "sendmsg";
    case IoCode::sendmmsg:
      return "sendmmsg";
    case IoCode::open:
      return "open";
    case IoCode::pread:
      return "pread";
    case IoCode::pwrite:
      return "pwrite";
    case IoCode::fsync:
      return "fsync";
    case IoCode::statx:
      return "statx";
  }
  return "";
}

}  // namespace weft::inline v0::detail
