// SPDX-License-Identifier: MIT
#pragma once
// weft::detail::kLayout: object files that do not fit together do not link.
//
// Two things change what weft's types look like in memory, or how control passes between frames:
// WEFT_AWAITABLE_STATE_DEBUG, and the compiler's family (clang transfers between frames and aligns
// them at will; g++ goes through the loop, and aligns to 16 bytes). Every object file asks for the
// tag of its own layout, and the library has just one of them. The linker then complains of
// weft::detail::layout_<family>_<checks>.

#ifdef __clang__
#define WEFT_LAYOUT_FAMILY clang_
#else
#define WEFT_LAYOUT_FAMILY gcc_
#endif
#ifdef WEFT_AWAITABLE_STATE_DEBUG
#define WEFT_LAYOUT_CHECKS with_awaitable_state_debug
#else
#define WEFT_LAYOUT_CHECKS without_awaitable_state_debug
#endif
#define WEFT_LAYOUT_JOIN_(family, checks) layout_##family##checks
#define WEFT_LAYOUT_JOIN(family, checks) WEFT_LAYOUT_JOIN_(family, checks)
#define WEFT_LAYOUT WEFT_LAYOUT_JOIN(WEFT_LAYOUT_FAMILY, WEFT_LAYOUT_CHECKS)

namespace weft::inline v0::detail {

extern const char WEFT_LAYOUT;
[[gnu::used]] static const char* const kLayout = &WEFT_LAYOUT;

}  // namespace weft::inline v0::detail
