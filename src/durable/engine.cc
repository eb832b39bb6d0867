// SPDX-License-Identifier: MIT
#include "weft/durable/engine.h"

#include "durable/engine_state.h"
#include "weft/core/moving.h"

namespace weft::inline v0::durable {

Engine::Engine(std::unique_ptr<LockStore> store)
    : state_(std::make_shared<detail::EngineState>(std::move(store))) {}
Engine::~Engine() { state_->drop_store(); }

Task<LockResult<>> Engine::open(Nursery& nursery) { return state_->open(nursery); }
Task<void> Engine::drain() { return state_->drain(); }
Task<void> Engine::close() { return state_->close(); }

Task<LockResult<std::vector<ResourceReport>>> Engine::report(std::optional<std::string> resource) {
  std::shared_ptr<detail::EngineState> state = state_;
  co_return co_await on(state->home(), state->report(std::move(resource)));
}

Task<LockResult<std::size_t>> Engine::revoke(std::string resource) {
  return detail::revoke(state_, std::move(resource));
}

Task<LockResult<std::size_t>> detail::revoke(std::shared_ptr<EngineState> engine,
                                             std::string resource) {
  co_return co_await on(engine->home(), engine->revoke(resource));
}

LockStatistics Engine::statistics() const { return state_->statistics(); }
std::size_t Engine::workflows() const noexcept { return state_->workflows(); }
std::string Engine::url() const { return state_->url(); }

}  // namespace weft::inline v0::durable
