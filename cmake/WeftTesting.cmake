# SPDX-License-Identifier: MIT
# What tests and examples share.
#
#   weft_add_test(<name> LABEL <label> COMMAND <command>...)   one ctest entry
#   weft_add_gtest(<target> LABEL <label> [PROCESSORS <n>] [PREFIX <name>] SOURCES <file>...)
#                                                              one executable, one ctest entry per TEST

set(WEFT_TEST_TIMEOUT_SECONDS 300)

# Properties and not presets, so that a plain `ctest` in the build directory sees them too. One variable per property:
# gtest_discover_tests takes lists apart.
set(weft_test_environment "")
if(WEFT_SANITIZE)
  cmake_path(GET CMAKE_CXX_COMPILER PARENT_PATH weft_compiler_dir)
  file(REAL_PATH "${CMAKE_CXX_COMPILER}" weft_compiler)
  cmake_path(GET weft_compiler PARENT_PATH weft_compiler_real_dir)
  find_program(WEFT_SYMBOLIZER NAMES llvm-symbolizer-22 llvm-symbolizer-19 llvm-symbolizer
               HINTS "${weft_compiler_real_dir}" "${weft_compiler_dir}")
  set(weft_symbolizer "")
  if(WEFT_SYMBOLIZER)
    set(weft_symbolizer ":external_symbolizer_path=${WEFT_SYMBOLIZER}")
  endif()
endif()
if(WEFT_SANITIZE STREQUAL "address")
  # Stack-use-after-return detection moves locals off the stack; the depth tests are about the real one.
  set(weft_test_environment
    ENVIRONMENT "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=0${weft_symbolizer}"
    ENVIRONMENT_MODIFICATION "UBSAN_OPTIONS=set:print_stacktrace=1${weft_symbolizer}")
elseif(WEFT_SANITIZE STREQUAL "thread")
  set(weft_test_environment
    ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1${weft_symbolizer}")
endif()

function(weft_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL" "COMMAND")
  add_test(NAME ${name} COMMAND ${arg_COMMAND} COMMAND_EXPAND_LISTS)
  set_tests_properties(${name} PROPERTIES
    LABELS ${arg_LABEL}
    TIMEOUT ${WEFT_TEST_TIMEOUT_SECONDS}
    ${weft_test_environment})
endfunction()

function(weft_add_gtest target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;PROCESSORS;PREFIX" "SOURCES")
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  add_executable(${target} ${arg_SOURCES})
  weft_own(${target})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${target} PRIVATE weft_test_support weft::weft GTest::gtest_main ${WEFT_RAPIDCHECK})
  # PRE_TEST: the names are asked for when ctest runs, so that building does not run sanitized programs.
  gtest_discover_tests(${target}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    TEST_PREFIX "${arg_PREFIX}"
    PROPERTIES
      LABELS ${arg_LABEL}
      TIMEOUT ${WEFT_TEST_TIMEOUT_SECONDS}
      PROCESSORS ${arg_PROCESSORS}
      ${weft_test_environment})
endfunction()
