// SPDX-License-Identifier: MIT
// Echo on libuv: one default loop. The reply is tried at once (uv_try_write), and queued only if it
// does not fit: libuv's cheapest way.
#include <uv.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "harness/loopback.h"

namespace weft::bench {
namespace {

struct Connection {
  uv_tcp_t handle;
  std::array<char, kReadBufferBytes> buffer;
};

void check(int status, const char* what) {
  if (status >= 0) return;
  std::fprintf(stderr, "uv_echo: %s: %s\n", what, uv_strerror(status));
  std::exit(1);
}

void lend_buffer(uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
  auto* connection = static_cast<Connection*>(handle->data);
  *buffer = uv_buf_init(connection->buffer.data(), static_cast<unsigned>(kReadBufferBytes));
}

void on_closed(uv_handle_t* handle) { delete static_cast<Connection*>(handle->data); }

void on_read(uv_stream_t* stream, ssize_t got, const uv_buf_t* buffer) {
  if (got == 0) return;
  if (got < 0) {
    uv_close(reinterpret_cast<uv_handle_t*>(stream), on_closed);
    return;
  }
  const uv_buf_t reply = uv_buf_init(buffer->base, static_cast<unsigned>(got));
  if (uv_try_write(stream, &reply, 1) != got) check(UV_EAGAIN, "a reply did not fit");
}

void on_connection(uv_stream_t* listener, int status) {
  check(status, "listen");
  auto* connection = new Connection;
  check(uv_tcp_init(listener->loop, &connection->handle), "uv_tcp_init");
  connection->handle.data = connection;
  auto* stream = reinterpret_cast<uv_stream_t*>(&connection->handle);
  check(uv_accept(listener, stream), "uv_accept");
  check(uv_tcp_nodelay(&connection->handle, 1), "uv_tcp_nodelay");
  check(uv_read_start(stream, lend_buffer, on_read), "uv_read_start");
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
  using namespace weft::bench;
  const std::string info =
      std::string("libuv ") + uv_version_string() + ", uv_try_write; clang " __clang_version__;
  if (answered_info(argc, argv, info.c_str())) return 0;
  uv_loop_t* loop = uv_default_loop();
  uv_tcp_t listener;
  check(uv_tcp_init(loop, &listener), "uv_tcp_init");
  const int socket = listen_on_loopback();
  check(uv_tcp_open(&listener, socket), "uv_tcp_open");
  check(uv_listen(reinterpret_cast<uv_stream_t*>(&listener), 256, on_connection), "uv_listen");
  announce(port_of(socket));
  return uv_run(loop, UV_RUN_DEFAULT);
}
