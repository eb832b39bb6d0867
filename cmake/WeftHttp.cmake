# SPDX-License-Identifier: MIT
# The rooms http and ws: targets weft_http and weft_ws. Needs weft::tls, weft::resolve, zlib, and llhttp, whose C sources come with
# Debian's node-llhttp and are compiled in.
#
#   WEFT_WITH_HTTP     AUTO: on if all are there; ON: an error if one is not; OFF
#   WEFT_WITH_BROTLI   the same for the coding br; without it HTTP knows gzip only
#   WEFT_WITH_WS       the same for WebSocket, which needs wslay

set(WEFT_WITH_HTTP AUTO CACHE STRING "HTTP: AUTO, ON or OFF")
set_property(CACHE WEFT_WITH_HTTP PROPERTY STRINGS AUTO ON OFF)
if(NOT WEFT_WITH_HTTP)
  return()
endif()

if(NOT TARGET weft_tls OR NOT TARGET weft_resolve)
  if(WEFT_WITH_HTTP STREQUAL "ON")
    message(FATAL_ERROR "WEFT_WITH_HTTP is ON, but OpenSSL 3.0 or c-ares was not found, or is turned off by WEFT_WITH_TLS or "
                        "WEFT_WITH_CARES (Debian: libssl-dev, libc-ares-dev)")
  endif()
  message(STATUS "weft: no HTTP, because there is no OpenSSL 3.0 or no c-ares (Debian: libssl-dev, libc-ares-dev)")
  return()
endif()

find_path(WEFT_LLHTTP_INCLUDE llhttp/llhttp.h PATHS /usr/share/include)
find_path(WEFT_LLHTTP_SOURCES llhttp.c PATHS /usr/share/llhttp)
find_package(ZLIB QUIET)
if(NOT WEFT_LLHTTP_INCLUDE OR NOT WEFT_LLHTTP_SOURCES OR NOT ZLIB_FOUND)
  if(WEFT_WITH_HTTP STREQUAL "ON")
    message(FATAL_ERROR "WEFT_WITH_HTTP is ON, but llhttp or zlib was not found. Debian has them as node-llhttp and "
                        "zlib1g-dev; otherwise set WEFT_LLHTTP_INCLUDE and WEFT_LLHTTP_SOURCES")
  endif()
  message(STATUS "weft: no HTTP: llhttp or zlib was not found (Debian: node-llhttp, zlib1g-dev)")
  return()
endif()

set(WEFT_WITH_BROTLI AUTO CACHE STRING "The coding br of HTTP: AUTO, ON or OFF")
set_property(CACHE WEFT_WITH_BROTLI PROPERTY STRINGS AUTO ON OFF)
set(weft_has_brotli 0)
if(WEFT_WITH_BROTLI)
  find_path(WEFT_BROTLI_INCLUDE brotli/encode.h)
  find_library(WEFT_BROTLI_ENCODER brotlienc)
  find_library(WEFT_BROTLI_DECODER brotlidec)
  find_library(WEFT_BROTLI_COMMON brotlicommon)
  if(WEFT_BROTLI_INCLUDE AND WEFT_BROTLI_ENCODER AND WEFT_BROTLI_DECODER AND WEFT_BROTLI_COMMON)
    set(weft_has_brotli 1)
  elseif(WEFT_WITH_BROTLI STREQUAL "ON")
    message(FATAL_ERROR "WEFT_WITH_BROTLI is ON, but brotli was not found (Debian: libbrotli-dev)")
  else()
    message(STATUS "weft: HTTP knows gzip only: brotli was not found (Debian: libbrotli-dev)")
  endif()
endif()

# The fuzz targets see which way the bytes went (tests/fuzz).
set(weft_fuzzed "")
if(WEFT_SANITIZE STREQUAL "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(weft_fuzzed -fsanitize=fuzzer-no-link)
endif()

enable_language(C)
add_library(weft_llhttp OBJECT
  "${WEFT_LLHTTP_SOURCES}/api.c" "${WEFT_LLHTTP_SOURCES}/http.c" "${WEFT_LLHTTP_SOURCES}/llhttp.c")
target_include_directories(weft_llhttp PRIVATE "${WEFT_LLHTTP_INCLUDE}/llhttp")
# Strict: names are tokens, and a target has no bytes that must be escaped.
target_compile_definitions(weft_llhttp PRIVATE LLHTTP_STRICT_MODE=1)
# -fexceptions: a callback of ours may throw through it.
target_compile_options(weft_llhttp PRIVATE -fexceptions -w ${WEFT_SANITIZE_OPTIONS} ${weft_fuzzed})

weft_library(http ROOMS http LINK weft_tls weft_resolve)
target_sources(weft_http PRIVATE $<TARGET_OBJECTS:weft_llhttp>)
target_compile_options(weft_http PRIVATE ${weft_fuzzed})
target_include_directories(weft_http PRIVATE "${WEFT_LLHTTP_INCLUDE}" ${ZLIB_INCLUDE_DIRS})
target_compile_definitions(weft_http PRIVATE WEFT_HAS_BROTLI=${weft_has_brotli})
# By their file names: whoever links the installed package needs no find module for them.
target_link_libraries(weft_http PRIVATE "$<LINK_ONLY:${ZLIB_LIBRARIES}>")
set(WEFT_PC_MORE_LIBS -lz)  # for weft.pc
if(weft_has_brotli)
  target_include_directories(weft_http PRIVATE "${WEFT_BROTLI_INCLUDE}")
  # Users before what they use: a static link wants that.
  target_link_libraries(weft_http PRIVATE "$<LINK_ONLY:${WEFT_BROTLI_ENCODER}>"
    "$<LINK_ONLY:${WEFT_BROTLI_DECODER}>" "$<LINK_ONLY:${WEFT_BROTLI_COMMON}>")
  list(APPEND WEFT_PC_MORE_LIBS -lbrotlienc -lbrotlidec -lbrotlicommon)
endif()

set(WEFT_WITH_WS AUTO CACHE STRING "WebSocket: AUTO, ON or OFF")
set_property(CACHE WEFT_WITH_WS PROPERTY STRINGS AUTO ON OFF)
if(NOT WEFT_WITH_WS)
  return()
endif()

find_path(WEFT_WSLAY_INCLUDE wslay/wslay.h)
find_library(WEFT_WSLAY_LIBRARY wslay)
if(NOT WEFT_WSLAY_INCLUDE OR NOT WEFT_WSLAY_LIBRARY)
  if(WEFT_WITH_WS STREQUAL "ON")
    message(FATAL_ERROR "WEFT_WITH_WS is ON, but wslay was not found. Debian has it as libwslay-dev; otherwise set "
                        "WEFT_WSLAY_INCLUDE and WEFT_WSLAY_LIBRARY")
  endif()
  message(STATUS "weft: no WebSocket: wslay was not found (Debian: libwslay-dev)")
  return()
endif()

weft_library(ws ROOMS ws LINK weft_http)
target_compile_options(weft_ws PRIVATE ${weft_fuzzed})
target_include_directories(weft_ws PRIVATE
  "${PROJECT_SOURCE_DIR}/src"  # the client reads the server's answer with http/'s own parser; deflate is http/'s, too
  "${WEFT_LLHTTP_INCLUDE}" "${WEFT_WSLAY_INCLUDE}")
target_link_libraries(weft_ws PRIVATE "$<LINK_ONLY:${WEFT_WSLAY_LIBRARY}>")
target_include_directories(weft_ws PRIVATE ${ZLIB_INCLUDE_DIRS})
list(PREPEND WEFT_PC_MORE_LIBS -lwslay)
