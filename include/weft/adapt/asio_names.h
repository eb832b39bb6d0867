// SPDX-License-Identifier: MIT
#pragma once
// Which Asio: Boost's, or with WEFT_ASIO_STANDALONE the one without Boost.
//
// weft::detail::asio_lib is its namespace, and AsioError its error_code; both libraries are used
// through these two names only. They may not be mixed in one program.
#ifdef WEFT_ASIO_STANDALONE

#include <asio/associated_cancellation_slot.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/dispatch.hpp>
#include <asio/error.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

namespace weft::inline v0::detail {
namespace asio_lib = ::asio;
using AsioError = ::asio::error_code;
}  // namespace weft::inline v0::detail

#else

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace weft::inline v0::detail {
namespace asio_lib = ::boost::asio;
using AsioError = ::boost::system::error_code;
}  // namespace weft::inline v0::detail

#endif
