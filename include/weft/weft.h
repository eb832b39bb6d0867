// SPDX-License-Identifier: MIT
#pragma once
// Everything a program needs.
#include "weft/core/cancel_node.h"
#include "weft/core/errors.h"
#include "weft/core/nursery.h"
#include "weft/core/outcome.h"
#include "weft/core/primitives.h"
#include "weft/core/run.h"
#include "weft/core/started_task.h"
#include "weft/core/task.h"
#include "weft/core/task_local.h"
#include "weft/core/tree.h"
