# SPDX-License-Identifier: MIT
# What weft decides for the whole build, and therefore only when it is the whole build.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Presets cannot ask whether a program exists, so the launcher is chosen here.
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(WEFT_CCACHE ccache)
  if(WEFT_CCACHE)
    # Paths within the tree count from where the compiler runs, so that what one checkout has compiled serves another.
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${WEFT_CCACHE}")
  endif()
endif()
