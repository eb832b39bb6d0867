// SPDX-License-Identifier: MIT
// Every operation of streams and datagrams: its value, the end, its errors.
#include <sys/inotify.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <thread>

#include "driver_fixture.h"
#include "support/temporary_directory.h"

namespace {

using namespace weft;
using namespace weft::test;

struct Streams : DriverTest {};
WEFT_ON_EVERY_DRIVER(Streams);

// Some of it, that is, and all of it unless chaos is asked for.
TEST_P(Streams, ReadReturnsWhatIsThere) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    put(pair.theirs, "already");
    std::string text = co_await read_text(pair.ours);
    EXPECT_GE(text.size(), detail::Chaos::enabled() ? 1u : 7u);
    text += co_await read_exactly(pair.ours, 7 - text.size());
    EXPECT_EQ(text, "already");
  });
}

TEST_P(Streams, ReadWaitsForWhatComes) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    StartedTask<std::string> reader = read_at_least(pair.ours, 5).start_in_current_scope();
    co_await settle();
    EXPECT_FALSE(reader.is_done());
    put(pair.theirs, "later");
    EXPECT_EQ(co_await std::move(reader), "later");
  });
}

TEST_P(Streams, ReadTakesNoMoreThanItsBufferHolds) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    put(pair.theirs, "abcdef");
    std::string text;
    while (text.size() < 6) {
      std::array<char, 8> room;
      room.fill('.');
      auto buffer = std::as_writable_bytes(std::span(room)).first(4);
      Result<std::size_t> count = co_await pair.ours.read(buffer);
      text.append(room.data(), or_throw(count));
      EXPECT_GE(*count, 1u);
      EXPECT_LE(*count, 4u);
      EXPECT_EQ(static_cast<std::size_t>(std::count(room.begin(), room.end(), '.')), 8 - *count);
    }
    EXPECT_EQ(text, "abcdef");
    StartedTask<std::string> reader = read_text(pair.ours, 4).start_in_current_scope();
    co_await settle();
    put(pair.theirs, "ghijkl");
    text = co_await std::move(reader);
    EXPECT_GE(text.size(), 1u);
    EXPECT_LE(text.size(), 4u);
    text += co_await read_at_least(pair.ours, 6 - text.size());
    EXPECT_EQ(text, "ghijkl");
  });
}

TEST_P(Streams, TheEndIsZeroAgainAndAgain) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    put(pair.theirs, "last");
    pair.theirs.reset();
    EXPECT_EQ(co_await read_at_least(pair.ours, 4), "last");
    EXPECT_EQ(co_await read_text(pair.ours), "");
    EXPECT_EQ(co_await read_text(pair.ours), "");
  });
}

TEST_P(Streams, TheEndComesToOneWhoWaits) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    StartedTask<std::string> reader = read_text(pair.ours).start_in_current_scope();
    co_await settle();
    pair.theirs.reset();
    EXPECT_EQ(co_await std::move(reader), "");
  });
}

TEST_P(Streams, AHalfClosedPeerStillReads) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    ::shutdown(pair.theirs.get(), SHUT_WR);
    EXPECT_EQ(co_await read_text(pair.ours), "");
    co_await write_all(pair.ours, "heard?");
    EXPECT_EQ(get(pair.theirs), "heard?");
  });
}

TEST_P(Streams, PipesReadWriteAndEnd) {
  on_loop([]() -> Task<void> {
    FdPair pipe = raw_pipe();
    Descriptor in(std::move(pipe.first)), out(std::move(pipe.second));
    StartedTask<std::string> reader = read_at_least(in, 7).start_in_current_scope();
    co_await settle();
    co_await write_all(out, "through");
    EXPECT_EQ(co_await std::move(reader), "through");
    out.close();
    EXPECT_EQ(co_await read_text(in), "");
  });
}

// More than any buffer: both sides wait for each other, many times.
Task<void> pour(Descriptor& to, std::size_t bytes) {
  std::string block(100'000, '\0');
  for (std::size_t at = 0; at < bytes;) {
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>((at + i) % 251);
    std::size_t count = std::min(block.size(), bytes - at);
    co_await write_all(to, std::string_view(block).substr(0, count));
    at += count;
  }
  to.close();
}

TEST_P(Streams, AllBytesArriveInOrder) {
  on_loop([]() -> Task<void> {
    constexpr std::size_t kBytes = 4'000'000;
    for (bool piped : {false, true}) {
      FdPair fds = piped ? raw_pipe() : raw_pair();
      Descriptor in(std::move(fds.first)), out(std::move(fds.second));
      StartedTask<void> writer = pour(out, kBytes).start_in_current_scope();
      std::size_t at = 0, wrong = 0;
      for (;;) {
        std::string text = co_await read_text(in);
        if (text.empty()) break;
        for (char each : text) wrong += each != static_cast<char>(at++ % 251);
      }
      EXPECT_EQ(at, kBytes);
      EXPECT_EQ(wrong, 0u);
      co_await std::move(writer);
    }
  });
}

TEST_P(Streams, ReadvAndWritevScatterAndGather) {
  on_loop([]() -> Task<void> {
    for (bool piped : {false, true}) {
      FdPair fds = piped ? raw_pipe() : raw_pair();
      Descriptor in(std::move(fds.first)), out(std::move(fds.second));
      char to[2][3];
      const iovec targets[2] = {{to[0], 3}, {to[1], 3}};
      auto read = [&]() -> Task<std::size_t> { co_return or_throw(co_await in.readv(targets)); };
      StartedTask<std::size_t> reader = read().start_in_current_scope();
      co_await settle();
      char from[2][3] = {{'a', 'b', 'c'}, {'d', 'e', 'f'}};
      const iovec sources[2] = {{from[0], 3}, {from[1], 2}};
      Result<std::size_t> written = co_await out.writev(sources);
      EXPECT_EQ(or_throw(written), 5u);
      EXPECT_EQ(co_await std::move(reader), 5u);
      EXPECT_EQ(std::string(to[0], 3) + std::string(to[1], 2), "abcde");
      out.close();
      Result<std::size_t> end = co_await in.readv(targets);
      EXPECT_EQ(or_throw(end), 0u);
    }
  });
}

TEST_P(Streams, DatagramsKeepTheirBounds) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair(SOCK_DGRAM);
    put(pair.theirs, "one");
    put(pair.theirs, "two");
    EXPECT_EQ(co_await read_text(pair.ours), "one");
    EXPECT_EQ(co_await read_text(pair.ours), "two");
    char text[] = "three";
    iovec part{text, 5};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    Result<std::size_t> sent = co_await pair.ours.sendmsg(message);
    EXPECT_EQ(or_throw(sent), 5u);
    EXPECT_EQ(get(pair.theirs), "three");
  });
}

TEST_P(Streams, RecvmsgTellsWhoSentIt) {
  on_loop([]() -> Task<void> {
    UniqueFd socket(checked(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
    sockaddr_in here = localhost();
    socklen_t size = sizeof here;
    checked(::bind(socket.get(), &general(here), size), "bind");
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &size);
    Descriptor ours(std::move(socket));
    char buffer[16];
    iovec part{buffer, sizeof buffer};
    sockaddr_in from{};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    auto receive = [&]() -> Task<std::size_t> {
      co_return or_throw(co_await ours.recvmsg(message));
    };
    StartedTask<std::size_t> reader = receive().start_in_current_scope();
    co_await settle();
    UniqueFd theirs(checked(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
    checked(::connect(theirs.get(), &general(here), sizeof here), "connect");
    put(theirs, "hello");
    EXPECT_EQ(co_await std::move(reader), 5u);
    sockaddr_in sender{};
    ::getsockname(theirs.get(), reinterpret_cast<sockaddr*>(&sender), &size);
    EXPECT_EQ(from.sin_port, sender.sin_port);
  });
}

TEST_P(Streams, DescriptorsThatAreSentAreCloseOnExec) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    FdPair passenger = raw_pipe();
    char byte = 'x';
    iovec part{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    int number = passenger.first.get();
    std::memcpy(CMSG_DATA(header), &number, sizeof number);
    checked(static_cast<int>(::sendmsg(pair.theirs.get(), &message, 0)), "sendmsg");
    std::memset(control, 0, sizeof control);
    message.msg_controllen = sizeof control;
    Result<std::size_t> count = co_await pair.ours.recvmsg(message);
    EXPECT_EQ(or_throw(count), 1u);
    header = CMSG_FIRSTHDR(&message);
    EXPECT_NE(header, nullptr);
    if (!header) co_return;
    std::memcpy(&number, CMSG_DATA(header), sizeof number);
    UniqueFd arrived(number);
    EXPECT_TRUE(::fcntl(arrived.get(), F_GETFD) & FD_CLOEXEC);
  });
}

// --- Connections --------------------------------------------------------------------------------

Task<Descriptor> accept_one(Descriptor& listener) {
  Result<Descriptor> accepted = co_await listener.accept();
  co_return or_throw(std::move(accepted));
}

TEST_P(Streams, ConnectAndAcceptMeet) {
  on_loop([]() -> Task<void> {
    Listener listener = tcp_listener();
    StartedTask<Descriptor> acceptor = accept_one(listener.socket).start_in_current_scope();
    co_await settle();
    Descriptor client(tcp_socket());
    Result<void> connected =
        co_await client.connect(general(listener.address), sizeof(sockaddr_in));
    or_throw(connected);
    Descriptor server = co_await std::move(acceptor);
    EXPECT_TRUE(::fcntl(server.number(), F_GETFD) & FD_CLOEXEC);
    co_await write_all(client, "ping");
    EXPECT_EQ(co_await read_at_least(server, 4), "ping");
    co_await write_all(server, "pong");
    EXPECT_EQ(co_await read_at_least(client, 4), "pong");
  });
}

TEST_P(Streams, AcceptTellsWhoItIs) {
  on_loop([]() -> Task<void> {
    Listener listener = tcp_listener();
    for (int i = 0; i < 3; ++i) {
      UniqueFd client = connect_to(listener.address);
      sockaddr_in who{}, expected{};
      socklen_t size = sizeof who;
      Result<Descriptor> accepted =
          co_await listener.socket.accept(reinterpret_cast<sockaddr*>(&who), &size);
      EXPECT_TRUE(accepted.has_value());
      EXPECT_EQ(size, sizeof who);
      ::getsockname(client.get(), reinterpret_cast<sockaddr*>(&expected), &size);
      EXPECT_EQ(who.sin_port, expected.sin_port);
    }
  });
}

TEST_P(Streams, ABurstOfConnectionsIsAcceptedOneByOne) {
  on_loop([]() -> Task<void> {
    Listener listener = tcp_listener();
    StartedTask<Descriptor> first = accept_one(listener.socket).start_in_current_scope();
    co_await settle();
    std::vector<UniqueFd> clients;
    for (int i = 0; i < 200; ++i) clients.push_back(connect_to(listener.address));
    std::vector<Descriptor> servers;
    servers.push_back(co_await std::move(first));
    while (servers.size() < clients.size()) {
      servers.push_back(co_await accept_one(listener.socket));
    }
    // Each is another one, and answers.
    for (UniqueFd& client : clients) put(client, "x");
    for (Descriptor& server : servers) EXPECT_EQ(co_await read_text(server), "x");
  });
}

TEST_P(Streams, ConnectIsRefused) {
  on_loop([]() -> Task<void> {
    sockaddr_in nobody = tcp_listener().address;  // closed again
    Descriptor client(tcp_socket());
    Result<void> connected = co_await client.connect(general(nobody), sizeof nobody);
    EXPECT_TRUE(is_error(connected, std::errc::connection_refused));
  });
}

// A Unix socket says EAGAIN when the listener's queue is full, and is writable all the same.
TEST_P(Streams, ConnectToAFullUnixListenerIsNoSuccess) {
  on_loop([]() -> Task<void> {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string name = "weft-conformance-" + std::to_string(::getpid());  // abstract
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    auto* general = reinterpret_cast<sockaddr*>(&address);
    UniqueFd listener(checked(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    checked(::bind(listener.get(), general, size), "bind");
    checked(::listen(listener.get(), 0), "listen");
    UniqueFd first(checked(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    checked(::connect(first.get(), general, size), "connect");
    Descriptor second(
        UniqueFd(checked(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")));
    auto connect = [&]() -> Task<Result<void>> {
      co_return co_await second.connect(*general, size);
    };
    std::expected<Result<void>, TimedOut> early = co_await timeout(20ms, connect());
    EXPECT_FALSE(early.has_value() && early->has_value()) << "connected to whom?";
  });
}

// --- Readiness ----------------------------------------------------------------------------------

TEST_P(Streams, ReadableAndWritableWaitAndTakeNothing) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    Result<void> writable = co_await pair.ours.writable();
    EXPECT_TRUE(writable.has_value());
    auto wait = [&]() -> Task<void> { or_throw(co_await pair.ours.readable()); };
    StartedTask<void> waiter = wait().start_in_current_scope();
    co_await settle();
    EXPECT_FALSE(waiter.is_done());
    put(pair.theirs, "kept");
    co_await std::move(waiter);
    co_await wait();  // still
    EXPECT_EQ(co_await read_at_least(pair.ours, 4), "kept");
  });
}

// What the driver has accepted ahead is no longer the kernel's to tell of.
TEST_P(Streams, AListenerIsReadableWhenAnAcceptWouldNotWait) {
  on_loop([]() -> Task<void> {
    Listener listener = tcp_listener();
    auto wait = [&]() -> Task<void> { or_throw(co_await listener.socket.readable()); };
    for (bool ahead : {true, false}) {
      StartedTask<Descriptor> acceptor = accept_one(listener.socket).start_in_current_scope();
      co_await settle();
      UniqueFd first = connect_to(listener.address);
      Descriptor server = co_await std::move(acceptor);
      UniqueFd second;
      if (ahead) {
        second = connect_to(listener.address);
        co_await settle();
      }
      StartedTask<void> waiter = wait().start_in_current_scope();
      if (!ahead) {
        co_await settle();
        EXPECT_FALSE(waiter.is_done());
        waiter.cancel();
        Outcome<void> how = co_await waiter.outcome();
        EXPECT_TRUE(how.is_cancelled());
        waiter = wait().start_in_current_scope();
        co_await settle();
        second = connect_to(listener.address);
      }
      co_await std::move(waiter);
      server = co_await accept_one(listener.socket);
      put(second, "s");
      EXPECT_EQ(co_await read_text(server), "s");
    }
    auto wait_on = [&]() -> Task<Result<void>> { co_return co_await listener.socket.readable(); };
    StartedTask<Result<void>> last = wait_on().start_in_current_scope();
    co_await settle();
    listener.socket.close();
    Result<void> ready = co_await std::move(last);
    EXPECT_TRUE(is_error(ready, std::errc::bad_file_descriptor));
  });
}

TEST_P(Streams, WritableWaitsForRoom) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    std::size_t filled = fill(pair.ours.number());
    auto wait = [&]() -> Task<void> { or_throw(co_await pair.ours.writable()); };
    StartedTask<void> waiter = wait().start_in_current_scope();
    co_await settle();
    EXPECT_FALSE(waiter.is_done());
    drain(pair.theirs, filled);
    co_await std::move(waiter);
  });
}

Task<void> wait_readable(int fd) { or_throw(co_await readable(fd)); }
Task<void> wait_writable(int fd) { or_throw(co_await writable(fd)); }

TEST_P(Streams, ABorrowedDescriptorIsWaitedForBothWaysAtOnce) {
  on_loop([]() -> Task<void> {
    FdPair pair = raw_pair();
    int fd = pair.first.get();
    std::size_t filled = fill(fd);
    StartedTask<void> reader = wait_readable(fd).start_in_current_scope();
    StartedTask<void> writer = wait_writable(fd).start_in_current_scope();
    co_await settle();
    EXPECT_FALSE(reader.is_done());
    EXPECT_FALSE(writer.is_done());
    put(pair.second, "x");
    co_await std::move(reader);
    EXPECT_FALSE(writer.is_done());
    drain(pair.second, filled);
    co_await std::move(writer);
    EXPECT_EQ(get(pair.first, 1), "x");
    // And once more, with a descriptor of the same number.
    StartedTask<void> again = wait_readable(fd).start_in_current_scope();
    co_await settle();
    put(pair.second, "y");
    co_await std::move(again);
  });
  EXPECT_EQ(loop.statistics().descriptors, 0u);
}

TEST_P(Streams, ABorrowedDescriptorThatIsNoneIsBad) {
  on_loop([]() -> Task<void> {
    int closed = raw_pair().first.get();
    for (int number : {closed, -1, 1 << 30}) {
      Result<void> in = co_await readable(number);
      EXPECT_TRUE(is_error(in, std::errc::bad_file_descriptor));
      Result<void> out = co_await writable(number);
      EXPECT_TRUE(is_error(out, std::errc::bad_file_descriptor));
    }
  });
}

// O_NONBLOCK belongs to what several processes may have open: another one may set it.
TEST_P(Streams, NonBlockingModeSetByAnotherIsNoError) {
  on_loop([]() -> Task<void> {
    auto set = [](const Descriptor& which) {
      checked(::fcntl(which.number(), F_SETFL, O_RDWR | O_NONBLOCK), "fcntl");
    };
    Pair pair = socket_pair();
    put(pair.theirs, "a");
    EXPECT_EQ(co_await read_text(pair.ours), "a");
    set(pair.ours);
    StartedTask<std::string> reader = read_text(pair.ours).start_in_current_scope();
    co_await settle();
    EXPECT_FALSE(reader.is_done());
    put(pair.theirs, "b");
    EXPECT_EQ(co_await std::move(reader), "b");
    FdPair pipe = raw_pipe();
    Descriptor in(std::move(pipe.first)), out(std::move(pipe.second));
    co_await write_all(out, "c");
    EXPECT_EQ(co_await read_text(in), "c");
    set(in);
    set(out);
    StartedTask<std::string> second = read_text(in).start_in_current_scope();
    co_await settle();
    EXPECT_FALSE(second.is_done());
    co_await write_all(out, "d");
    EXPECT_EQ(co_await std::move(second), "d");
    std::size_t filled = fill(out.number());
    set(out);
    StartedTask<void> writer = write_all(out, "e").start_in_current_scope();
    co_await settle();
    EXPECT_FALSE(writer.is_done());
    while (filled > 0) filled -= (co_await read_text(in)).size();
    co_await std::move(writer);
    EXPECT_EQ(co_await read_text(in), "e");

    Listener listener = tcp_listener();
    auto wait = [&]() -> Task<void> { or_throw(co_await listener.socket.writable()); };
    std::expected<void, TimedOut> never = co_await timeout(1ms, wait());  // it is the loop's now
    static_cast<void>(never);
    set(listener.socket);
    for (int i = 0; i < 3; ++i) {
      StartedTask<Descriptor> acceptor = accept_one(listener.socket).start_in_current_scope();
      co_await settle();
      EXPECT_FALSE(acceptor.is_done());
      UniqueFd client = connect_to(listener.address);
      Descriptor server = co_await std::move(acceptor);
      EXPECT_TRUE(static_cast<bool>(server));
    }
    // A wait of that kind is cancelled and closed like any other.
    StartedTask<Descriptor> last = accept_one(listener.socket).start_in_current_scope();
    co_await settle();
    last.cancel();
    Outcome<Descriptor> outcome = co_await last.outcome();
    EXPECT_TRUE(outcome.is_cancelled());
  });
}

// MSG_DONTWAIT has io_uring answer EAGAIN; O_NONBLOCK does, on older kernels. It is a wait all the same.
TEST_P(Streams, AMessageThatIsNotToWaitWaits) {
  on_loop([this]() -> Task<void> {
    Pair pair = socket_pair();
    auto receive = [&]() -> Task<Result<std::string>> {
      char buffer[16];
      iovec part{buffer, sizeof buffer};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      Result<std::size_t> count = co_await pair.ours.recvmsg(message, MSG_DONTWAIT);
      if (!count) co_return std::unexpected(count.error());
      co_return std::string(buffer, *count);
    };
    for (std::string text : {"one", "two"}) {
      StartedTask<Result<std::string>> receiver = receive().start_in_current_scope();
      co_await settle();
      std::uint64_t turns = loop.statistics().turns;
      co_await sleep_for(20ms);
      EXPECT_LT(loop.statistics().turns - turns, 30u) << "it sleeps";
      EXPECT_FALSE(receiver.is_done());
      put(pair.theirs, text);
      EXPECT_EQ(co_await std::move(receiver), text);
    }

    std::size_t filled = fill(pair.ours.number());
    auto send = [&]() -> Task<Result<std::size_t>> {
      char text[] = {'s'};
      iovec part{text, sizeof text};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      co_return co_await pair.ours.sendmsg(message, MSG_DONTWAIT);
    };
    StartedTask<Result<std::size_t>> sender = send().start_in_current_scope();
    co_await settle();
    EXPECT_FALSE(sender.is_done());
    drain(pair.theirs, filled);
    EXPECT_EQ(co_await std::move(sender), 1u);
    EXPECT_EQ(get(pair.theirs), "s");

    StartedTask<Result<std::string>> cancelled = receive().start_in_current_scope();
    co_await settle();
    cancelled.cancel();
    Outcome<Result<std::string>> outcome = co_await cancelled.outcome();
    EXPECT_TRUE(outcome.is_cancelled());
    StartedTask<Result<std::string>> last = receive().start_in_current_scope();
    co_await settle();
    pair.ours.close();
    Result<std::string> closed = co_await std::move(last);
    EXPECT_TRUE(is_error(closed, std::errc::bad_file_descriptor));
  });
}

// One that the kernel knows only to wait for, not to try.
TEST_P(Streams, AnInotifyDescriptorWaitsInEitherMode) {
  on_loop([]() -> Task<void> {
    test::TemporaryDirectory directory;
    Descriptor changes(UniqueFd(checked(::inotify_init1(IN_CLOEXEC), "inotify_init1")));
    checked(::inotify_add_watch(changes.number(), directory.path().c_str(), IN_CREATE), "inotify");
    for (int i = 0; i < 4; ++i) {
      // Withdrawn first: nothing is taken.
      auto wait = [&]() -> Task<void> { co_await read_text(changes); };
      std::expected<void, TimedOut> nothing = co_await timeout(3ms, wait());
      EXPECT_FALSE(nothing.has_value());
      StartedTask<std::string> reader = read_text(changes).start_in_current_scope();
      co_await settle();
      EXPECT_FALSE(reader.is_done());
      std::string path = directory.file(std::to_string(i));
      UniqueFd created(checked(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600), "open"));
      std::string event = co_await std::move(reader);
      EXPECT_GE(event.size(), sizeof(inotify_event));
      if (i == 1) checked(::fcntl(changes.number(), F_SETFL, O_NONBLOCK), "fcntl");
    }
  });
}

// --- One of a kind ------------------------------------------------------------------------------

TEST_P(Streams, OneReaderAndOneWriterWaitAtOnceAndASecondOfAKindIsRefused) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    std::size_t filled = fill(pair.ours.number());
    StartedTask<std::string> reader = read_text(pair.ours).start_in_current_scope();
    StartedTask<void> writer = write_all(pair.ours, "w").start_in_current_scope();
    co_await settle();
    bool refused = false;
    try {
      co_await read_text(pair.ours);
    } catch (const UsageError&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    refused = false;
    try {
      co_await write_all(pair.ours, "no");
    } catch (const UsageError&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    drain(pair.theirs, filled);
    co_await std::move(writer);
    EXPECT_EQ(get(pair.theirs), "w");
    EXPECT_FALSE(reader.is_done());
    put(pair.theirs, "r");
    EXPECT_EQ(co_await std::move(reader), "r");
  });
}

// --- Errors -------------------------------------------------------------------------------------

int broken_pipes = 0;

TEST_P(Streams, ABrokenPipeIsAnErrorAndNoSignal) {
  struct sigaction counts{}, before{};
  counts.sa_handler = [](int) { ++broken_pipes; };
  ::sigaction(SIGPIPE, &counts, &before);
  broken_pipes = 0;
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    pair.theirs.reset();
    char text[] = "x";
    iovec part{text, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    Result<std::size_t> plain = co_await pair.ours.write(bytes_of("x"));
    EXPECT_TRUE(is_error(plain, std::errc::broken_pipe));
    Result<std::size_t> gathered = co_await pair.ours.writev(std::span(&part, 1));
    EXPECT_TRUE(is_error(gathered, std::errc::broken_pipe));
    Result<std::size_t> sent = co_await pair.ours.sendmsg(message);
    EXPECT_TRUE(is_error(sent, std::errc::broken_pipe));
  });
  ::sigaction(SIGPIPE, &before, nullptr);
  EXPECT_EQ(broken_pipes, 0);
  // A pipe does raise it; from the first EventLoop on it is ignored.
  on_loop([]() -> Task<void> {
    FdPair pipe = raw_pipe();
    Descriptor out(std::move(pipe.second));
    pipe.first.reset();
    Result<std::size_t> count = co_await out.write(bytes_of("x"));
    EXPECT_TRUE(is_error(count, std::errc::broken_pipe));
  });
}

TEST_P(Streams, AWriterThatWaitsHearsThatThePeerIsGone) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    fill(pair.ours.number());
    auto write = [&]() -> Task<Result<std::size_t>> {
      co_return co_await pair.ours.write(bytes_of("x"));
    };
    StartedTask<Result<std::size_t>> writer = write().start_in_current_scope();
    co_await settle();
    EXPECT_FALSE(writer.is_done());
    pair.theirs.reset();
    Result<std::size_t> count = co_await std::move(writer);
    EXPECT_FALSE(count.has_value());
  });
}

TEST_P(Streams, AResetIsAnErrorOfTheReadThatMeetsIt) {
  on_loop([]() -> Task<void> {
    Listener listener = tcp_listener();
    for (bool waits : {false, true}) {
      UniqueFd client = connect_to(listener.address);
      Descriptor server = co_await accept_one(listener.socket);
      auto read = [&]() -> Task<Result<std::size_t>> {
        std::byte buffer[8];
        co_return co_await server.read(buffer);
      };
      StartedTask<Result<std::size_t>> reader;
      if (waits) reader = read().start_in_current_scope();
      co_await settle();
      linger hard{1, 0};
      ::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
      client.reset();
      co_await settle();
      if (!waits) reader = read().start_in_current_scope();
      Result<std::size_t> count = co_await std::move(reader);
      EXPECT_TRUE(is_error(count, std::errc::connection_reset));
    }
  });
}

TEST_P(Streams, WhatASocketIsNotForIsAnError) {
  on_loop([]() -> Task<void> {
    Pair pair = socket_pair();
    Result<Descriptor> accepted = co_await pair.ours.accept();
    EXPECT_TRUE(is_error(accepted, std::errc::invalid_argument));
    FdPair pipe = raw_pipe();
    Descriptor in(std::move(pipe.first));
    msghdr message{};
    Result<std::size_t> received = co_await in.recvmsg(message);
    EXPECT_TRUE(is_error(received, std::errc::not_a_socket));
    Result<std::size_t> written = co_await in.write(bytes_of("x"));
    EXPECT_TRUE(is_error(written, std::errc::bad_file_descriptor));
  });
}

}  // namespace
