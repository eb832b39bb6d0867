// SPDX-License-Identifier: MIT
#include "weft/net/unix.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "system.h"

namespace weft::inline v0::net {

namespace {

bool is_abstract(const std::string& path) { return path.starts_with('@'); }

class UnixAddress {
 public:
  static Result<UnixAddress> of(const std::string& path) {
    UnixAddress result;
    if (path.empty()) return std::unexpected(make_error_code(std::errc::invalid_argument));
    if (path.size() >= sizeof result.address_.sun_path) {
      return std::unexpected(make_error_code(std::errc::filename_too_long));
    }
    std::memcpy(result.address_.sun_path, path.data(), path.size());
    if (is_abstract(path)) result.address_.sun_path[0] = '\0';
    // An abstract name is as long as the kernel is told, a path ends by itself.
    result.size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() +
                                          (is_abstract(path) ? 0 : 1));
    return result;
  }
  [[nodiscard]] const sockaddr& native() const {
    return reinterpret_cast<const sockaddr&>(address_);
  }
  [[nodiscard]] socklen_t size() const { return size_; }

 private:
  sockaddr_un address_{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t size_ = 0;
};

Result<UniqueFd> make_socket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return detail::last_error();
  return fd;
}

// Whether the socket at that address has nobody behind it. A listener whose backlog is full has somebody.
bool is_deserted(const UnixAddress& address) {
  UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return probe && ::connect(probe.get(), &address.native(), address.size()) < 0 &&
         errno == ECONNREFUSED;
}

Result<void> bind(int socket, const UnixAddress& address, const std::string& path) {
  Result<void> done = detail::success_of(::bind(socket, &address.native(), address.size()));
  if (done || done.error() != std::errc::address_in_use || is_abstract(path)) return done;
  struct stat there;
  if (::lstat(path.c_str(), &there) < 0 || !S_ISSOCK(there.st_mode) || !is_deserted(address)) {
    return done;
  }
  ::unlink(path.c_str());
  return detail::success_of(::bind(socket, &address.native(), address.size()));
}

}  // namespace

Task<Result<UnixStream>> UnixStream::connect(std::string path) {
  Result<UnixAddress> address = UnixAddress::of(path);
  if (!address) co_return std::unexpected(address.error());
  Result<UniqueFd> fd = make_socket();
  if (!fd) co_return std::unexpected(fd.error());
  Descriptor socket(std::move(*fd));
  co_await ok(socket.connect(address->native(), address->size()));
  co_return UnixStream(std::move(socket));
}

Result<std::pair<UnixStream, UnixStream>> UnixStream::pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) return detail::last_error();
  return std::pair(UnixStream(Descriptor(UniqueFd(fds[0]))),
                   UnixStream(Descriptor(UniqueFd(fds[1]))));
}

Result<UnixStream::Credentials> UnixStream::peer_credentials() const noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
    return detail::last_error();
  return Credentials{.process = peer.pid, .user = peer.uid, .group = peer.gid};
}

Result<UnixListener> UnixListener::listen(std::string path, int backlog) {
  Result<UnixAddress> address = UnixAddress::of(path);
  if (!address) return std::unexpected(address.error());
  Result<UniqueFd> fd = make_socket();
  if (!fd) return std::unexpected(fd.error());
  Result<void> done = bind(fd->get(), *address, path);
  if (!done) return std::unexpected(done.error());
  struct stat made{};
  if (!is_abstract(path) && ::lstat(path.c_str(), &made) < 0) return detail::last_error();
  UnixListener listener(Descriptor(), std::move(path), made.st_dev, made.st_ino);
  if (::listen(fd->get(), backlog) < 0) return detail::last_error();
  listener.descriptor_ = Descriptor(std::move(*fd));
  return listener;
}

UnixListener& UnixListener::operator=(UnixListener&& other) noexcept {
  if (this == &other) return *this;
  close();
  descriptor_ = std::move(other.descriptor_);
  path_ = std::move(other.path_);
  device_ = std::exchange(other.device_, 0);
  file_ = std::exchange(other.file_, 0);
  return *this;
}

Task<Result<UnixStream>> UnixListener::accept() {
  Descriptor accepted = co_await ok(descriptor_.accept());
  co_return UnixStream(std::move(accepted));
}

void UnixListener::close() noexcept {
  ino_t made = std::exchange(file_, 0);
  struct stat there;
  if (made != 0 && ::lstat(path_.c_str(), &there) == 0 && there.st_dev == device_ &&
      there.st_ino == made) {
    ::unlink(path_.c_str());
  }
  descriptor_.close();
}

}  // namespace weft::inline v0::net
