// SPDX-License-Identifier: MIT
// weft lock ls, show, revoke: who holds, who waits, and an end to it.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "lock.h"
#include "table.h"
#include "weft/durable/engine.h"
#include "weft/durable/look.h"
#include "weft/run/event_loop.h"

namespace weft::tool {
namespace {

using durable::LockResult;
using durable::ResourceReport;
using durable::TicketReport;

struct Settings {
  std::string name;
  std::optional<std::string> engine;
};

durable::StoreView look(const Settings& settings) {
  std::optional<std::string> name;
  if (!settings.name.empty()) name = settings.name;
  EventLoop loop;
  LockResult<durable::StoreView> seen =
      run(loop, durable::look(lock_engine(settings.engine, OwnFile::as_it_is), std::move(name)));
  if (!seen) fail(seen.error(), settings.name);
  return std::move(*seen);
}

// So that a slip in --engine does not look like peace.
std::string without_store(const Settings& settings) {
  return ": there is no " + printable(lock_engine(settings.engine, OwnFile::as_it_is)) + " yet\n";
}

// Long enough to tell, short enough for a column.
std::string brief(std::chrono::nanoseconds time) {
  auto seconds = std::chrono::duration<double>(time).count();
  std::array<char, 32> text{};
  if (seconds < 0) return "ended";
  if (seconds < 60) {
    std::snprintf(text.data(), text.size(), "%.1f s", seconds);
  } else if (seconds < 3600) {
    std::snprintf(text.data(), text.size(), "%.1f min", seconds / 60);
  } else {
    std::snprintf(text.data(), text.size(), "%.1f h", seconds / 3600);
  }
  return text.data();
}

// All of it, or a part beside others.
std::string how_of(const ResourceReport& resource, const TicketReport& ticket) {
  bool whole = ticket.weight == resource.capacity;
  if (ticket.granted) return whole ? "holds" : "shares";
  return whole ? "waits" : "waits to share";
}

struct Counts {
  std::size_t granted = 0, waiting = 0;
};
Counts count(const ResourceReport& resource) {
  Counts counts;
  for (const TicketReport& each : resource.tickets)
    ++(each.granted ? counts.granted : counts.waiting);
  return counts;
}

// Returns: false if the help was asked for, and printed.
bool read(const CommandLine& line, Words words) {
  if (line.read(words)) return true;
  std::fputs(line.help().c_str(), stdout);
  return false;
}

}  // namespace

int list_locks(Words words) {
  Settings settings;
  CommandLine line("weft lock ls", "Lists the locks that somebody holds or waits for.");
  line.option(0, "engine", lock_engine_help(), text("URL", settings.engine));
  if (!read(line, words)) return kDone;

  durable::StoreView seen = look(settings);
  if (!seen.exists) {
    std::fputs(("there are no locks" + without_store(settings)).c_str(), stdout);
    return kDone;
  }
  Table table({"NAME", "HOLDERS", "WAITING", "TOKEN", "AGE", "LEASE LEFT", "FIRST OWNER"});
  for (const ResourceReport& resource : seen.resources) {
    if (resource.tickets.empty()) continue;
    Counts counts = count(resource);
    const TicketReport& first = resource.tickets.front();
    table.add({resource.resource, std::to_string(counts.granted), std::to_string(counts.waiting),
               first.granted ? std::to_string(first.token) : "-", brief(first.age),
               brief(first.lease_left), first.owner});
  }
  std::fputs(table.text().c_str(), stdout);
  return kDone;
}

int show_lock(Words words) {
  Settings settings;
  CommandLine line("weft lock show", "Shows who holds a lock, and who waits for it, in order.");
  line.operand("of the lock", text("NAME", settings.name));
  line.option(0, "engine", lock_engine_help(), text("URL", settings.engine));
  line.note("AGE: since it waits, or since it holds; on etcd since it came, by its own clock.");
  line.note("TOKEN: the first that its process was given; a library that hands the lock on");
  line.note("among its tasks gives out greater ones, up to the next holder's. A lease that has");
  line.note("ended is of one who died or is paused: the next one who asks gets the lock.");
  if (!read(line, words)) return kDone;

  Table table({"HOW", "TOKEN", "AGE", "LEASE LEFT", "OWNER"});
  durable::StoreView seen = look(settings);
  for (const ResourceReport& resource : seen.resources) {
    for (const TicketReport& each : resource.tickets) {
      table.add({how_of(resource, each), each.granted ? std::to_string(each.token) : "-",
                 brief(each.age), brief(each.lease_left), each.owner});
    }
  }
  if (table.rows() == 0) {
    std::printf("nobody holds '%s' or waits for it%s", printable(settings.name).c_str(),
                seen.exists ? "\n" : without_store(settings).c_str());
  } else {
    std::fputs(table.text().c_str(), stdout);
  }
  return kDone;
}

int revoke_lock(Words words) {
  Settings settings;
  CommandLine line("weft lock revoke", "Takes a lock away from all who hold it or wait for it.");
  line.operand("of the lock", text("NAME", settings.name));
  line.option(0, "engine", lock_engine_help(), text("URL", settings.engine));
  line.note("Who holds it is told, and stops its command. One that cannot hear it goes on:");
  line.note("only what checks its token keeps it out.");
  if (!read(line, words)) return kDone;

  auto revoke = [&](durable::Engine& engine) { return engine.revoke(settings.name); };
  EventLoop loop;
  LockResult<LockResult<std::size_t>> ended =
      run(loop, durable::with_engine(lock_engine(settings.engine), revoke));
  if (!ended) fail(ended.error(), settings.name);
  if (!*ended) fail(ended->error(), settings.name);
  std::printf("%zu held '%s' or waited for it\n", **ended, printable(settings.name).c_str());
  return kDone;
}

}  // namespace weft::tool
