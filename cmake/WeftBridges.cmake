# SPDX-License-Identifier: MIT
# Which bridges this build has. Sets WEFT_BRIDGES.
#
#   WEFT_WITH_ASIO, WEFT_WITH_LIBUV, WEFT_WITH_GLIB, WEFT_WITH_QT
#     AUTO   on if the library is found and weft is the whole build; a user's build asks for what it wants
#     ON     an error if it is not found
#     OFF

include(WeftAdapt)

set(WEFT_BRIDGES "")
foreach(bridge IN ITEMS asio libuv glib qt)
  string(TOUPPER "WEFT_WITH_${bridge}" option)
  set(${option} AUTO CACHE STRING "The bridge to ${bridge}: AUTO, ON or OFF")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  if(${option} STREQUAL "AUTO")
    if(PROJECT_IS_TOP_LEVEL)
      weft_adapt(${bridge})
    endif()
  elseif(${option})
    weft_adapt(${bridge})
    if(NOT TARGET weft::adapt_${bridge})
      message(FATAL_ERROR "${option} is ON, but the library was not found")
    endif()
  endif()
  if(TARGET weft::adapt_${bridge})
    list(APPEND WEFT_BRIDGES ${bridge})
  endif()
endforeach()
if(WEFT_BRIDGES)
  list(JOIN WEFT_BRIDGES ", " names)
  message(STATUS "weft: bridges to ${names}")
endif()

# What lies in a file named asio_loop.h or asio_test.cc needs the bridge to asio, and so on.
# Sets <out> to the bridge that a file needs, or to "".
function(weft_bridge_of file out)
  cmake_path(GET file STEM name)
  set(${out} "" PARENT_SCOPE)
  if(name MATCHES "^([0-9][0-9]_)?(asio|libuv|glib|qt)(_|$)")
    set(${out} ${CMAKE_MATCH_2} PARENT_SCOPE)
  endif()
endfunction()
