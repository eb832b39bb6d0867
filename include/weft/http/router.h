// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Router: a Handler that looks for another one, by method and path.
//
//     Task<void> hello(const Request& request, Response& response) {
//       response.body("text/plain", "Hello, " + request.parameter("name") + ".\n");
//       co_return;
//     }
//     routes.get("/hello/{name}", hello);
//     routes.get("/files/{path...}", files);         // the rest of the path, with its slashes
//     routes.use(require_login);                     // before every handler; it calls the next one, or does not
//
// A handler is a coroutine function (request, response), or (request, response, connection); a lambda that is one, which the
// Router keeps; or a Handler, which it does not. A word of the pattern goes before a {parameter}, and that before the
// {rest...}. HEAD is answered by the handler of GET, without the body. A path that is not there: 404. A method
// that is not there: 405 with `allow`; OPTIONS: 204 with it.
//
// Threads        register before serving; then any thread.
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/core/task.h"
#include "weft/http/handler.h"

namespace weft::inline v0::http {

class Router;

// What comes after a middleware. Good while that runs.
class Next {
 public:
  [[nodiscard]] Task<void> operator()() const;

 private:
  friend class Router;
  Next(Router& router, std::size_t index, const Request& request, Response& response,
       Connection& connection) noexcept
      : router_(router),
        index_(index),
        request_(request),
        response_(response),
        connection_(connection) {}

  Router& router_;
  std::size_t index_;
  const Request& request_;
  Response& response_;
  Connection& connection_;
};

template <class Fn>
concept HandlerFunction =
    std::is_invocable_r_v<Task<void>, Fn&, const Request&, Response&> ||
    std::is_invocable_r_v<Task<void>, Fn&, const Request&, Response&, Connection&>;
template <class Fn>
concept MiddlewareFunction =
    std::is_invocable_r_v<Task<void>, Fn&, const Request&, Response&, Next>;

namespace detail {

template <class Fn>
class FunctionHandler final : public Handler {
 public:
  explicit FunctionHandler(Fn fn) : fn_(std::move(fn)) {}
  Task<void> handle_request(const Request& request, Response& response,
                            Connection& connection) override {
    if constexpr (std::is_invocable_v<Fn&, const Request&, Response&, Connection&>) {
      return fn_(request, response, connection);
    } else {
      return fn_(request, response);
    }
  }

 private:
  Fn fn_;
};

class RouteNode;

}  // namespace detail

class Router final : public Handler {
 public:
  Router();
  ~Router() override;

  // UsageError: the pattern is malformed, or it is there already.
  template <class Fn>
    requires(!std::derived_from<Fn, Handler>)
  void add(Method method, std::string_view pattern, Fn fn) {
    static_assert(HandlerFunction<Fn>,
                  "a handler is a coroutine: Task<void>(const Request&, Response&), with or "
                  "without a Connection& at the "
                  "end. A plain function or lambda that returns something else cannot wait, and "
                  "has nobody to hand its "
                  "errors to: return weft::Task<void> and use co_return.");
    own(method, pattern, std::make_unique<detail::FunctionHandler<Fn>>(std::move(fn)));
  }
  // Requires: `handler` lives as long as the Router.
  void add(Method method, std::string_view pattern, Handler& handler);
  template <class Fn>
  void get(std::string_view pattern, Fn&& handler) {
    add(Method::get, pattern, std::forward<Fn>(handler));
  }
  template <class Fn>
  void post(std::string_view pattern, Fn&& handler) {
    add(Method::post, pattern, std::forward<Fn>(handler));
  }
  template <class Fn>
  void put(std::string_view pattern, Fn&& handler) {
    add(Method::put, pattern, std::forward<Fn>(handler));
  }
  template <class Fn>
  void del(std::string_view pattern, Fn&& handler) {
    add(Method::delete_, pattern, std::forward<Fn>(handler));
  }
  template <class Fn>
  void patch(std::string_view pattern, Fn&& handler) {
    add(Method::patch, pattern, std::forward<Fn>(handler));
  }

  // (request, response, next), in the order in which they are given. For every request, also those that find no handler.
  template <class Fn>
  void use(Fn middleware) {
    static_assert(MiddlewareFunction<Fn>,
                  "a middleware is a coroutine: Task<void>(const Request&, Response&, Next). It "
                  "awaits next(), or answers itself.");
    middlewares_.push_back(std::move(middleware));
  }

  Task<void> handle_request(const Request& request, Response& response,
                            Connection& connection) override;

 private:
  friend class Next;
  using Middleware = std::function<Task<void>(const Request&, Response&, Next)>;

  void own(Method method, std::string_view pattern, std::unique_ptr<Handler> handler);
  Task<void> from(std::size_t index, const Request& request, Response& response,
                  Connection& connection);
  [[nodiscard]] Handler& find(const Request& request);

  std::unique_ptr<detail::RouteNode> root_;
  std::vector<std::unique_ptr<Handler>> owned_;
  std::vector<Middleware> middlewares_;
  std::unique_ptr<Handler> not_found_, not_allowed_;
};

}  // namespace weft::inline v0::http
