// SPDX-License-Identifier: MIT
#include "durable/etcd/http_transport.h"

#include <array>
#include <string_view>
#include <utility>

namespace weft::inline v0::durable::etcd {

namespace {

http::ClientOptions client_options(const EtcdOptions& options, bool is_for_streams) {
  http::ClientOptions made{.proxies = {}};
  made.connector = options.connector;
  made.decodes = false;
  made.limits.redirects_max = 0;
  made.limits.connect_timeout = options.attempt_timeout;
  made.limits.connections_per_origin_max = is_for_streams ? 1 : options.connections_max;
  if (is_for_streams) made.limits.body_timeout = std::chrono::hours(24 * 365);
  return made;
}

class HttpStream final : public AnswerStream {
 public:
  explicit HttpStream(http::ClientResponse response) : response_(std::move(response)) {}

  [[nodiscard]] int status() const noexcept override { return response_.status(); }

  Task<Result<std::optional<std::string>>> next() override {
    while (true) {
      if (std::optional<std::string> line = take_line()) co_return line;
      if (unread_.size() > HttpTransport::kLineBytesMax) {
        co_return std::unexpected(make_error_code(http::Error::body_too_large));
      }
      Result<std::size_t> count = co_await response_.body().read_some(buffer_);
      if (!count) co_return std::unexpected(count.error());
      if (*count == 0) co_return std::nullopt;
      unread_.append(reinterpret_cast<const char*>(buffer_.data()), *count);
    }
  }

 private:
  std::optional<std::string> take_line() {
    const std::size_t end = unread_.find('\n', searched_);
    searched_ = unread_.size();
    if (end == unread_.npos) return std::nullopt;
    std::string line = unread_.substr(0, end);
    unread_.erase(0, end + 1);
    searched_ = 0;
    return line;
  }

  http::ClientResponse response_;
  std::array<std::byte, 16 * 1024> buffer_;
  std::string unread_;
  std::size_t searched_ = 0;  // of unread_: there is no line's end in it
};

}  // namespace

HttpTransport::HttpTransport(const EtcdOptions& options)
    : calls_(client_options(options, false)), streams_(client_options(options, true)) {
  for (const http::Endpoint& each : options.endpoints) {
    std::string text = std::string(http::to_string(each.scheme)) + "://" + each.authority() + "/";
    members_.push_back(or_throw(http::Url::parse(text)));
  }
}

http::ClientRequest HttpTransport::request(std::size_t member, Question question) const {
  http::HeaderLines headers;
  headers.add("content-type", "application/json");
  if (!question.token.empty()) headers.add("authorization", question.token);
  return http::ClientRequest(http::Method::post, or_throw(members_[member].resolve(question.path)),
                             std::move(headers), http::RequestBody(std::move(question.json)));
}

Task<Result<Answer>> HttpTransport::call(std::size_t member, Question question) {
  http::ClientRequest asked = request(member, std::move(question));
  Result<http::ClientResponse> response = co_await calls_.request(std::move(asked));
  if (!response) co_return std::unexpected(response.error());
  Result<std::string> body = co_await response->body().read_all();
  if (!body) co_return std::unexpected(body.error());
  Answer answer;
  answer.status = response->status();
  answer.json = std::move(*body);
  co_return answer;
}

Task<Result<std::unique_ptr<AnswerStream>>> HttpTransport::stream(std::size_t member,
                                                                  Question question) {
  http::ClientRequest asked = request(member, std::move(question));
  Result<http::ClientResponse> response = co_await streams_.request(std::move(asked));
  if (!response) co_return std::unexpected(response.error());
  co_return std::make_unique<HttpStream>(std::move(*response));
}

}  // namespace weft::inline v0::durable::etcd
