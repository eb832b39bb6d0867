// SPDX-License-Identifier: MIT
#pragma once
// weft::CancelNode, HeapCancelNode, CancelHook: hearing of a scope's cancellation without awaiting
// anything.
//
// CancelHook is the common case: a local object with a function that runs if the scope is cancelled
// while it lives.
//
//     CancelHook hook(scope, [&] { shutdown(fd, SHUT_RDWR); });
//
// HeapCancelNode is for resources that live on their own (a timer of another library, a request in
// flight): shared by reference count, and settled once by whoever disarms it: exactly one of
// do_cancel(), do_cleanup() and the owner's own successful disarm() happens.
//
// Threads        publish and hooks: the scope's home loop. HeapCancelNode: disarm(), add_ref(),
//                drop_ref() on any thread.
// Cancellation   do_cancel() runs on the home loop, when the kick arrives or the task unwinds,
//                whichever is first; never on the canceller's stack. A node that is published into
//                a cancelled scope fires inside the call.
// Allocation     none; the nodes are yours.
//
// Invariants
//   N1  a node is published at most once.
//   N2  a published node holds a reference to itself until it fired, was cleaned up or withdrawn.
//   N3  a node leaves its scope at once when it fires or is disarmed (L8).
#include <cstdint>
#include <utility>

#include "weft/atomic/atomic.h"
#include "weft/core/executor.h"
#include "weft/core/scope.h"

namespace weft::inline v0 {

class CancelNode {
 public:
  CancelNode(const CancelNode&) = delete;
  CancelNode& operator=(const CancelNode&) = delete;

  void add_ref() noexcept { refs_.fetch_add(1, detail::relaxed); }
  void drop_ref() noexcept {
    if (refs_.fetch_sub(1, detail::acq_rel) == 1) on_zero_refs();
  }

 protected:
  CancelNode() noexcept { link_.node = this; }
  virtual ~CancelNode() = default;

  // The node has entered a scope. Home loop.
  virtual void on_publish() noexcept {}
  // The scope was cancelled. Home loop; the node has left the scope.
  virtual void on_cancel() noexcept = 0;
  // The scope ended without that. Home loop; the node has left the scope.
  virtual void on_cleanup() noexcept {}
  virtual void on_zero_refs() noexcept = 0;

  // Home loop. Takes the node out of its scope, if it is in one: nothing will be called.
  void withdraw() noexcept;
  // Returns: the home of the scope that the node is or was published in, with kUnderWay while the
  // scope's task moves there; 0: none.
  static constexpr detail::HomeIndex kUnderWay = 1u << 31;
  [[nodiscard]] detail::HomeIndex home() const noexcept { return home_.load(detail::seq_cst); }

 private:
  friend struct CancellationRuntime;

  static CancelNode& from_link(detail::ParentLink& link) noexcept {
    return *static_cast<Link&>(link).node;
  }

  struct Link : detail::ParentLink {
    CancelNode* node;
  };
  Link link_;
  detail::Atomic<std::uint32_t> refs_{1};
  detail::Atomic<detail::HomeIndex> home_{0};
  bool published_ = false;
};

// Created with new, and with one reference that belongs to its creator.
class HeapCancelNode : public CancelNode {
 public:
  // Any thread. Returns: true for exactly one caller, who then owns what the node stood for. The
  // node leaves its scope: at once on the scope's home loop, else by a post.
  [[nodiscard]] bool disarm() noexcept;
  [[nodiscard]] bool is_armed() const noexcept { return armed_.load(detail::acquire); }

 protected:
  HeapCancelNode() noexcept : leave_(*this) {}

  virtual void do_cancel() noexcept = 0;
  virtual void do_cleanup() noexcept {}

 private:
  void on_publish() noexcept final;
  void on_cancel() noexcept final;
  void on_cleanup() noexcept final;
  void on_zero_refs() noexcept final { delete this; }

  struct Leave : Runnable {
    explicit Leave(HeapCancelNode& of) noexcept : Runnable(&leave_posted), node(&of) {}
    HeapCancelNode* node;
  };
  // Sends the node after its scope, which owes it a reference.
  void post_leave(detail::HomeIndex to) noexcept;
  static void leave_posted(Runnable& work) noexcept;

  detail::Atomic<bool> armed_{true};
  Leave leave_;
};

// Calls fn if the scope is cancelled while the hook lives; at once if it is cancelled already.
template <class Fn>
class [[nodiscard]] CancelHook final : private CancelNode {
 public:
  CancelHook(Scope& scope, Fn fn) : fn_(std::move(fn)) { scope.publish_cancel_node(*this); }
  ~CancelHook() override { withdraw(); }

 private:
  void on_cancel() noexcept override { fn_(); }
  void on_zero_refs() noexcept override {}

  Fn fn_;
};

}  // namespace weft::inline v0
