// SPDX-License-Identifier: MIT
#include "weft/durable/mutex.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "durable/engine_state.h"
#include "weft/core/moving.h"

namespace weft::inline v0::durable {

namespace {

using Duration = MutexOptions::Duration;

// "host program[pid]".
std::string this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return as_owner(std::string(host.data()) + " " + program_invocation_short_name + "[" +
                  std::to_string(::getpid()) + "]");
}

// It is printed to terminals, and ends lines in nobody's table.
bool is_control(char byte) noexcept { return (byte >= 0 && byte < ' ') || byte == 0x7f; }

LockResult<> check(const MutexOptions& options) {
  auto invalid = [](std::string why) {
    return std::unexpected(LockError(LockError::invalid, std::move(why)));
  };
  const std::string& name = options.resource_id;
  if (name.empty()) return invalid("resource_id is empty: name what is to be protected");
  if (name.size() > MutexOptions::kResourceIdMax) {
    return invalid("resource_id has " + std::to_string(name.size()) + " bytes; " +
                   std::to_string(MutexOptions::kResourceIdMax) +
                   " are the most: use a hash of it");
  }
  if (name.find('\0') != name.npos) return invalid("resource_id has a NUL byte");
  if (options.owner.size() > MutexOptions::kOwnerBytesMax) {
    return invalid("owner has " + std::to_string(options.owner.size()) + " bytes; " +
                   std::to_string(MutexOptions::kOwnerBytesMax) +
                   " are the most: as_owner() cuts it");
  }
  if (std::ranges::any_of(options.owner, is_control))
    return invalid("owner has a control character: as_owner() replaces it");
  struct Time {
    const char* name;
    Duration value;
  };
  for (Time time :
       {Time{"lease", options.lease}, Time{"acquire_timeout", options.acquire_timeout},
        Time{"max_hold", options.max_hold}, Time{"idle_timeout", options.idle_timeout}}) {
    if (time.value <= Duration::zero()) return invalid(std::string(time.name) + " is not positive");
  }
  if (options.lease < MutexOptions::kLeaseMin || options.lease > MutexOptions::kLeaseMax) {
    return invalid(
        "lease is 10 ms at least and 24 h at most: it is how long others wait for a holder that "
        "has died");
  }
  if (options.fair_bound == 0 || options.fair_bound > MutexOptions::kFairBoundMax) {
    return invalid("fair_bound is 1 at least and " + std::to_string(MutexOptions::kFairBoundMax) +
                   " at most");
  }
  return {};
}

// Checks them, and that the store has the resource.
Task<LockResult<>> prepare(std::shared_ptr<detail::EngineState> engine, MutexOptions& options,
                           std::uint32_t capacity) {
  LockResult<> checked = check(options);
  if (!checked) co_return checked;
  if (options.owner.empty()) options.owner = this_process();
  co_return co_await on(engine->home(), engine->join(options, capacity));
}

}  // namespace

std::string as_owner(std::string text) {
  if (text.size() > MutexOptions::kOwnerBytesMax) {
    std::size_t end = MutexOptions::kOwnerBytesMax;
    auto is_inside = [&](std::size_t at) { return (text[at] & 0xc0) == 0x80; };  // of a UTF-8 one
    while (end > 0 && is_inside(end)) --end;
    text.resize(end);
  }
  std::ranges::replace_if(text, is_control, '?');
  return text;
}

Mutex::Mutex(std::shared_ptr<detail::EngineState> engine, MutexOptions options)
    : engine_(std::move(engine)),
      options_(std::make_shared<const MutexOptions>(std::move(options))) {}

Task<LockResult<Mutex>> Mutex::open(Engine& engine, MutexOptions options) {
  std::shared_ptr<detail::EngineState> state = engine.state();
  LockResult<> ready = co_await prepare(state, options, detail::kWhole);
  if (!ready) co_return std::unexpected(ready.error());
  co_return Mutex(std::move(state), std::move(options));
}

Task<LockResult<std::size_t>> Mutex::force_kill() const {
  return detail::revoke(engine_, resource_id());
}

Task<LockResult<std::size_t>> Semaphore::force_kill() const {
  return detail::revoke(engine_, resource_id());
}

Semaphore::Semaphore(std::shared_ptr<detail::EngineState> engine, SemaphoreOptions options)
    : engine_(std::move(engine)),
      options_(std::make_shared<const MutexOptions>(options)),
      permits_(options.permits) {}

Task<LockResult<Semaphore>> Semaphore::open(Engine& engine, SemaphoreOptions options) {
  if (options.permits == 0 || options.permits >= detail::kWhole) {
    co_return std::unexpected(
        LockError(LockError::invalid, "permits is 1 at least, and less than 2^30"));
  }
  std::shared_ptr<detail::EngineState> state = engine.state();
  LockResult<> ready = co_await prepare(state, options, options.permits);
  if (!ready) co_return std::unexpected(ready.error());
  co_return Semaphore(std::move(state), std::move(options));
}

}  // namespace weft::inline v0::durable
