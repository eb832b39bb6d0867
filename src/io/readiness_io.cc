// SPDX-License-Identifier: MIT
#include "readiness_io.h"

#include <cerrno>
#include <utility>

#include "system_call.h"
#include "weft/io/blocking.h"

namespace weft::inline v0::detail {

namespace {
ReadinessEntry& entry_of(IoOperation& operation) noexcept {
  return static_cast<ReadinessEntry&>(*operation.entry);
}
bool& ready_flag(ReadinessEntry& entry, IoCode code) noexcept {
  return reads(code) ? entry.can_read : entry.can_write;
}
}  // namespace

std::int32_t ReadinessIO::attempt(IoOperation& operation) noexcept {
  if (operation.code != IoCode::read_pooled) return perform(operation);
  if (!take_buffer(operation)) return -ENOMEM;
  std::int32_t result = perform(operation);
  fill_buffer(operation, result);  // R4
  return result;
}

bool ReadinessIO::begin(IoOperation& operation) {
  if (blocks(operation.code) || operation.entry->is_file) return begin_on_pool(operation);
  ReadinessEntry& entry = entry_of(operation);
  bool& can = ready_flag(entry, operation.code);
  operation.scratch = nullptr;
  if (can || operation.code == IoCode::connect) {
    operation.result = attempt(operation);
    if (operation.result != -EAGAIN) {
      if (is_short(operation) && entry.is_plain && !entry.hung_up) can = false;  // R1, R2
      if (--inline_left_ > 0) return true;
      operation.next = std::exchange(done_, &operation);  // L2: others want a turn, too
      operation.scratch = this;
      return false;
    }
    can = false;
  }
  if (int error = watch(entry)) {
    if (error == EEXIST) {
      throw_usage_error(
          "readable() and writable() of a number are for other libraries' descriptors: this one "
          "belongs to a Descriptor that waits on this loop. Use its own readable() or writable()");
    }
    operation.result = -error;
    return true;
  }
  return false;
}

bool ReadinessIO::withdraw(IoOperation& operation) noexcept {
  if (blocks(operation.code) || operation.entry->is_file) {
    return BlockingPool::current().withdraw(static_cast<FileOperation&>(operation));
  }
  return operation.scratch != this;  // R3: one on done_ has taken what it wanted
}

bool ReadinessIO::begin_on_pool(IoOperation& operation) {
  auto& file = static_cast<FileOperation&>(operation);
  if (file.code == IoCode::read_pooled && !take_buffer(file)) {
    file.result = -ENOMEM;
    return true;
  }
  file.work = [](BlockingJob& job) noexcept {
    auto& self = static_cast<FileOperation&>(job);
    self.result = perform(self);
  };
  file.done = [](BlockingJob& job) noexcept {
    auto& self = static_cast<FileOperation&>(job);
    if (self.code == IoCode::read_pooled) fill_buffer(self, self.result);
    static_cast<ReadinessIO*>(self.scratch)->finish(self, self.result);
  };
  file.scratch = this;
  file.home = Executor::current("a file operation").home();
  BlockingPool::current().submit(file);
  return false;
}

void ReadinessIO::happened(ReadinessEntry& entry, Event event) noexcept {
  if (event.hung_up) entry.hung_up = true;
  if (event.urgent) entry.is_plain = false;  // reads stop at the mark
  if (event.in || event.hung_up) entry.can_read = true;
  if (event.out || event.hung_up) entry.can_write = true;
  // The one may end the entry's last wait, and thereby the entry: not before free_dropped().
  if (entry.reader && entry.can_read) retry(entry, *entry.reader);
  if (entry.writer && entry.can_write) retry(entry, *entry.writer);
}

void ReadinessIO::retry(ReadinessEntry& entry, IoOperation& operation) noexcept {
  if (operation.paused) return;           // it has not begun
  if (operation.scratch == this) return;  // on done_
  operation.result = attempt(operation);
  bool& can = ready_flag(entry, operation.code);
  if (operation.result == -EAGAIN) {
    can = false;
    return;
  }
  if (is_short(operation) && entry.is_plain && !entry.hung_up) can = false;
  finish(operation, operation.result);
}

void ReadinessIO::finish_done() noexcept {
  inline_left_ = kInlineMax;
  IoOperation* newest = std::exchange(done_, nullptr);
  IoOperation* oldest = nullptr;
  while (newest) {
    IoOperation* next = newest->next;
    newest->next = std::exchange(oldest, newest);
    newest = next;
  }
  while (oldest) {
    IoOperation& operation = *oldest;
    oldest = operation.next;
    finish(operation, operation.result);
  }
}

void ReadinessIO::quiesce(IoEntry& entry) noexcept {
  auto& quiet = static_cast<ReadinessEntry&>(entry);
  if (quiet.watched) unwatch(quiet);
}

void ReadinessIO::drop_entry(IoEntry& entry) noexcept {
  quiesce(entry);
  auto& dropped = static_cast<ReadinessEntry&>(entry);
  dropped.next_dropped = std::exchange(dropped_, &dropped);
}

void ReadinessIO::free_dropped() noexcept {
  while (dropped_) delete std::exchange(dropped_, dropped_->next_dropped);
}

}  // namespace weft::inline v0::detail
