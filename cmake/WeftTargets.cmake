# SPDX-License-Identifier: MIT
# How weft's own targets are made.
#
#   weft_library(<name> [ROOMS <room>...] [WITHOUT <file>...] [SOURCES <file>...] [LINK <target>...])
#                                                             target weft_<name>, alias weft::<name>: the files of the
#                                                             rooms, but for those that are another target's; and others
#   weft_own(<target>)                                        the house rules: standard and warnings
#   weft_without_paths(<target>)                              what is shipped does not know where it was built
#
# weft_library also puts the library into weft::weft, the installed package and weft.pc. Call it in dependency order.

include(GNUInstallDirs)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# Everything a user of weft must compile and link with, in one place; weft.pc and the compile-fail tests read it too.
set(WEFT_PUBLIC_OPTIONS "")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # Without it clang ignores a promise's aligned operator new, and over-aligned locals land on 16-byte frames.
  list(APPEND WEFT_PUBLIC_OPTIONS -fcoro-aligned-allocation)
endif()

set(WEFT_PUBLIC_DEFINITIONS "")
if(WEFT_AWAITABLE_STATE_DEBUG)
  list(APPEND WEFT_PUBLIC_DEFINITIONS WEFT_AWAITABLE_STATE_DEBUG=1)
endif()

if(WEFT_SANITIZE STREQUAL "address")
  set(WEFT_SANITIZE_OPTIONS -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(WEFT_SANITIZE STREQUAL "thread")
  set(WEFT_SANITIZE_OPTIONS -fsanitize=thread -fno-omit-frame-pointer)
elseif(WEFT_SANITIZE STREQUAL "")
  set(WEFT_SANITIZE_OPTIONS "")
else()
  message(FATAL_ERROR "WEFT_SANITIZE is \"${WEFT_SANITIZE}\"; it may be empty, address or thread")
endif()

add_library(weft INTERFACE)
add_library(weft::weft ALIAS weft)
install(TARGETS weft EXPORT weft-targets)

# g++ 12 sees the value of a std::expected read before it was written wherever one is moved and it cannot follow the flag;
# clang, the sanitizers and valgrind do not.
function(weft_own target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra
    $<$<BOOL:${WEFT_WERROR}>:-Werror>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
    $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wthread-safety>)
endfunction()

# The task tree and failed assertions name places in the source: from the top of the tree on, not of this machine.
function(weft_without_paths target)
  file(RELATIVE_PATH top "${CMAKE_BINARY_DIR}" "${PROJECT_SOURCE_DIR}/")  # as ccache has it
  target_compile_options(${target} PRIVATE
    "$<$<CONFIG:Release>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=;-fmacro-prefix-map=${top}=>")
endfunction()

function(weft_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ROOMS;WITHOUT;SOURCES;LINK")
  set(sources ${arg_SOURCES})
  foreach(room IN LISTS arg_ROOMS)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${room}/*.cc")
    list(APPEND sources ${found})
  endforeach()
  list(REMOVE_ITEM sources ${arg_WITHOUT})

  set(target weft_${name})
  add_library(${target} STATIC ${sources})
  add_library(weft::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  weft_own(${target})
  weft_without_paths(${target})

  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} PUBLIC cxx_std_23)
  # Asked again in the user's build. One of the other family's would not link (core/layout.h), and is to hear that
  # from the linker, not that its compiler does not know an option.
  target_compile_options(${target} PUBLIC
    $<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-fcoro-aligned-allocation>)
  target_compile_definitions(${target} PUBLIC ${WEFT_PUBLIC_DEFINITIONS})
  target_compile_options(${target} PUBLIC ${WEFT_SANITIZE_OPTIONS})
  target_link_options(${target} PUBLIC ${WEFT_SANITIZE_OPTIONS})
  target_link_libraries(${target} PUBLIC Threads::Threads ${arg_LINK})

  target_link_libraries(weft INTERFACE ${target})
  install(TARGETS ${target} EXPORT weft-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_property(GLOBAL APPEND PROPERTY WEFT_LIBRARIES ${target})
endfunction()
