// SPDX-License-Identifier: MIT
#pragma once
// The bridge to Qt 6: its loops as homes (qt_loop.h), its signals as awaitables (qt_signal.h).
// Target weft::adapt_qt.
#include "weft/adapt/qt_loop.h"
#include "weft/adapt/qt_signal.h"
