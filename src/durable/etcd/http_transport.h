// SPDX-License-Identifier: MIT
#pragma once
// durable::etcd::HttpTransport: etcd's JSON gateway (etcd 3.4 and later: /v3/…) over our HTTP/1.1 client.
//
// Connections are bounded: EtcdOptions::connections_max per member for calls, and those of the streams that are open.
// A proxy of the environment is not asked.
#include <vector>

#include "durable/etcd/etcd_options.h"
#include "durable/etcd/etcd_transport.h"
#include "weft/http/client.h"

namespace weft::inline v0::durable::etcd {

class HttpTransport final : public Transport {
 public:
  static constexpr std::size_t kLineBytesMax = std::size_t{64} << 20;

  explicit HttpTransport(const EtcdOptions& options);
  Task<Result<Answer>> call(std::size_t member, Question question) override;
  Task<Result<std::unique_ptr<AnswerStream>>> stream(std::size_t member,
                                                     Question question) override;

 private:
  [[nodiscard]] http::ClientRequest request(std::size_t member, Question question) const;

  std::vector<http::Url> members_;
  http::Client calls_;
  http::Client streams_;  // which may be quiet for hours
};

}  // namespace weft::inline v0::durable::etcd
