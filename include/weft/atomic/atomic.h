// SPDX-License-Identifier: MIT
#pragma once
// The seam through which weft names atomics: the standard library's, or a model checker's.
//
// Every lock-free structure of weft is a small header that takes its atomics from here, always with
// an explicit order. Building with WEFT_MODEL_CHECK puts Relacy's atomics in their place
// (tests/model/), so that what is checked is the code that ships. Orders sit on the operations
// themselves; weft uses no fences, because no sanitizer understands them.

#ifdef WEFT_MODEL_CHECK
#include "weft_model_atomic.h"  // tests/model/: the same names over Relacy
#else

#include <atomic>

#include "weft/atomic/state_mutex.h"

namespace weft::inline v0::detail {

template <class T>
using Atomic = std::atomic<T>;

// Plain memory that a StateMutex guards, or that goes from thread to thread by a post. A model checker
// watches it for data races.
template <class T>
using Guarded = T;

inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;
inline constexpr auto acq_rel = std::memory_order_acq_rel;
inline constexpr auto seq_cst = std::memory_order_seq_cst;

}  // namespace weft::inline v0::detail

#endif
