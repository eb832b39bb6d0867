// SPDX-License-Identifier: MIT
#pragma once
// The bridge to Asio: io_context as a home (asio_loop.h), its operations as awaitables
// (asio_token.h). Target weft::adapt_asio.
#include "weft/adapt/asio_loop.h"
#include "weft/adapt/asio_token.h"
