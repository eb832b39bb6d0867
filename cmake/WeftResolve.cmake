# SPDX-License-Identifier: MIT
# weft::resolve: the part of room net/ that asks name servers, by c-ares.
#
#   WEFT_WITH_CARES
#     AUTO   on if the library is found
#     ON     an error if it is not found
#     OFF    weft::net is all there is: no resolve(), and no TcpStream::connect() by a name
#
#   WEFT_RESOLVE_SOURCES   what belongs to it, and not to weft::net
#   weft_add_resolve()     makes the target, if it is on. After weft::net

set(WEFT_WITH_CARES AUTO CACHE STRING "Names of hosts, by c-ares: AUTO, ON or OFF")
set_property(CACHE WEFT_WITH_CARES PROPERTY STRINGS AUTO ON OFF)

set(WEFT_RESOLVE_SOURCES "${PROJECT_SOURCE_DIR}/src/net/resolver.cc" "${PROJECT_SOURCE_DIR}/src/net/connect_host.cc")

function(weft_add_resolve)
  if(NOT WEFT_WITH_CARES)
    return()
  endif()
  find_path(WEFT_CARES_INCLUDE ares.h)
  find_library(WEFT_CARES_LIBRARY cares)
  if(NOT WEFT_CARES_INCLUDE OR NOT WEFT_CARES_LIBRARY)
    if(WEFT_WITH_CARES STREQUAL "AUTO")
      message(STATUS "weft: no c-ares (libc-ares-dev), and so no weft::resolve")
      return()
    endif()
    message(FATAL_ERROR "WEFT_WITH_CARES is ON, but c-ares (libc-ares-dev) was not found")
  endif()
  weft_library(resolve SOURCES ${WEFT_RESOLVE_SOURCES} LINK weft_net)
  target_include_directories(weft_resolve SYSTEM PRIVATE "${WEFT_CARES_INCLUDE}")
  target_link_libraries(weft_resolve PRIVATE
    $<BUILD_INTERFACE:${WEFT_CARES_LIBRARY}> $<INSTALL_INTERFACE:cares>)
  set_property(GLOBAL APPEND PROPERTY WEFT_SYSTEM_LIBRARIES cares)
endfunction()
