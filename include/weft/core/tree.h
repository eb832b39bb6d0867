// SPDX-License-Identifier: MIT
#pragma once
// weft::TaskTreeCollector: the tree of tasks as text: what each task awaits, and where in the
// source.
//
//     std::puts(weft::task_tree(scope).c_str());
//     std::puts(weft::async_stack_trace().c_str());
//
// An awaiter takes part by await_introspect(auto& tree): tree.node("what it is", this), then
// tree.child(x) for each awaiter inside it. Without that its type's name is printed.
//
// Threads        the home loop of the tree's root; children on other loops are named, not entered.
// Allocation     the text.
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "weft/core/strand.h"

namespace weft::inline v0 {

class Scope;

class TaskTreeCollector {
 public:
  static constexpr int kDepthMax = 64;      // deeper levels are counted, not printed
  static constexpr int kChildrenMax = 100;  // per scope; the rest is counted

  // Describes what is being collected now. Call it once, first.
  void node(std::string_view description, const void* = nullptr);
  // The same with an annotation that the user gave.
  void annotate(std::string_view name);
  template <class Aw>
  void child(Aw& awaiter) {
    enter();
    if constexpr (requires { awaiter.await_introspect(*this); }) {
      awaiter.await_introspect(*this);
    } else {
      type(typeid(Aw));
    }
    leave();
  }
  // A task: its frames, what the innermost awaits, and its children.
  void task(detail::Strand& strand);
  // An awaiter that does not describe itself.
  void type(const std::type_info& info);
  // The members of a scope that is no frame.
  void children(const Scope& scope);

  [[nodiscard]] std::string take() noexcept { return std::move(text_); }

 private:
  void enter() noexcept { ++depth_; }
  void leave() noexcept { --depth_; }
  void line(std::string_view what, const std::source_location* where = nullptr);

  std::string text_;
  int depth_ = 0;
};

namespace detail {
[[nodiscard]] std::string type_name(const std::type_info& info);
// "transfer(Account&) at bank.cc:42", as the tree names places.
[[nodiscard]] std::string place_name(const std::source_location& where);
// "Mutex 'accounts'", or "a Mutex".
[[nodiscard]] std::string thing_name(const char* kind, const char* name);
// A task of this loop that waits: as in the tree, and then who awaits it, outwards.
[[nodiscard]] std::string task_stack(Strand& strand);
// Returns: the strand that a cancel apart cannot go on before this one, of this loop, has ended; null
// if there is none, or it is not known. It may be another loop's, and is then named, not entered.
[[nodiscard]] Strand* needing(const Strand& strand) noexcept;
}  // namespace detail

// The tree below a scope. Home loop only.
[[nodiscard]] std::string task_tree(const Scope& scope);

// The chain of awaits that led to the task that runs now, innermost first; across started tasks,
// nurseries and combinators, up to another loop, a foreign coroutine or the root.
[[nodiscard]] std::string async_stack_trace();

}  // namespace weft::inline v0
