// SPDX-License-Identifier: MIT
#pragma once
// weft::bench: what every HTTP server of this suite answers: the text, its type, who answers and when.

#include <string_view>

namespace weft::bench {

constexpr std::string_view kPlaintext = "Hello, World!";

}  // namespace weft::bench
