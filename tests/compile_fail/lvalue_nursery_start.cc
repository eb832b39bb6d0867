// expect: Task
// SPDX-License-Identifier: MIT
// A named Task has one owner: it is moved into the nursery, or not at all.
#include "weft/weft.h"

void start(weft::Nursery& n, weft::Task<void> task) { n.start(task); }
