// SPDX-License-Identifier: MIT
// Twenty thousand sockets at once: ten thousand connections between two processes.
//
// How many descriptors one process may have is often not ours to raise. So the other ends are another
// process's: this program again, told by its environment to run this test as the client of a port.
// run_process() ends it when the test gives up; and where that cannot, because the test has crashed,
// its connections break, which ends it, too.
#include <cstdio>
#include <stdexcept>

#include "driver_fixture.h"

namespace {

using namespace weft;
using namespace weft::test;

struct ManySockets : DriverTest {};
WEFT_ON_EVERY_DRIVER(ManySockets);

constexpr const char* kClientOf = "WEFT_TEST_CLIENT_OF";
constexpr std::size_t kDescriptorsBesides = 200;
constexpr std::size_t kConnectingMax = 64;  // well below the backlog: nobody is refused
constexpr std::size_t kMessageBytes = 8;

// poll() is O(n) in what is waited for, per turn: a tenth of them will do there.
std::size_t connections_for(Driver driver) { return driver == Driver::poll ? 1'000 : 10'000; }

std::string message_of(std::size_t number) {
  char text[kMessageBytes + 1];
  std::snprintf(text, sizeof text, "%08zu", number);
  return text;
}

// --- This process -------------------------------------------------------------------------------

class Server {
 public:
  Server(EventLoop& loop, std::size_t count) : loop_(loop), count_(count) {}

  Task<void> run() {
    auto serve_all = [this](Nursery& nursery) -> Task<NurseryEnd> {
      nursery.start(watch_client());
      for (std::size_t i = 0; i < count_; ++i) {
        Result<Descriptor> accepted = co_await listener_.socket.accept();
        nursery.start(serve(or_throw(std::move(accepted))));
      }
      co_return join;
    };
    co_await with_nursery(serve_all);
    EXPECT_GE(open_at_once_, count_);
    EXPECT_EQ(ended_, count_);
  }

 private:
  Task<void> serve(Descriptor socket) {
    co_await write_all(socket, "h");
    std::string message = co_await read_exactly(socket, kMessageBytes);
    if (++arrived_ == count_) {
      open_at_once_ = loop_.statistics().descriptors;  // the listener, too, and pipes
      all_here_.set();
    }
    co_await all_here_.wait();
    co_await write_all(socket, message);
    // The client keeps every one of its ends until all have got their answers.
    std::string rest = co_await read_text(socket);
    if (rest.empty()) ++ended_;
  }

  // Its end is no news when all has been said; before that it is the end of the test.
  Task<void> watch_client() {
    ProcessOptions client = client_options();
    Result<Finished> finished = co_await run_process(std::move(client));
    Finished done = or_throw(std::move(finished));
    if (done.status.success() && arrived_ == count_) co_return;
    throw std::runtime_error("the client: " + done.status.text() + "\n" + done.out + done.err);
  }

  // The same test of the same program, whatever gtest was told here.
  ProcessOptions client_options() {
    const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
    std::string filter = std::string(test.test_suite_name()) + "." + test.name();
    ProcessOptions client("/proc/self/exe", {"--gtest_filter=" + filter, "--gtest_brief=1"});
    client.environment.emplace();
    for (char** each = environ; *each; ++each) {
      std::string_view variable = *each;
      if (!variable.starts_with("GTEST_")) client.environment->emplace_back(variable);
    }
    client.environment->push_back(std::string(kClientOf) + "=" +
                                  std::to_string(ntohs(listener_.address.sin_port)));
    return client;
  }

  EventLoop& loop_;
  const std::size_t count_;
  Listener listener_ = tcp_listener();
  Event all_here_;
  std::size_t arrived_ = 0, ended_ = 0;
  std::size_t open_at_once_ = 0;
};

// --- The other ----------------------------------------------------------------------------------

class Client {
 public:
  Client(EventLoop& loop, std::uint16_t port, std::size_t count)
      : loop_(loop), address_(localhost(port)), count_(count) {}

  Task<void> run() {
    auto connect_all = [this](Nursery& nursery) -> Task<NurseryEnd> {
      for (std::size_t i = 0; i < kConnectingMax; ++i) nursery.start(connect(nursery));
      co_return join;
    };
    co_await with_nursery(connect_all);
    EXPECT_GE(open_at_once_, count_);
    EXPECT_EQ(answered_, count_);
  }

 private:
  Task<void> connect(Nursery& nursery) {
    while (next_ < count_) {
      std::size_t number = next_++;
      Descriptor socket(tcp_socket());
      or_throw(co_await socket.connect(general(address_), sizeof address_));
      std::string greeting = co_await read_exactly(socket, 1);
      if (greeting != "h") throw std::runtime_error("not accepted");
      nursery.start(talk(std::move(socket), number));
    }
  }
  Task<void> talk(Descriptor socket, std::size_t number) {
    std::string message = message_of(number);
    co_await write_all(socket, message);
    std::string answer = co_await read_exactly(socket, kMessageBytes);
    if (answer != message) throw std::runtime_error(message + " was answered: " + answer);
    if (++answered_ == count_) {
      open_at_once_ = loop_.statistics().descriptors;
      all_answered_.set();
    }
    co_await all_answered_.wait();
  }

  EventLoop& loop_;
  const sockaddr_in address_;
  const std::size_t count_;
  Event all_answered_;
  std::size_t next_ = 0, answered_ = 0;
  std::size_t open_at_once_ = 0;
};

TEST_P(ManySockets, TwentyThousandEchoAtOnce) {
  std::size_t count = connections_for(GetParam());
  FileLimit many(count + kDescriptorsBesides);
  ASSERT_GE(FileLimit::now(), count + kDescriptorsBesides) << "RLIMIT_NOFILE does not allow them";
  const char* port = std::getenv(kClientOf);
  if (port) {
    Client client(loop, static_cast<std::uint16_t>(std::atoi(port)), count);
    on_loop([&] { return client.run(); });
  } else {
    Server server(loop, count);
    on_loop([&] { return server.run(); });
  }
}

}  // namespace
