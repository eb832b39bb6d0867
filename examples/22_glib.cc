// SPDX-License-Identifier: MIT
// weft on GLib: child processes, awaited by a source of the main context.
//
// Run: build/release/examples/22_glib
// See: a process whose end is awaited, and one that takes too long, is killed by the cancellation
//      and reaped before the timeout returns.
#include <glib.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

#include "weft/adapt/glib_loop.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// [child]
// Returns: the exit status, as waitpid() gives it.
// Cancel: kills the process, and waits for it: no zombie is left behind.
Task<int> run_shell(std::string command) {
  const char* arguments[] = {"/bin/sh", "-c", command.c_str(), nullptr};
  GPid pid = 0;
  if (!g_spawn_async(nullptr, const_cast<char**>(arguments), nullptr, G_SPAWN_DO_NOT_REAP_CHILD,
                     nullptr, nullptr, &pid, nullptr)) {
    co_return -1;
  }
  std::function<void(int)> ended;
  auto watch = [&](auto done) {
    ended = done;
    auto called = [](GPid, int status, void* who) {
      (*static_cast<std::function<void(int)>*>(who))(status);
    };
    g_child_watch_add(pid, called, &ended);
  };
  auto cancel = [&] {
    kill(pid, SIGKILL);
    return false;  // the watch calls in any case, and the wait lasts until it does
  };
  int status = co_await until_callback<void(int)>(watch, cancel);
  g_spawn_close_pid(pid);
  co_return status;
}
// [/child]

Task<> async_main() {
  int status = co_await run_shell("exit 3");
  std::printf("the first one ended with %d\n", WEXITSTATUS(status));

  auto slow = [&]() -> Task<> {
    int how = co_await run_shell("exec sleep 60");
    std::printf("the second one was ended by signal %d\n", WTERMSIG(how));
    co_await yield();
    std::printf("never printed: the cancellation strikes here\n");
  };
  auto late = co_await timeout(20ms, slow());
  std::printf("and that was %s\n", late ? "in time" : "a timeout");
}

int main() {
  GMainLoop* loop = g_main_loop_new(nullptr, FALSE);
  run(*loop, async_main());
  g_main_loop_unref(loop);
}
