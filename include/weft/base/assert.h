// SPDX-License-Identifier: MIT
#pragma once
// WEFT_ASSERT: weft or its user broke a rule, and going on would corrupt memory or lose a task.
//
//   WEFT_ASSERT(cond, "rule in words")   on in every build, where the check is a few instructions.
//   WEFT_DEBUG_ASSERT(cond, "rule")      on in debug builds only, for checks on hot paths.
//
// Both print the rule, the condition and the place through the log sink, and abort. A mistake from
// which the caller can go on is not for these: it throws UsageError.
#include <stdexcept>

#ifdef WEFT_MODEL_CHECK
#include <cstdio>
#include <cstdlib>
#endif

namespace weft::inline v0 {

// The caller broke a rule of the interface, and nothing was changed. what() names the rule and the
// way out.
class UsageError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
#ifdef WEFT_MODEL_CHECK  // the checked headers alone, without the library
[[noreturn]] inline void assert_failed(const char* condition, const char* rule, const char* file,
                                       int line) noexcept {
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, condition, rule);
  std::abort();
}
#else
[[noreturn]] void assert_failed(const char* condition, const char* rule, const char* file,
                                int line) noexcept;
#endif
[[noreturn]] void throw_usage_error(const char* rule);
}  // namespace detail

}  // namespace weft::inline v0

#define WEFT_ASSERT(condition, rule)                 \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::weft::detail::assert_failed(#condition, rule, __FILE__, __LINE__))

#ifdef NDEBUG
#define WEFT_DEBUG_ASSERT(condition, rule) static_cast<void>(0)
#else
#define WEFT_DEBUG_ASSERT(condition, rule) WEFT_ASSERT(condition, rule)
#endif
