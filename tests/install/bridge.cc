// SPDX-License-Identifier: MIT
// A stranger who runs weft on the loop of another library.
#include <chrono>

#include "weft/weft.h"

#if defined(BRIDGE_asio)
#include "weft/adapt/asio.h"
#elif defined(BRIDGE_libuv)
#include "weft/adapt/libuv_loop.h"
#elif defined(BRIDGE_glib)
#include "weft/adapt/glib_loop.h"
#elif defined(BRIDGE_qt)
#include "weft/adapt/qt.h"
#endif

weft::Task<int> async_main() {
  co_await weft::sleep_for(std::chrono::milliseconds(1));
  co_return 0;
}

int main([[maybe_unused]] int argc, [[maybe_unused]] char** argv) {
#if defined(BRIDGE_asio)
  weft::detail::asio_lib::io_context context;  // whichever Asio was found
  return weft::run(context, async_main());
#elif defined(BRIDGE_libuv)
  return weft::run(*uv_default_loop(), async_main());
#elif defined(BRIDGE_glib)
  return weft::run(*g_main_context_default(), async_main());
#elif defined(BRIDGE_qt)
  QCoreApplication app(argc, argv);
  return weft::run(app, async_main());
#endif
}
