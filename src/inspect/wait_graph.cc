// SPDX-License-Identifier: MIT
#include "wait_graph.h"

#include <algorithm>
#include <unordered_map>

namespace weft::inline v0::inspect::detail {

namespace {

using Edges = std::vector<std::vector<std::size_t>>;

Edges edges_of(const std::vector<Wait>& waits) {
  std::unordered_map<TaskName, std::vector<std::size_t>> blocking;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    for (const Wait::Blocked& each : waits[i].blocked) blocking[each.task].push_back(i);
  }
  Edges edges(waits.size());
  for (std::size_t i = 0; i < waits.size(); ++i) {
    auto found = blocking.find(waits[i].holder);
    if (found == blocking.end()) continue;
    for (std::size_t next : found->second) {
      if (leads_to(waits[i], waits[next])) edges[i].push_back(next);
    }
  }
  return edges;
}

enum class Mark : unsigned char { fresh, on_path, done };

struct Step {
  std::size_t wait;
  std::size_t edge;  // the next to be tried
};

}  // namespace

bool leads_to(const Wait& wait, const Wait& next) {
  return std::any_of(next.blocked.begin(), next.blocked.end(), [&](const Wait::Blocked& each) {
    return each.task == wait.holder && (wait.holder_home == 0 || each.home == wait.holder_home);
  });
}

// Depth first, with a path of its own instead of the stack: chains of waits are as long as they like.
std::vector<std::vector<std::size_t>> find_circles(const std::vector<Wait>& waits) {
  const Edges edges = edges_of(waits);
  std::vector<Mark> marks(waits.size(), Mark::fresh);
  std::vector<std::vector<std::size_t>> circles;
  std::vector<Step> path;
  auto leave = [&] {
    marks[path.back().wait] = Mark::done;
    path.pop_back();
  };
  for (std::size_t start = 0; start < waits.size(); ++start) {
    if (marks[start] != Mark::fresh) continue;
    path.push_back({start, 0});
    marks[start] = Mark::on_path;
    while (!path.empty()) {
      Step& last = path.back();
      if (last.edge == edges[last.wait].size()) {
        leave();
        continue;
      }
      const std::size_t next = edges[last.wait][last.edge++];
      if (marks[next] == Mark::fresh) {
        marks[next] = Mark::on_path;
        path.push_back({next, 0});
      } else if (marks[next] == Mark::on_path) {
        std::vector<std::size_t>& circle = circles.emplace_back();
        do {
          circle.push_back(path.back().wait);
          leave();
        } while (circle.back() != next);
        std::reverse(circle.begin(), circle.end());
      }
    }
  }
  return circles;
}

}  // namespace weft::inline v0::inspect::detail
