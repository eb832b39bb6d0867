// SPDX-License-Identifier: MIT
// Files: they do not wait, they block, and the loop does not.
#include <coroutine>
#include <filesystem>
#include <fstream>
#include <utility>

#include "driver_fixture.h"
#include "support/temporary_directory.h"

namespace {

using namespace weft;
using namespace weft::test;

struct Files : DriverTest {
  [[nodiscard]] std::string path(const char* name) const { return directory.file(name); }

  test::TemporaryDirectory directory;
};
WEFT_ON_EVERY_DRIVER(Files);

Task<Descriptor> open_now(std::string path, int flags) {
  Result<Descriptor> file = co_await open_file(std::move(path), flags, 0600);
  co_return or_throw(std::move(file));
}

TEST_P(Files, WriteSyncReadBack) {
  on_loop([this]() -> Task<void> {
    Descriptor file = co_await open_now(path("a"), O_RDWR | O_CREAT | O_EXCL);
    EXPECT_TRUE(::fcntl(file.number(), F_GETFD) & FD_CLOEXEC);
    Result<std::size_t> count = co_await file.pwrite(bytes_of("hello, world"), 0);
    EXPECT_EQ(or_throw(count), 12u);
    count = co_await file.pwrite(bytes_of("W"), 7);
    EXPECT_EQ(or_throw(count), 1u);
    Result<void> synced = co_await file.fsync();
    EXPECT_TRUE(synced.has_value());
    synced = co_await file.fsync(Descriptor::Sync::data_only);
    EXPECT_TRUE(synced.has_value());
    std::byte buffer[32];
    count = co_await file.pread(buffer, 7);
    EXPECT_EQ(text_of(std::span(buffer).first(or_throw(count))), "World");
    count = co_await file.pread(buffer, 100);
    EXPECT_EQ(or_throw(count), 0u);  // the end
    struct statx status{};
    Result<void> told = co_await file.statx(status);
    EXPECT_TRUE(told.has_value());
    EXPECT_EQ(status.stx_size, 12u);
    EXPECT_TRUE(S_ISREG(status.stx_mode));
    EXPECT_EQ(status.stx_mode & 0777u, 0600u);
  });
}

TEST_P(Files, ReadAndWriteGoOnWhereTheyWere) {
  on_loop([this]() -> Task<void> {
    Descriptor file = co_await open_now(path("a"), O_RDWR | O_CREAT);
    co_await write_all(file, "one");
    co_await write_all(file, "two");
    ::lseek(file.number(), 0, SEEK_SET);
    EXPECT_EQ(co_await read_text(file, 4), "onet");
    EXPECT_EQ(co_await read_text(file, 4), "wo");
    EXPECT_EQ(co_await read_text(file, 4), "");
    ::lseek(file.number(), 1, SEEK_SET);
    char to[2][2];
    const iovec parts[2] = {{to[0], 2}, {to[1], 2}};
    Result<std::size_t> count = co_await file.readv(parts);
    EXPECT_EQ(or_throw(count), 4u);
    EXPECT_EQ(std::string(to[0], 4), "netw");
    count = co_await file.writev(parts);
    EXPECT_EQ(or_throw(count), 4u);
    struct statx status{};
    or_throw(co_await file.statx(status));
    EXPECT_EQ(status.stx_size, 9u);
  });
}

// As a program's standard input may be.
TEST_P(Files, AFileThatSomebodyElseOpenedIsReadToItsEnd) {
  std::ofstream(path("in")) << std::string(200'000, 'i');
  on_loop([this]() -> Task<void> {
    Descriptor in(UniqueFd(checked(::open(path("in").c_str(), O_RDONLY | O_CLOEXEC), "open")));
    std::size_t sum = 0;
    for (;;) {
      std::string text = co_await read_text(in);
      if (text.empty()) break;
      sum += text.size();
    }
    EXPECT_EQ(sum, 200'000u);
  });
}

TEST_P(Files, WhatTheSystemRefusesIsAnError) {
  on_loop([this]() -> Task<void> {
    Result<Descriptor> missing = co_await open_file(path("none"), O_RDONLY);
    EXPECT_TRUE(is_error(missing, std::errc::no_such_file_or_directory));
    Result<Descriptor> directory_for_writing = co_await open_file(directory.path(), O_WRONLY);
    EXPECT_TRUE(is_error(directory_for_writing, std::errc::is_a_directory));
    Descriptor file = co_await open_now(path("a"), O_RDONLY | O_CREAT);
    std::byte buffer[4];
    Result<std::size_t> count = co_await file.pwrite(bytes_of("x"), 0);
    EXPECT_TRUE(is_error(count, std::errc::bad_file_descriptor));
    for (std::int64_t offset : {-1, -5}) {
      count = co_await file.pread(buffer, offset);
      EXPECT_TRUE(is_error(count, std::errc::invalid_argument));
    }
    Pair pair = socket_pair();
    count = co_await pair.ours.pread(buffer, 0);
    EXPECT_TRUE(is_error(count, std::errc::invalid_seek));
    FdPair pipe = raw_pipe();
    Descriptor out(std::move(pipe.second));
    count = co_await out.pwrite(bytes_of("x"), 0);
    EXPECT_TRUE(is_error(count, std::errc::invalid_seek));
    Descriptor zeros = co_await open_now("/dev/zero", O_RDONLY);
    count = co_await zeros.pread(buffer, 100);
    EXPECT_EQ(or_throw(count), 4u);
  });
}

// Positional operations are not one of a kind.
TEST_P(Files, ManyAtOnce) {
  on_loop([this]() -> Task<void> {
    Descriptor file = co_await open_now(path("a"), O_RDWR | O_CREAT);
    auto write = [&](int i) -> Task<void> {
      char byte = static_cast<char>('a' + i % 26);
      or_throw(co_await file.pwrite(bytes_of(std::string_view(&byte, 1)), i));
    };
    auto body = [&](Nursery& nursery) -> Task<NurseryEnd> {
      for (int i = 0; i < 500; ++i) nursery.start(write(i));
      co_return join;
    };
    co_await with_nursery(body);
    std::string all = co_await read_text(file);
    EXPECT_EQ(all.size(), 500u);
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<char>('a' + i % 26));
  });
}

// A wait that is over at once, and closes.
struct CloseNow {
  Descriptor& file;
  EventLoop& loop;
  std::size_t under_way;

  [[nodiscard]] bool await_ready() const {
    EXPECT_EQ(loop.statistics().operations, under_way);
    file.close();
    return true;
  }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  void await_resume() const noexcept {}
};
Task<void> close_after(Descriptor& file, int turns) {
  for (; turns > 0; --turns) co_await yield();
  file.close();
}

constexpr std::size_t kWrites = 20;

// All of them begin in one step, in which the loop hears of no end; then closer begins. Returns: what each of them
// says that it has written.
template <class Closer>
Task<std::string> write_under_close(Descriptor& file, Closer closer) {
  auto begin = [&]<std::size_t... kAt>(std::index_sequence<kAt...>) {
    return all_of(file.pwrite(bytes_of("x"), kAt)..., std::move(closer));
  };
  auto results = co_await begin(std::make_index_sequence<kWrites>());
  std::string written(kWrites, '\0');
  auto look = [&]<std::size_t... kAt>(std::index_sequence<kAt...>) {
    for (std::size_t at = 0; const Result<std::size_t>& each : {std::get<kAt>(results)...}) {
      EXPECT_TRUE(each.has_value() ? *each == 1 : each.error() == std::errc::bad_file_descriptor);
      written[at++] = each.has_value() ? 'x' : '\0';
    }
  };
  look(std::make_index_sequence<kWrites>());
  co_return written;
}

// Closed under operations that are under way: they end, and then the number is free. Each has done its work, or
// says that it has not.
TEST_P(Files, CloseUnderOperations) {
  on_loop([this]() -> Task<void> {
    for (int i = 0; i < 40; ++i) {
      Descriptor file = co_await open_now(path("a"), O_RDWR | O_CREAT | O_TRUNC);
      std::string said;
      if (i % 2) {
        said = co_await write_under_close(file, close_after(file, i % 8));
      } else {
        said = co_await write_under_close(file, CloseNow{file, loop, kWrites});
      }
      std::string written(kWrites, '\0');
      std::ifstream(path("a")).read(written.data(), kWrites);
      EXPECT_EQ(written, said);
    }
  });
  EXPECT_EQ(loop.statistics().descriptors, 0u);
}

}  // namespace
