// SPDX-License-Identifier: MIT
// expect: a middleware is a coroutine: Task<void>(const Request&, Response&, Next)
#include "weft/http/router.h"

void f(weft::http::Router& routes) {
  routes.use([](const weft::http::Request&, weft::http::Response& response, weft::http::Next) {
    response.header("x-served-by", "weft");
  });
}
