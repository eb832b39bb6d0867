// SPDX-License-Identifier: MIT
// expect: a handler is a coroutine: Task<void>(const Request&, Response&)
#include "weft/http/router.h"

void f(weft::http::Router& routes) {
  routes.get("/", [](const weft::http::Request&, weft::http::Response& response) {
    response.body("text/plain", "Hello.");
  });
}
