// SPDX-License-Identifier: MIT
#include "weft/durable/look.h"

#include <utility>

#include "weft/durable/engine.h"
#if WEFT_HAS_SQLITE
#include "durable/sqlite/sqlite_look.h"
#endif

namespace weft::inline v0::durable {

namespace {

using Reports = std::vector<ResourceReport>;

Task<LockResult<StoreView>> ask_engine(std::string url, std::optional<std::string> resource) {
  auto body = [&](Engine& engine) -> Task<LockResult<Reports>> { return engine.report(resource); };
  LockResult<LockResult<Reports>> answer = co_await with_engine(std::move(url), body);
  if (!answer) co_return std::unexpected(answer.error());
  if (!*answer) co_return std::unexpected(answer->error());
  co_return StoreView{true, std::move(**answer)};
}

}  // namespace

Task<LockResult<StoreView>> look(std::string url, std::optional<std::string> resource) {
#if WEFT_HAS_SQLITE
  if (url.starts_with("sqlite:")) return detail::look_at_file(std::move(url), std::move(resource));
#endif
  return ask_engine(std::move(url), std::move(resource));
}

}  // namespace weft::inline v0::durable
