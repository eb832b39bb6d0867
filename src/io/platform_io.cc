// SPDX-License-Identifier: MIT
#include "weft/io/platform_io.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>

#include "read_ahead.h"
#include "system_call.h"
#include "weft/base/assert.h"
#include "weft/base/eventfd.h"
#include "weft/core/executor.h"

namespace weft::inline v0 {

using detail::IoCode;
using detail::IoEntry;
using detail::IoOperation;
using detail::PooledBuffer;

namespace {

// Settles a descriptor that dies elsewhere against the runs of its loop, and its end. Never
// destroyed: a descriptor may be, after main().
std::mutex& owners_mutex() {
  alignas(std::mutex) static std::byte storage[sizeof(std::mutex)];
  static auto* mutex = new (storage) std::mutex;
  return *mutex;
}

// Whether an operation that met a close() may say so instead of what it says (L5). An end of stream
// is no loss: it may have come by the close itself.
bool took_nothing(IoCode code, std::int32_t result) noexcept {
  if (blocks(code)) return result == -ECANCELED;
  return result < 0 || (result == 0 && code != IoCode::accept);
}

int option_of(int fd, int name) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : 0;
}

void set_nonblocking(int fd, bool wanted) {
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) throw std::system_error(errno, std::generic_category(), "fcntl(F_GETFL)");
  int changed = wanted ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  if (changed != flags && ::fcntl(fd, F_SETFL, changed) < 0) {
    throw std::system_error(errno, std::generic_category(), "fcntl(F_SETFL)");
  }
}

}  // namespace

PlatformIO::~PlatformIO() {
  WEFT_ASSERT(pending_ == 0, "L12: a loop's driver ends after every operation that was begun");
  WEFT_ASSERT(!first_, "every driver orphans its entries");
  if (pool_) pool_->leave();
}

PlatformIO* PlatformIO::current_or_null() noexcept {
  Executor* loop = Executor::current_or_null();
  return loop ? loop->services().io : nullptr;
}

// --- Descriptors --------------------------------------------------------------------------------

IoEntry& PlatformIO::attach(int fd) {
  struct stat status;
  if (::fstat(fd, &status) < 0) {
    throw std::system_error(errno, std::generic_category(), "this is no open descriptor");
  }
  IoEntry* entry = make_entry(fd);
  entry->is_socket = S_ISSOCK(status.st_mode);
  entry->is_file = S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode);
  entry->is_stream = entry->is_plain = S_ISFIFO(status.st_mode);
  if (entry->is_socket) {
    int domain = option_of(fd, SO_DOMAIN);
    entry->is_stream = option_of(fd, SO_TYPE) == SOCK_STREAM;
    // A Unix stream stops at every message that carries descriptors.
    entry->is_plain = entry->is_stream && (domain == AF_INET || domain == AF_INET6);
  }
  try {
    if (!entry->is_file) set_nonblocking(fd, wants_nonblocking());
  } catch (...) {
    delete entry;
    throw;
  }
  link(*entry);
  return *entry;
}

IoEntry* PlatformIO::borrow(int fd) {
  if (fd < 0) return nullptr;
  auto index = static_cast<std::size_t>(fd);
  if (index >= borrowed_.size()) {
    if (::fcntl(fd, F_GETFD) < 0)
      return nullptr;  // any number may be asked for: no table of that size
    borrowed_.resize(index + 1);
  }
  if (!borrowed_[index]) {
    IoEntry* entry = make_entry(fd);
    entry->borrowed = true;
    link(*entry);
    borrowed_[index] = entry;
  }
  return borrowed_[index];
}

void PlatformIO::link(IoEntry& entry) noexcept {
  entry.io.store(this, detail::relaxed);
  entry.next = first_;
  if (first_) first_->prev = &entry;
  first_ = &entry;
  entries_.store(entries() + 1, detail::relaxed);
}

void PlatformIO::unlink(IoEntry& entry) noexcept {
  if (entry.prev) {
    entry.prev->next = entry.next;
  } else {
    first_ = entry.next;
  }
  if (entry.next) entry.next->prev = entry.prev;
  entry.prev = entry.next = nullptr;
  entries_.store(entries() - 1, detail::relaxed);
}

void PlatformIO::detach(IoEntry& entry) noexcept {
  WEFT_ASSERT(entry.in_flight == 0, "a descriptor leaves its loop while nobody waits on it");
  if (entry.borrowed) borrowed_[static_cast<std::size_t>(entry.fd)] = nullptr;
  unlink(entry);
  UniqueFd closes_last = std::move(entry.owned);
  entry.accepted.clear();
  drop_entry(entry);
}

bool PlatformIO::let_go(IoEntry& entry) noexcept {
  quiesce(entry);
  if (!entry.has_ahead()) {
    detach(entry);
    return false;
  }
  unlink(entry);
  entry.io.store(nullptr, detail::relaxed);
  return true;
}

IoEntry& PlatformIO::adopt(IoEntry& entry) {
  IoEntry& fresh = attach(entry.fd);
  fresh.accepted = std::move(entry.accepted);
  while (!entry.kept.empty()) fresh.kept.push(entry.kept.pop());
  fresh.kept_error = entry.kept_error;
  delete &entry;
  return fresh;
}

void PlatformIO::close(IoEntry& entry, UniqueFd fd) noexcept {
  entry.owned = std::move(fd);
  entry.closing = true;
  ++entry.in_flight;  // finish() must not free it under our hands
  // The end of one may end the other: both may be branches of one wait.
  for (IoOperation** slot : {&entry.reader, &entry.writer}) {
    IoOperation* operation = *slot;
    if (operation && (operation->paused || withdraw(*operation))) finish(*operation, -EBADF);
  }
  if (--entry.in_flight == 0) detach(entry);
}

void PlatformIO::close_elsewhere(IoEntry& entry, UniqueFd fd) noexcept {
  std::lock_guard lock(owners_mutex());
  PlatformIO* io = entry.io.load(detail::relaxed);
  if (!io) {
    delete &entry;
    return;
  }
  // Nobody drives the loop, and under this lock nobody begins to. What the kernel may still know it
  // takes back only on the driver's own thread.
  if (!io->driven_ && (!io->is_with_kernel(entry) || io->is_usable_here())) {
    io->detach(entry);  // and then `fd` is closed
    return;
  }
  entry.owned = std::move(fd);
  entry.next_closed = io->closed_elsewhere_.load(detail::relaxed);
  // release: the entry, to the loop that takes it. [pairs with T]
  io->closed_elsewhere_.store(&entry, detail::release);
  io->wake();
}

bool PlatformIO::take_closed_elsewhere() noexcept {
  if (!closed_elsewhere_.load(detail::relaxed)) [[likely]]
    return false;
  IoEntry* entry;
  {
    std::lock_guard lock(owners_mutex());
    entry = closed_elsewhere_.exchange(nullptr, detail::acquire);  // T
  }
  while (entry) {
    IoEntry* next = entry->next_closed;
    close(*entry, std::move(entry->owned));
    entry = next;
  }
  return true;
}

void PlatformIO::begin_driving() noexcept {
  std::lock_guard lock(owners_mutex());
  driven_ = true;
}

void PlatformIO::end_driving() noexcept {
  for (;;) {
    take_closed_elsewhere();
    std::lock_guard lock(owners_mutex());
    if (has_closed_elsewhere()) continue;
    driven_ = false;
    return;
  }
}

void PlatformIO::orphan_entries() noexcept {
  std::lock_guard lock(owners_mutex());
  for (IoEntry* dead = closed_elsewhere_.exchange(nullptr, detail::acquire); dead;) {
    IoEntry* next = dead->next_closed;
    detach(*dead);
    dead = next;
  }
  while (first_) {
    IoEntry& entry = *first_;
    unlink(entry);
    entry.io.store(nullptr, detail::relaxed);
  }
}

void PlatformIO::wake() const noexcept { detail::ring_eventfd(wake_fd_); }

// --- Operations ---------------------------------------------------------------------------------

// Returns: false if it is over already.
bool PlatformIO::take_slot(IoOperation& operation) {
  IoEntry* entry = operation.entry;
  if (entry && !blocks(operation.code)) {
    IoOperation*& slot = entry->slot_of(operation.code);
    if (slot) [[unlikely]] {
      detail::throw_usage_error(
          reads(operation.code)
              ? "one reader at a time: another task reads from, or accepts on, this descriptor"
              : "one writer at a time: another task writes to, or connects, this descriptor");
    }
    if (take_accepted(operation)) return false;
    if (take_kept(operation)) return false;
    if (operation.code == IoCode::read_pooled && !pool_) pool_ = make_pool();
    slot = &operation;
  }
  if (entry) ++entry->in_flight;
  ++pending_;
  return true;
}

bool PlatformIO::start(IoOperation& operation) {
  if (chaos_.on()) [[unlikely]]
    split(operation);
  if (!take_slot(operation)) return true;
  bool over;
  try {
    over = begin(operation);
  } catch (...) {
    forget(operation);
    throw;
  }
  if (over) {
    note_pressure(operation);
    forget(operation);
  }
  return over;
}

bool PlatformIO::take_buffer(IoOperation& operation) noexcept {
  PooledBuffer* buffer = pool_->take();
  if (!buffer) return false;
  operation.second = buffer;
  operation.address = buffer->start;
  operation.length = chaos_.one_in(2) ? chaos_.portion(64) : detail::BufferPool::kBytes;
  return true;
}

void PlatformIO::fill_buffer(IoOperation& operation, std::int32_t result) noexcept {
  auto* buffer = static_cast<PooledBuffer*>(operation.second);
  operation.address = nullptr;
  if (!buffer) return;
  if (result > 0) {
    buffer->offset = 0;
    buffer->length = static_cast<std::uint32_t>(result);
  } else {
    operation.second = nullptr;
    detail::BufferPool::give_back(*buffer);
  }
}

// A stream may take, or give, less than was asked for at any time.
void PlatformIO::split(IoOperation& operation) noexcept {
  bool data = operation.code == IoCode::read || operation.code == IoCode::write;
  if (!data || !operation.entry->is_stream || !chaos_.one_in(2)) return;
  constexpr std::size_t kPieceMax = 64;
  operation.length = chaos_.portion(operation.length < kPieceMax ? operation.length : kPieceMax);
}

// Returns: false if there is none.
bool PlatformIO::take_accepted(IoOperation& operation) noexcept {
  std::vector<UniqueFd>& queue = operation.entry->accepted;
  if (queue.empty()) [[likely]]
    return false;
  if (operation.code == IoCode::readable) {
    operation.result = 0;
    return true;
  }
  if (operation.code != IoCode::accept) return false;
  operation.result = queue.front().release();
  queue.erase(queue.begin());
  detail::tell_peer(operation);
  return true;
}

// A listener that has run into a limit is not to be asked again at once: the connection that it could
// not take is still there, and so it would answer at once, too.
void PlatformIO::note_pressure(IoOperation& operation) noexcept {
  if (operation.code != IoCode::accept) return;
  int error = -operation.result;
  if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
    operation.entry->accept_paused = true;
  }
}

void PlatformIO::start_paused(IoOperation& operation) { operation.paused = take_slot(operation); }

bool PlatformIO::resume_paused(IoOperation& operation) noexcept {
  if (!std::exchange(operation.paused, false)) return false;
  try {
    if (!begin(operation)) return false;
  } catch (const UsageError&) {
    operation.result = -EBUSY;  // nobody is left to throw it at: the wait has begun
  }
  note_pressure(operation);
  forget(operation);
  return true;
}

bool PlatformIO::cancel(IoOperation& operation) noexcept {
  operation.cancel_asked = true;
  if (!operation.paused && !withdraw(operation)) return false;
  forget(operation);
  return true;
}

void PlatformIO::finish(IoOperation& operation, std::int32_t result) noexcept {
  IoEntry* entry = operation.entry;
  if (entry && entry->closing && took_nothing(operation.code, result)) result = -EBADF;
  operation.result = result;
  note_pressure(operation);
  detail::Continuation waiter = operation.waiter;
  forget(operation);
  waiter.wake();  // from here on the operation may be gone
}

void PlatformIO::forget(IoOperation& operation) noexcept {
  --pending_;
  operation.paused = false;
  IoEntry* entry = operation.entry;
  if (!entry) return;
  if (!blocks(operation.code)) entry->slot_of(operation.code) = nullptr;
  if (--entry->in_flight > 0) return;
  if (entry->closing || entry->borrowed) detach(*entry);
}

}  // namespace weft::inline v0
