# SPDX-License-Identifier: MIT
# The room durable: target weft_durable. Its engines are there if what they are made of is:
#
#   WEFT_WITH_SQLITE   the engine sqlite://: AUTO: on if SQLite is found; ON: an error if it is not; OFF
#   etcd://            wherever weft::http is

set(WEFT_WITH_SQLITE AUTO CACHE STRING "The lock engine in a file, by SQLite: AUTO, ON or OFF")
set_property(CACHE WEFT_WITH_SQLITE PROPERTY STRINGS AUTO ON OFF)

set(weft_durable_without "")
set(weft_durable_link weft_run)
set(weft_has_sqlite 0)
set(weft_has_etcd 0)

if(WEFT_WITH_SQLITE)
  find_path(WEFT_SQLITE_INCLUDE sqlite3.h)
  find_library(WEFT_SQLITE_LIBRARY sqlite3)
  if(WEFT_SQLITE_INCLUDE AND WEFT_SQLITE_LIBRARY)
    set(weft_has_sqlite 1)
  elseif(WEFT_WITH_SQLITE STREQUAL "ON")
    message(FATAL_ERROR "WEFT_WITH_SQLITE is ON, but SQLite was not found (Debian: libsqlite3-dev)")
  else()
    message(STATUS "weft: no lock engine sqlite://: SQLite was not found (Debian: libsqlite3-dev)")
  endif()
endif()
if(TARGET weft_http)
  set(weft_has_etcd 1)
  set(weft_durable_link weft_http)
endif()
foreach(engine IN ITEMS sqlite etcd)
  if(NOT weft_has_${engine})
    file(GLOB found "${PROJECT_SOURCE_DIR}/src/durable/${engine}/*.cc")
    list(APPEND weft_durable_without ${found})
  endif()
endforeach()

weft_library(durable ROOMS durable WITHOUT ${weft_durable_without} LINK ${weft_durable_link})
target_include_directories(weft_durable PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_compile_definitions(weft_durable PRIVATE WEFT_HAS_SQLITE=${weft_has_sqlite} WEFT_HAS_ETCD=${weft_has_etcd})
if(weft_has_sqlite)
  target_include_directories(weft_durable SYSTEM PRIVATE "${WEFT_SQLITE_INCLUDE}")
  target_link_libraries(weft_durable PRIVATE $<BUILD_INTERFACE:${WEFT_SQLITE_LIBRARY}> $<INSTALL_INTERFACE:sqlite3>)
  set_property(GLOBAL APPEND PROPERTY WEFT_SYSTEM_LIBRARIES sqlite3)
endif()
