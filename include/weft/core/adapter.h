// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::Adapter: what a parked strand points to. The awaiter of the innermost frame, with
// its type erased. Where in the source it stands, the strand knows: one place for all its awaits.

namespace weft::inline v0 {
class TaskTreeCollector;
}

namespace weft::inline v0::detail {

class Adapter {
 public:
  Adapter() = default;
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  enum class Answer : unsigned char {
    over,         // the wait has ended
    later,        // the one resume is still to come, and must_resume() will say how it ended
    unsupported,  // the awaiter has no await_cancel(): its value will be delivered
  };
  // The awaiter's await_cancel().
  virtual Answer cancel() noexcept = 0;
  // The awaiter's await_must_resume().
  virtual bool must_resume() noexcept = 0;
  virtual void introspect(TaskTreeCollector& tree) noexcept = 0;

 protected:
  ~Adapter() = default;
};

static_assert(sizeof(Adapter) == 8,
              "a parked task must stay within its budget of bytes (bench: parked_bytes)");

}  // namespace weft::inline v0::detail
