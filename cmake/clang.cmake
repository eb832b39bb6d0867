# SPDX-License-Identifier: MIT
# Toolchain: the newest clang that weft is tested with, and lld where that clang finds one.
# -DCMAKE_CXX_COMPILER=... on the command line wins.

if(NOT CMAKE_CXX_COMPILER)
  find_program(WEFT_CLANG NAMES clang++-22 clang++-19 REQUIRED)
  set(CMAKE_CXX_COMPILER "${WEFT_CLANG}")
endif()
# For llhttp's sources, which are C: one family of sanitizers in one program.
if(NOT CMAKE_C_COMPILER)
  string(REPLACE "clang++" "clang" weft_clang_c "${CMAKE_CXX_COMPILER}")
  set(CMAKE_C_COMPILER "${weft_clang_c}")
endif()

# This file is read several times per configure run; the cache spares the question to the compiler.
if(NOT DEFINED CACHE{WEFT_LLD})
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-prog-name=ld.lld
                  OUTPUT_VARIABLE weft_lld OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT IS_ABSOLUTE "${weft_lld}")
    set(weft_lld "")
  endif()
  set(WEFT_LLD "${weft_lld}" CACHE INTERNAL "The lld that belongs to the compiler, or empty")
endif()
if(WEFT_LLD)
  set(CMAKE_EXE_LINKER_FLAGS_INIT "-fuse-ld=lld")
  set(CMAKE_SHARED_LINKER_FLAGS_INIT "-fuse-ld=lld")
endif()
