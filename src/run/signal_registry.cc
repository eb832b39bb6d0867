// SPDX-License-Identifier: MIT
#include "signal_registry.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "weft/base/assert.h"
#include "weft/base/eventfd.h"
#include "weft/base/unique_fd.h"

namespace weft::inline v0::detail {

namespace {

constexpr int kSignals = 64;
static_assert(Atomic<SignalBits>::is_always_lock_free && Atomic<SignalEntry*>::is_always_lock_free,
              "a signal handler reads them");

constexpr SignalBits bit_of(int signal) { return SignalBits{1} << (signal - 1); }

// Entries of one kind. The list only grows (S1).
struct SignalList {
  Atomic<SignalEntry*> all{nullptr};
  SignalEntry* free = nullptr;  // under the lock

  SignalEntry* take() noexcept {
    SignalEntry* entry = free;
    if (entry) free = entry->next_free;
    return entry;
  }
  void give_back(SignalEntry& entry) noexcept { entry.next_free = std::exchange(free, &entry); }
  void add(SignalEntry& entry) noexcept {
    entry.next = all.load(relaxed);
    all.store(&entry, release);  // to the handler. [pairs with H]
  }
};

constinit SignalList sets;
constinit SignalList contexts;

// Never destroyed: a set may be, after main().
std::mutex& registry_mutex() {
  alignas(std::mutex) static std::byte storage[sizeof(std::mutex)];
  static auto* mutex = new (storage) std::mutex;
  return *mutex;
}

// What was in force before us, and how many entries want it. Under the lock.
struct Installed {
  unsigned users = 0;
  struct sigaction before;
};
constinit Installed installed[kSignals + 1] = {};

// --- The handler --------------------------------------------------------------------------------

void tell(SignalEntry& entry, SignalBits bit) noexcept {
  entry.came.fetch_or(bit, release);  // [pairs with the acquire of who looks]
  ring_eventfd(entry.fd);
}

bool tell_sets(SignalBits bit) noexcept {
  bool any = false;
  for (SignalEntry* set = sets.all.load(acquire); set; set = set->next) {  // H
    if (!(set->wanted.load(acquire) & bit)) continue;
    any = true;
    tell(*set, bit);
  }
  return any;
}

extern "C" void weft_signal_came(int signal) {
  int kept_errno = errno;
  SignalBits bit = bit_of(signal);
  if (!tell_sets(bit)) {  // S3
    bool stopping = false;
    for (SignalEntry* each = contexts.all.load(acquire); each; each = each->next) {  // H
      if (!(each->wanted.load(acquire) & bit)) continue;
      if (each->came.load(relaxed) != 0) stopping = true;
      tell(*each, bit);
    }
    if (stopping && signal == SIGINT) {
      // Whoever presses Ctrl-C again does not want to wait. It is delivered when we return.
      struct sigaction action = {};
      action.sa_handler = SIG_DFL;
      ::sigaction(SIGINT, &action, nullptr);
      ::raise(SIGINT);
    }
  }
  errno = kept_errno;
}

// --- Dispositions. Under the lock ---------------------------------------------------------------

bool is_ours(int signal) noexcept {
  struct sigaction now;
  return ::sigaction(signal, nullptr, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
         now.sa_handler == &weft_signal_came;
}

// Returns: 0, or the errno.
int install(int signal) noexcept {
  Installed& at = installed[signal];
  if (at.users == 0) {
    struct sigaction action = {};
    action.sa_handler = &weft_signal_came;
    // All signals wait until it is done: two of them would not do harm, but be hard to think of.
    sigfillset(&action.sa_mask);
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    if (::sigaction(signal, &action, &at.before) != 0) return errno;
  }
  ++at.users;
  return 0;
}

void uninstall(int signal) noexcept {
  Installed& at = installed[signal];
  if (--at.users > 0) return;
  // S2: what somebody has installed over ours is theirs to take away.
  if (is_ours(signal)) ::sigaction(signal, &at.before, nullptr);
}

void uninstall_all(SignalBits wanted) noexcept {
  for (int signal = 1; signal <= kSignals; ++signal) {
    if (wanted & bit_of(signal)) uninstall(signal);
  }
}

// Returns: whether the signal would end the process, if nobody listened.
bool is_default(int signal) noexcept {
  struct sigaction now;
  if (is_ours(signal) && installed[signal].users > 0) {
    now = installed[signal].before;
  } else if (::sigaction(signal, nullptr, &now) != 0) {
    return false;
  }
  return !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL;
}

SignalBits checked(std::initializer_list<int> signals) {
  SignalBits wanted = 0;
  for (int signal : signals) {
    if (signal < 1 || signal > kSignals) {
      throw std::system_error(EINVAL, std::generic_category(), "signal " + std::to_string(signal));
    }
    if (signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL) {
      throw_usage_error(
          "a SignalSet has no SIGSEGV, SIGBUS, SIGFPE or SIGILL: the instruction that raised one "
          "cannot go on, and so nobody can wait for it");
    }
    wanted |= bit_of(signal);
  }
  return wanted;
}

void begin(SignalEntry& entry, SignalBits wanted) noexcept {
  entry.came.store(0, relaxed);
  entry.wanted.store(wanted, release);
}

}  // namespace

SignalEntry& SignalRegistry::listen(std::initializer_list<int> signals) {
  SignalBits wanted = checked(signals);
  std::lock_guard lock(registry_mutex());
  SignalEntry* entry = sets.take();
  if (!entry) {
    UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd) throw std::system_error(errno, std::generic_category(), "eventfd");
    entry = new SignalEntry;
    entry->fd = fd.release();
    sets.add(*entry);
  }
  begin(*entry, wanted);  // before the handler is there, so that the first one counts
  SignalBits done = 0;
  for (int signal = 1; signal <= kSignals; ++signal) {
    if (!(wanted & bit_of(signal))) continue;
    if (int error = install(signal)) {
      uninstall_all(done);
      entry->wanted.store(0, relaxed);
      sets.give_back(*entry);
      throw std::system_error(error, std::generic_category(),
                              "listening to signal " + std::to_string(signal));
    }
    done |= bit_of(signal);
  }
  return *entry;
}

void SignalRegistry::leave(SignalEntry& set) noexcept {
  std::lock_guard lock(registry_mutex());
  uninstall_all(set.wanted.load(relaxed));
  set.wanted.store(0, relaxed);
  sets.give_back(set);
}

SignalEntry* SignalRegistry::listen_to_stop(int wake_fd) noexcept {
  std::lock_guard lock(registry_mutex());
  SignalBits wanted = 0;
  for (int signal : {SIGINT, SIGTERM}) {
    if (is_default(signal)) wanted |= bit_of(signal);
  }
  if (!wanted) return nullptr;
  SignalEntry* entry = contexts.take();
  if (entry) {
    // S1: the number stays, and means another loop's wake-up from now on.
    if (::dup3(wake_fd, entry->fd, O_CLOEXEC) < 0) {
      contexts.give_back(*entry);
      return nullptr;
    }
  } else {
    UniqueFd fd(::fcntl(wake_fd, F_DUPFD_CLOEXEC, 0));
    entry = fd ? new (std::nothrow) SignalEntry : nullptr;
    if (!entry) return nullptr;
    entry->fd = fd.release();
    contexts.add(*entry);
  }
  begin(*entry, wanted);
  for (int signal : {SIGINT, SIGTERM}) {
    if (wanted & bit_of(signal)) static_cast<void>(install(signal));  // it is a signal: no error
  }
  return entry;
}

void SignalRegistry::leave_stop(SignalEntry& context) noexcept {
  std::lock_guard lock(registry_mutex());
  uninstall_all(context.wanted.load(relaxed));
  context.wanted.store(0, relaxed);
  contexts.give_back(context);
}

}  // namespace weft::inline v0::detail
