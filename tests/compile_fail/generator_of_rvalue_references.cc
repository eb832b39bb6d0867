// expect: a Generator gives objects, or lvalue references
// SPDX-License-Identifier: MIT
#include "weft/weft.h"

weft::Generator<int&&> numbers() { co_yield 1; }
