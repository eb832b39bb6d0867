// SPDX-License-Identifier: MIT
#pragma once
// weft::log: the one place where weft speaks when nobody asked.
//
// An error that nobody read, a loop that cannot stop, a broken rule: each is one call of one sink.
// The default sink writes a line to standard error. Replace it once, at start-up.
//
// Threads        log() from any thread; the sink must allow that. set_log_sink() may race with
//                log().
// Allocation     none in weft; the sink is yours.
#include <string_view>

namespace weft::inline v0 {

enum class LogLevel { info, warning, error };

// Requires: may be called from any thread, at any time until the process ends; must not throw.
using LogSink = void (*)(LogLevel level, std::string_view message) noexcept;

// Returns: the sink that was in force; nullptr as an argument restores the default one.
LogSink set_log_sink(LogSink sink) noexcept;

void log(LogLevel level, std::string_view message) noexcept;

}  // namespace weft::inline v0
