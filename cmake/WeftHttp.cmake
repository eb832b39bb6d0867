# SPDX-License-Identifier: MIT
# The rooms http and ws: targets weft_http and weft_ws. Needs llhttp, whose C sources come with Debian's node-llhttp and are compiled in.
#
#   WEFT_WITH_HTTP   AUTO: on if llhttp is found; ON: an error if it is not; OFF
#   WEFT_WITH_WS     the same for WebSocket, which needs wslay and zlib

set(WEFT_WITH_HTTP AUTO CACHE STRING "HTTP: AUTO, ON or OFF")
set_property(CACHE WEFT_WITH_HTTP PROPERTY STRINGS AUTO ON OFF)
if(NOT WEFT_WITH_HTTP)
  return()
endif()

find_path(WEFT_LLHTTP_INCLUDE llhttp/llhttp.h PATHS /usr/share/include)
find_path(WEFT_LLHTTP_SOURCES llhttp.c PATHS /usr/share/llhttp)
if(NOT WEFT_LLHTTP_INCLUDE OR NOT WEFT_LLHTTP_SOURCES)
  if(WEFT_WITH_HTTP STREQUAL "ON")
    message(FATAL_ERROR "WEFT_WITH_HTTP is ON, but llhttp was not found. Debian has it as node-llhttp; "
                        "otherwise set WEFT_LLHTTP_INCLUDE and WEFT_LLHTTP_SOURCES")
  endif()
  message(STATUS "weft: no HTTP: llhttp was not found (Debian: node-llhttp)")
  return()
endif()

enable_language(C)
add_library(weft_llhttp OBJECT
  "${WEFT_LLHTTP_SOURCES}/api.c" "${WEFT_LLHTTP_SOURCES}/http.c" "${WEFT_LLHTTP_SOURCES}/llhttp.c")
target_include_directories(weft_llhttp PRIVATE "${WEFT_LLHTTP_INCLUDE}/llhttp")
# Strict: names are tokens, and a target has no bytes that must be escaped.
target_compile_definitions(weft_llhttp PRIVATE LLHTTP_STRICT_MODE=1)
# -fexceptions: a callback of ours may throw through it.
target_compile_options(weft_llhttp PRIVATE -fexceptions -w ${WEFT_SANITIZE_OPTIONS})

weft_library(http ROOMS http LINK weft_net)
target_sources(weft_http PRIVATE $<TARGET_OBJECTS:weft_llhttp>)
target_include_directories(weft_http PRIVATE "${WEFT_LLHTTP_INCLUDE}")

set(WEFT_WITH_WS AUTO CACHE STRING "WebSocket: AUTO, ON or OFF")
set_property(CACHE WEFT_WITH_WS PROPERTY STRINGS AUTO ON OFF)
if(NOT WEFT_WITH_WS)
  return()
endif()

find_path(WEFT_WSLAY_INCLUDE wslay/wslay.h)
find_library(WEFT_WSLAY_LIBRARY wslay)
find_package(ZLIB QUIET)
if(NOT WEFT_WSLAY_INCLUDE OR NOT WEFT_WSLAY_LIBRARY OR NOT ZLIB_FOUND)
  if(WEFT_WITH_WS STREQUAL "ON")
    message(FATAL_ERROR "WEFT_WITH_WS is ON, but wslay or zlib was not found. Debian has them as libwslay-dev and "
                        "zlib1g-dev; otherwise set WEFT_WSLAY_INCLUDE and WEFT_WSLAY_LIBRARY")
  endif()
  message(STATUS "weft: no WebSocket: wslay or zlib was not found (Debian: libwslay-dev, zlib1g-dev)")
  return()
endif()

weft_library(ws ROOMS ws LINK weft_http)
target_include_directories(weft_ws PRIVATE
  "${PROJECT_SOURCE_DIR}/src"  # the client reads the server's answer with http/'s own parser
  "${WEFT_LLHTTP_INCLUDE}" "${WEFT_WSLAY_INCLUDE}")
# By their file names: whoever links the installed package needs no find module for them.
target_link_libraries(weft_ws PRIVATE "$<LINK_ONLY:${WEFT_WSLAY_LIBRARY}>" "$<LINK_ONLY:${ZLIB_LIBRARIES}>")
target_include_directories(weft_ws PRIVATE ${ZLIB_INCLUDE_DIRS})
set(WEFT_PC_MORE_LIBS -lwslay -lz)  # for weft.pc
