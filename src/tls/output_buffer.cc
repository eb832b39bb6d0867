// SPDX-License-Identifier: MIT
#include "weft/tls/output_buffer.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "weft/base/assert.h"

namespace weft::inline v0::tls::detail {

struct OutputBuffer::Block {
  Block* next = nullptr;
  std::size_t first = 0;
  std::size_t last = 0;
  std::byte memory[kOutputBytes];

  [[nodiscard]] std::size_t room() const noexcept { return kOutputBytes - last; }
};

// What a thread has to spare.
class OutputBuffer::Stock {
 public:
  constexpr Stock() noexcept = default;
  Stock(const Stock&) = delete;
  Stock& operator=(const Stock&) = delete;
  ~Stock() {
    while (blocks_) delete take();
    count_ = kOutputBlocksKept;  // what other thread-locals give back from here on is freed
  }

  [[nodiscard]] Block* take() {
    if (!blocks_) return new Block;
    --count_;
    Block* block = std::exchange(blocks_, blocks_->next);
    block->next = nullptr;
    block->first = block->last = 0;
    return block;
  }
  void give_back(Block* block) noexcept {
    if (count_ == kOutputBlocksKept) {
      delete block;
      return;
    }
    ++count_;
    block->next = std::exchange(blocks_, block);
  }

  // Not inlined: a coroutine may go on in another thread than it began in.
  [[gnu::noinline]] static Stock& of_thread() noexcept {
    static constinit thread_local Stock stock;
    return stock;
  }

 private:
  Block* blocks_ = nullptr;
  std::size_t count_ = 0;
};

std::span<const std::byte> OutputBuffer::front() const noexcept {
  if (!first_) return {};
  return {first_->memory + first_->first, first_->last - first_->first};
}

void OutputBuffer::put(std::span<const std::byte> bytes) {
  // What does not fit into the last block needs new ones, all of them before a byte is put.
  std::size_t here = std::min(bytes.size(), last_ ? last_->room() : 0);
  Block* more = nullptr;
  Block** end = &more;
  try {
    for (std::size_t rest = bytes.size() - here; rest > 0; rest -= std::min(rest, kOutputBytes)) {
      *end = Stock::of_thread().take();
      end = &(*end)->next;
    }
  } catch (...) {
    while (more) Stock::of_thread().give_back(std::exchange(more, more->next));
    throw;
  }
  if (more) (last_ ? last_->next : first_) = more;
  if (!last_) last_ = more;
  while (!bytes.empty()) {
    if (last_->room() == 0) last_ = last_->next;
    std::size_t count = std::min(bytes.size(), last_->room());
    std::memcpy(last_->memory + last_->last, bytes.data(), count);
    last_->last += count;
    size_ += count;
    bytes = bytes.subspan(count);
  }
}

void OutputBuffer::take(std::size_t count) noexcept {
  WEFT_ASSERT(count <= front().size(), "OutputBuffer::take() of more than is there");
  if (!first_) return;
  size_ -= count;
  first_->first += count;
  if (first_->first < first_->last) return;
  Block* used = std::exchange(first_, first_->next);
  if (!first_) last_ = nullptr;
  Stock::of_thread().give_back(used);
}

void OutputBuffer::clear() noexcept {
  while (first_) take(front().size());
}

}  // namespace weft::inline v0::tls::detail
