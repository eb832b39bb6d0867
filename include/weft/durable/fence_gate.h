// SPDX-License-Identifier: MIT
#pragma once
// weft::durable::FenceGate, FencedUpdate: the few lines by which a resource refuses who held its lock before somebody else did.
//
//     FenceGate gate;                                            // where the resource is, not where its users are
//     if (!gate.admit("orders/42", token)) return refused;       // somebody with a greater token was here
//
// A lease ends while its holder is paused, and the holder does not know; its lock is another's then, and it goes on writing. No
// lock service can prevent that. The resource can: it remembers the greatest token that it has seen, and refuses smaller ones.
// Equal ones are admitted: a holder writes as often as it likes.
//
// Admission and the write are one step, or a greater token comes between them. On one loop: no co_await between the two. With
// threads: give admit() the write.
//
//     bool written = gate.admit("orders/42", token, [&] { file.write(order); });
//
// A gate in memory forgets when its process ends; then, for the first who comes, there is no greater token. A resource that outlives
// its process keeps the token with its data:
//
//     FencedUpdate update{.table = "orders", .assignments = "state = ?", .where = "id = ?"};
//     update.sql();     // UPDATE orders SET state = ?, fencing_token = ? WHERE (id = ?) AND fencing_token <= ?
//
// Threads        FenceGate: any. FencedUpdate: a value.
// Errors         what the write throws passes through; its token counts as seen.
// Allocation     an entry for each resource. FenceGate::kResourcesMax of them unless told otherwise: beyond that what is not known is
//                refused, because what was forgotten could not be.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace weft::inline v0::durable {

class FenceGate {
 public:
  static constexpr std::size_t kResourcesMax = std::size_t{1} << 16;

  explicit FenceGate(std::size_t resources_max = kResourcesMax) : resources_max_(resources_max) {}
  FenceGate(const FenceGate&) = delete;
  FenceGate& operator=(const FenceGate&) = delete;

  // Returns: whether no greater token of the resource was admitted before.
  [[nodiscard]] bool admit(std::string_view resource, std::uint64_t token) {
    return admit(resource, token, [] {});
  }
  // The same, and write() if so, before anybody else is admitted. It should be short, and must not use the gate.
  template <std::invocable<> Write>
  [[nodiscard]] bool admit(std::string_view resource, std::uint64_t token, Write&& write) {
    std::lock_guard lock(mutex_);
    if (!note(resource, token)) return false;
    std::invoke(std::forward<Write>(write));
    return true;
  }
  // Of one that is gone for ever, and whose name is not used again.
  void forget(std::string_view resource) {
    std::lock_guard lock(mutex_);
    if (auto place = greatest_.find(resource); place != greatest_.end()) greatest_.erase(place);
  }
  // 0: nobody was admitted yet.
  [[nodiscard]] std::uint64_t greatest(std::string_view resource) const {
    std::lock_guard lock(mutex_);
    auto place = greatest_.find(resource);
    return place == greatest_.end() ? 0 : place->second;
  }

 private:
  bool note(std::string_view resource, std::uint64_t token) {
    auto place = greatest_.find(resource);
    if (place == greatest_.end()) {
      if (greatest_.size() >= resources_max_) return false;
      place = greatest_.emplace(resource, token).first;
    }
    if (token < place->second) return false;
    place->second = token;
    return true;
  }

  mutable std::mutex mutex_;
  const std::size_t resources_max_;
  std::map<std::string, std::uint64_t, std::less<>> greatest_;
};

// A change of rows that have the greatest token seen in a column of their own: NOT NULL DEFAULT 0, of 64 bits. The condition and
// the change are one statement, so nothing comes between them.
//
// Parameters     those of `assignments`, the token, those of `where`, the token again; or, where parameters have names or
//                numbers (:token, $3), the token once.
// Afterwards     no row was changed: refused, or there is none. A row that is deleted forgets; let it outlive its holders.
//
// The texts are the program's own, never its users': nothing is quoted.
struct FencedUpdate {
  std::string table{};
  std::string assignments{};  // "state = ?, changed = ?"; may be empty: the token alone
  std::string where{};        // "id = ?"; may be empty: every row
  std::string column = "fencing_token";
  std::string token = "?";  // as its parameter is written

  [[nodiscard]] std::string condition() const { return column + " <= " + token; }
  [[nodiscard]] std::string sql() const {
    std::string text = "UPDATE " + table + " SET ";
    if (!assignments.empty()) text += assignments + ", ";
    text += column + " = " + token + " WHERE ";
    if (!where.empty()) text += "(" + where + ") AND ";
    return text + condition();
  }
};

}  // namespace weft::inline v0::durable
