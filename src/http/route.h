// SPDX-License-Identifier: MIT
#pragma once
// RouteNode: the Router's patterns as a tree, a word of the path at each step.
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/http/handler.h"

namespace weft::inline v0::http::detail {

class RouteNode {
 public:
  using Parameters = std::vector<std::pair<std::string_view, std::string>>;

  // The node of `pattern`, made if it is not there. UsageError: malformed.
  [[nodiscard]] RouteNode& make(std::string_view pattern);
  // The best one that has a handler, and what its parameters stand for. Null: none.
  [[nodiscard]] const RouteNode* find(std::string_view path, Parameters& parameters) const;

  // UsageError: it has one.
  void put(Method method, Handler& handler);
  // That of the method; of HEAD, that of GET. Null: none.
  [[nodiscard]] Handler* handler(Method method) const noexcept;
  // "GET, HEAD, POST".
  [[nodiscard]] std::string allowed() const;
  // The same, of all nodes from here on.
  [[nodiscard]] std::string allowed_below() const;

 private:
  static constexpr std::size_t kMethods = static_cast<std::size_t>(Method::other) + 1;
  using Methods = std::array<bool, kMethods>;

  [[nodiscard]] static std::string list(const Methods& methods);
  void note_methods(Methods& methods) const noexcept;
  void note_methods_below(Methods& methods) const noexcept;
  [[nodiscard]] bool has_handler() const noexcept;
  [[nodiscard]] RouteNode& child(std::string_view word, std::string_view pattern);

  std::vector<std::pair<std::string, std::unique_ptr<RouteNode>>> words_;
  std::unique_ptr<RouteNode> parameter_, rest_;
  std::string name_;  // of the parameter that leads here
  std::array<Handler*, kMethods> handlers_{};
};

}  // namespace weft::inline v0::http::detail
