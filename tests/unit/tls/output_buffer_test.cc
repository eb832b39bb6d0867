// SPDX-License-Identifier: MIT
#include "weft/tls/output_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace {

using namespace weft::tls;
using weft::tls::detail::OutputBuffer;

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}
std::string front_text(const OutputBuffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.front().data()), buffer.front().size()};
}

TEST(TlsOutputBuffer, GivesBackWhatWasPutInOrder) {
  std::mt19937 random(1);
  OutputBuffer buffer;
  std::string put, taken;
  for (int i = 0; i < 2000; ++i) {
    if (random() % 2) {
      std::string piece(random() % 50'000, static_cast<char>('a' + i % 26));
      buffer.put(as_bytes(piece));
      put += piece;
    }
    while (random() % 3 && buffer.size() > 0) {
      std::string front = front_text(buffer);
      ASSERT_FALSE(front.empty()) << "I2";
      front.resize(1 + random() % front.size());
      taken += front;
      buffer.take(front.size());
    }
    ASSERT_EQ(buffer.size(), put.size() - taken.size());
  }
  while (buffer.size() > 0) {
    taken += front_text(buffer);
    buffer.take(buffer.front().size());
  }
  EXPECT_TRUE(taken == put);
  EXPECT_TRUE(buffer.front().empty());
}

// The kernel may be reading them.
TEST(TlsOutputBuffer, BytesDoNotMoveWhenMoreIsPut) {
  OutputBuffer buffer;
  buffer.put(as_bytes("first"));
  const std::byte* where = buffer.front().data();
  buffer.put(as_bytes(std::string(5 * kOutputBytes, 'x')));
  EXPECT_EQ(buffer.front().data(), where);
  EXPECT_EQ(front_text(buffer).substr(0, 6), "firstx");
  buffer.take(3);
  EXPECT_EQ(buffer.front().data(), where + 3);
}

TEST(TlsOutputBuffer, ABlockIsUsedAgainByTheNext) {
  const std::byte* where;
  {
    OutputBuffer one;
    one.put(as_bytes("one"));
    where = one.front().data();
    one.take(3);
    EXPECT_TRUE(one.front().empty());
    OutputBuffer other;
    other.put(as_bytes("other"));
    EXPECT_EQ(other.front().data(), where);
  }
  OutputBuffer third;
  third.put(as_bytes("third"));
  EXPECT_EQ(third.front().data(), where) << "the destructor gives it back, too";
}

}  // namespace
