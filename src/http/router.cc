// SPDX-License-Identifier: MIT
#include "weft/http/router.h"

#include <algorithm>

#include "route.h"
#include "weft/base/assert.h"

namespace weft::inline v0::http {

namespace detail {

namespace {

[[noreturn]] void refuse(std::string_view pattern, const char* why) {
  throw UsageError("the Router's pattern \"" + std::string(pattern) + "\" " + why);
}

// Takes the first word off a path that begins with '/'.
std::string_view take_word(std::string_view& path) noexcept {
  path.remove_prefix(1);
  std::size_t end = std::min(path.find('/'), path.size());
  std::string_view word = path.substr(0, end);
  path.remove_prefix(end);
  return word;
}

}  // namespace

RouteNode& RouteNode::child(std::string_view word, std::string_view pattern) {
  if (!word.starts_with('{')) {
    if (word.find_first_of("{}") != word.npos) refuse(pattern, "has a brace inside a word");
    for (auto& [known, node] : words_) {
      if (known == word) return *node;
    }
    words_.emplace_back(word, std::make_unique<RouteNode>());
    return *words_.back().second;
  }
  if (!word.ends_with('}')) refuse(pattern, "has a parameter that is no whole word");
  std::string_view name = word.substr(1, word.size() - 2);
  bool is_rest = name.ends_with("...");
  if (is_rest) name.remove_suffix(3);
  if (name.empty()) refuse(pattern, "has a parameter without a name");
  std::unique_ptr<RouteNode>& node = is_rest ? rest_ : parameter_;
  if (!node) {
    node = std::make_unique<RouteNode>();
    node->name_ = name;
  } else if (node->name_ != name) {
    refuse(pattern, "names a parameter otherwise than another pattern does at the same place");
  }
  return *node;
}

RouteNode& RouteNode::make(std::string_view pattern) {
  if (!pattern.starts_with('/')) refuse(pattern, "does not begin with '/'");
  RouteNode* node = this;
  std::string_view left = pattern;
  while (!left.empty()) {
    std::string_view word = take_word(left);
    node = &node->child(word, pattern);
    if (word.ends_with("...}") && !left.empty()) refuse(pattern, "goes on behind its {rest...}");
  }
  return *node;
}

const RouteNode* RouteNode::find(std::string_view path, Parameters& parameters) const {
  if (path.empty()) return has_handler() ? this : nullptr;
  std::string_view rest = path;
  std::string_view raw = take_word(rest);
  bool is_escaped = raw.find('%') != raw.npos;
  std::string decoded;
  std::string_view word = raw;
  if (is_escaped) {
    std::optional<std::string> plain = percent_decoded(raw);
    if (!plain) return nullptr;
    decoded = std::move(*plain);
    word = decoded;
  }
  for (const auto& [known, node] : words_) {
    if (known != word) continue;
    if (const RouteNode* found = node->find(rest, parameters)) return found;
  }
  if (parameter_ && !word.empty()) {
    parameters.emplace_back(parameter_->name_, word);
    if (const RouteNode* found = parameter_->find(rest, parameters)) return found;
    parameters.pop_back();
  }
  if (rest_ && rest_->has_handler()) {
    std::optional<std::string> plain = percent_decoded(path.substr(1));
    if (!plain) return nullptr;
    parameters.emplace_back(rest_->name_, std::move(*plain));
    return rest_.get();
  }
  return nullptr;
}

void RouteNode::put(Method method, Handler& handler) {
  Handler*& place = handlers_[static_cast<std::size_t>(method)];
  if (place) throw UsageError("the Router has a handler for this method and pattern already");
  place = &handler;
}

Handler* RouteNode::handler(Method method) const noexcept {
  Handler* found = handlers_[static_cast<std::size_t>(method)];
  if (!found && method == Method::head) found = handlers_[static_cast<std::size_t>(Method::get)];
  return found;
}

bool RouteNode::has_handler() const noexcept {
  return std::ranges::any_of(handlers_, [](Handler* handler) { return handler != nullptr; });
}

std::string RouteNode::list(const Methods& methods) {
  std::string text;
  for (std::size_t i = 0; i < kMethods; ++i) {
    auto method = static_cast<Method>(i);
    if (!methods[i] || method == Method::other) continue;
    if (!text.empty()) text += ", ";
    text += to_string(method);
  }
  return text;
}

void RouteNode::note_methods(Methods& methods) const noexcept {
  for (std::size_t i = 0; i < kMethods; ++i) {
    if (handler(static_cast<Method>(i))) methods[i] = true;
  }
}

void RouteNode::note_methods_below(Methods& methods) const noexcept {
  note_methods(methods);
  for (const auto& [word, node] : words_) node->note_methods_below(methods);
  if (parameter_) parameter_->note_methods_below(methods);
  if (rest_) rest_->note_methods_below(methods);
}

std::string RouteNode::allowed() const {
  Methods methods{};
  note_methods(methods);
  return list(methods);
}

std::string RouteNode::allowed_below() const {
  Methods methods{};
  note_methods_below(methods);
  return list(methods);
}

namespace {

class NotFound final : public Handler {
  Task<void> handle_request(const Request&, Response& response, Connection&) override {
    response.status(404);
    response.body("text/plain", "Not Found: there is nothing at this path\n");
    co_return;
  }
};

class NotAllowed final : public Handler {
 public:
  explicit NotAllowed(const RouteNode& root) : root_(root) {}
  Task<void> handle_request(const Request& request, Response& response, Connection&) override {
    RouteNode::Parameters parameters;
    // RFC 9110, 9.3.7: "*" is the server as a whole.
    bool is_all = request.path() == "*";
    response.header("allow", is_all ? root_.allowed_below()
                                    : root_.find(request.path(), parameters)->allowed());
    if (request.method() == Method::options) {
      response.status(204);
    } else {
      response.status(405);
      response.body("text/plain", "Method Not Allowed: see the header field allow\n");
    }
    co_return;
  }

 private:
  const RouteNode& root_;
};

}  // namespace

}  // namespace detail

Router::Router()
    : root_(std::make_unique<detail::RouteNode>()),
      not_found_(std::make_unique<detail::NotFound>()),
      not_allowed_(std::make_unique<detail::NotAllowed>(*root_)) {}
Router::~Router() = default;

void Router::add(Method method, std::string_view pattern, Handler& handler) {
  root_->make(pattern).put(method, handler);
}

void Router::own(Method method, std::string_view pattern, std::unique_ptr<Handler> handler) {
  add(method, pattern, *handler);
  owned_.push_back(std::move(handler));
}

Handler& Router::find(const Request& request) {
  request.parameters_.clear();
  if (request.path() == "*") return *not_allowed_;  // of OPTIONS only: it says what is
  if (!request.path().starts_with('/')) return *not_found_;
  const detail::RouteNode* node = root_->find(request.path(), request.parameters_);
  if (!node) return *not_found_;
  Handler* handler = node->handler(request.method());
  return handler ? *handler : *not_allowed_;
}

Task<void> Router::handle_request(const Request& request, Response& response,
                                  Connection& connection) {
  return from(0, request, response, connection);
}

Task<void> Router::from(std::size_t index, const Request& request, Response& response,
                        Connection& connection) {
  if (index == middlewares_.size()) {
    return find(request).handle_request(request, response, connection);
  }
  return middlewares_[index](request, response,
                             Next(*this, index + 1, request, response, connection));
}

Task<void> Next::operator()() const {
  return router_.from(index_, request_, response_, connection_);
}

}  // namespace weft::inline v0::http
