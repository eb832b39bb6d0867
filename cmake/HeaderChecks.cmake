# SPDX-License-Identifier: MIT
# Every public header compiles alone: one translation unit per header, each with nothing but that header. Those that
# need another library are compiled where the bridge to it is on.

file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include"
     "${PROJECT_SOURCE_DIR}/include/weft/*.h")

set(sources "")
foreach(header IN LISTS headers)
  set(bridge "")
  if(header MATCHES "^weft/adapt/")
    weft_bridge_of("${header}" bridge)
  endif()
  if(bridge AND NOT bridge IN_LIST WEFT_BRIDGES)
    continue()
  endif()
  string(REPLACE "/" "." name "${header}")
  set(source "${PROJECT_BINARY_DIR}/headers_alone/${name}.cc")
  file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"@header@\"\n" @ONLY)
  list(APPEND sources "${source}")
endforeach()

if(sources)
  add_library(weft_headers_alone OBJECT ${sources})
  weft_own(weft_headers_alone)
  target_link_libraries(weft_headers_alone PRIVATE weft::weft)
  foreach(bridge IN LISTS WEFT_BRIDGES)
    target_link_libraries(weft_headers_alone PRIVATE weft::adapt_${bridge})
  endforeach()
  set_target_properties(weft_headers_alone PROPERTIES UNITY_BUILD OFF)
  weft_add_test(headers_alone LABEL headers
    COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target weft_headers_alone)
endif()
