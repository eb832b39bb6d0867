// SPDX-License-Identifier: MIT
// Twenty clients in five processes, each with an engine and so a session of its own, contend, by durable::Mutex, for a lock in an etcd of three
// members, while members are killed and restarted, cut off from each other, from their clients, or from both, and clients are stopped and killed.
// What they did is recorded, and checked (support/lock_history.h).
//
// WEFT_STRESS_SECONDS says for how long (script/test torture: five minutes); WEFT_SEED names a run.
#include "support/etcd_network.h"
#include "support/lock_contender.h"

namespace {

using namespace std::chrono_literals;
using namespace weft;
using namespace weft::test;

constexpr std::size_t kProcesses = 5;
constexpr unsigned kTasks = 4;
constexpr std::chrono::milliseconds kLease{3000};

class EtcdTorture : public Torture {
 protected:
  struct Figures {
    std::size_t kills = 0, restarts = 0, partitions = 0, majorities_lost = 0;
  };

  // One thing after another, for a while each; healed afterwards.
  Task<void> torment(EtcdNetwork& etcd, Contenders& clients, std::chrono::nanoseconds how_long) {
    Random random = this->random(3);
    TimePoint begun = now();
    while (now() - begun < how_long && clients.all_alive()) {
      co_await sleep_for(random.below(1500) * 1ms);
      std::size_t victim = random.below(EtcdNetwork::kMembers);
      if (random.one_in(2)) {
        if (std::optional<std::size_t> leads = co_await etcd.leader()) victim = *leads;
      }
      auto for_a_while = (200 + random.below(3500)) * 1ms;
      switch (random.below(8)) {
        case 0:
        case 1:
          co_await kill_and_restart(etcd, victim, for_a_while);
          break;
        case 2:
          co_await partition(etcd, victim, true, true, for_a_while);
          break;
        case 3:  // its clients believe it for a while yet
          co_await partition(etcd, victim, true, false, for_a_while);
          break;
        case 4:
          co_await partition(etcd, victim, false, true, for_a_while);
          break;
        case 5: {  // no majority
          ++figures_.majorities_lost;
          std::size_t second = (victim + 1) % EtcdNetwork::kMembers;
          co_await all_of(kill_and_restart(etcd, victim, for_a_while),
                          partition(etcd, second, true, random.one_in(2), for_a_while));
          break;
        }
        case 6:
          co_await clients.replace(clients.any());
          break;
        case 7:  // for longer than the lease, now and then
          co_await clients.pause(clients.any(), kLease / 4 * random.below(8));
          break;
      }
    }
    EXPECT_TRUE(etcd.all_run()) << "a member has ended by itself";
  }
  Task<void> kill_and_restart(EtcdNetwork& etcd, std::size_t which, std::chrono::nanoseconds gone) {
    co_await etcd.kill(which);
    ++figures_.kills;
    co_await sleep_for(gone);
    etcd.start(which);
    ++figures_.restarts;
  }
  Task<void> partition(EtcdNetwork& etcd, std::size_t which, bool members, bool clients,
                       std::chrono::nanoseconds for_so_long) {
    if (members) co_await etcd.cut(which, EtcdNetwork::to_members);
    if (clients) co_await etcd.cut(which, EtcdNetwork::to_clients);
    ++figures_.partitions;
    co_await sleep_for(for_so_long);
    if (members) co_await etcd.mend(which, EtcdNetwork::to_members);
    if (clients) co_await etcd.mend(which, EtcdNetwork::to_clients);
  }

  Figures figures_;
};

TEST_F(EtcdTorture, NoTwoHoldersAndNoLostUpdateWhateverBecomesOfTheMembers) {
  if (const char* role = role_of_this_process()) return LockContender(role).run();
  if (run_as_root_of_its_own()) return;
  TemporaryDirectory directory;
  EtcdNetwork etcd;
  ContenderOptions options{.url = EtcdNetwork::url(),
                           .history = directory.file("history"),
                           .lease = kLease,
                           .tasks = kTasks,
                           .engine_each = true};
  FencedRegister number(options.history);
  EventLoop loop;
  auto inside = [&](Nursery& nursery) -> Task<NurseryEnd> {
    auto there = [&](ProcessOptions& process, std::size_t) { etcd.at_clients(process); };
    Contenders clients(nursery, number, options, random(2), there);
    clients.start(kProcesses);
    bool begun = co_await clients.all_get_through(60s);
    EXPECT_TRUE(begun) << "they do not come to begin";
    if (begun) co_await torment(etcd, clients, torture_time(15s));
    bool through = co_await clients.all_get_through(60s);
    EXPECT_TRUE(through) << "somebody gets nothing any more";
    co_await clients.end_all();
    std::printf(
        "[ TORTURE  ] %zu clients: members %zu times killed, %zu restarted, %zu times cut off, %zu "
        "times no majority; "
        "clients %zu killed, %zu paused\n",
        kProcesses * kTasks, figures_.kills, figures_.restarts, figures_.partitions,
        figures_.majorities_lost, clients.kills, clients.pauses);
    co_return cancel;
  };
  auto root = [&]() -> Task<void> { co_await with_nursery(inside); };
  run(loop, root());
  HistoryCheck check = check_history(read_history(options.history));
  expect_right(check);
  EXPECT_GE(check.updates, 20u);
}

}  // namespace
