// SPDX-License-Identifier: MIT
#pragma once
// Tests that are typed, and run on each loop: compiled once per type, while a TYPED_TEST would be
// compiled once per type and loop.
//
//     template <class Lock> struct LockTest : weft::test::EachLoopTest { … };
//     TYPED_LOOP_TEST_SUITE(LockTest, ::testing::Types<Mutex, LocalMutex>);
//     TYPED_LOOP_TEST(LockTest, IsFreeAtFirst) { … this->loop … }
//
// are LockTest/0.IsFreeAtFirst/Virtual and so on.
#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "support/loop_fixture.h"

namespace weft::test {

template <template <class> class Test, class... Types>
bool add_typed(::testing::Types<Types...>, const std::string& suite, const char* name,
               const char* file, int line) {
  int index = 0;
  auto add = [&]<class T>(std::type_identity<T>) {
    const std::string full_suite = suite + "/" + std::to_string(index++);
    EachLoopTest::add(full_suite.c_str(), name, T::kLoops, file, line,
                      []() -> ::testing::Test* { return new T; });
  };
  (add(std::type_identity<Test<Types>>()), ...);
  return true;
}

}  // namespace weft::test

#define TYPED_LOOP_TEST_SUITE(Suite, ...) using Suite##_Types = __VA_ARGS__

#define TYPED_LOOP_TEST(Suite, Name)                                                               \
  template <class TypeParam>                                                                       \
  struct Suite##_##Name : Suite<TypeParam> {                                                       \
    using TestFixture = Suite<TypeParam>;                                                          \
    void TestBody() override;                                                                      \
  };                                                                                               \
  [[maybe_unused]] const bool Suite##_##Name##_added =                                             \
      ::weft::test::add_typed<Suite##_##Name>(Suite##_Types(), #Suite, #Name, __FILE__, __LINE__); \
  template <class TypeParam>                                                                       \
  void Suite##_##Name<TypeParam>::TestBody()
