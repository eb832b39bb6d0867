// SPDX-License-Identifier: MIT
#pragma once
// Input: the bytes of a connection that were not parsed yet, and the head that a request's views point to.
//
// A head that came in one piece stays in the buffer that it came in. One that was torn is put together in memory of the connection's own.
//
// Invariants
//   I1  next_ lies in lent_ or in own_.
//   I2  the parser's head lies in lent_, in own_, or in held_; until release() nothing moves it but add(), which tells the parser.
#include <string>
#include <string_view>
#include <utility>

#include "parser.h"
#include "weft/base/assert.h"
#include "weft/io/pooled_bytes.h"

namespace weft::inline v0::http::detail {

class Input {
 public:
  [[nodiscard]] std::string_view next() const noexcept { return next_; }
  void take(std::size_t count) noexcept { next_.remove_prefix(count); }

  // More bytes, behind those that were all taken. `head_is_whole`: the parser's head stays as it is.
  void add(PooledBytes more, MessageParser& parser, bool head_is_whole) {
    WEFT_ASSERT(next_.empty(), "Input::add() before what is there was parsed");
    if (parser.head().empty()) {
      own_.clear();
      hold(std::move(more));
    } else if (head_is_whole) {
      if (!is_own(parser.head()) && held_.empty()) held_ = std::move(lent_);
      hold(std::move(more));
    } else {
      join(more, parser);
    }
  }
  // The request, whose head is whole, may last as long as the connection: it moves to memory of its own size, and what follows it
  // too. What was lent goes back.
  void keep(MessageParser& parser) {
    std::string_view head = parser.head();
    if (is_own(head)) return;
    std::string kept;
    kept.reserve(head.size() + next_.size());
    kept.append(head).append(next_);
    own_ = std::move(kept);
    parser.moved(head.data(), own_.data());
    next_ = std::string_view(own_).substr(head.size());
    lent_ = {};
    held_ = {};
  }
  // The request is over: its head is of no more use.
  void release() noexcept {
    held_ = {};
    if (!next_.empty()) return;
    lent_ = {};
    own_.clear();
  }
  // Nothing will come for a while.
  void rest() noexcept { own_.shrink_to_fit(); }

 private:
  static std::string_view text(const PooledBytes& bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  [[nodiscard]] bool is_own(std::string_view head) const noexcept {
    return !own_.empty() && head.data() >= own_.data() && head.data() < own_.data() + own_.size();
  }
  void hold(PooledBytes more) noexcept {
    lent_ = std::move(more);
    next_ = text(lent_);
  }
  void join(const PooledBytes& more, MessageParser& parser) {
    std::string_view head = parser.head();
    if (is_own(head)) {
      own_.erase(0, static_cast<std::size_t>(head.data() - own_.data()));  // the request before it
    } else {
      own_.assign(head);
    }
    own_.append(text(more));
    parser.moved(head.data(), own_.data());
    next_ = std::string_view(own_).substr(head.size());
    lent_ = {};
  }

  PooledBytes lent_, held_;
  std::string own_;
  std::string_view next_;
};

}  // namespace weft::inline v0::http::detail
