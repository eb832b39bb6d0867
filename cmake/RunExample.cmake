# SPDX-License-Identifier: MIT
# cmake -DPROGRAM=<path> [-DEXPECTED=<file>] -P RunExample.cmake
# Runs an example; fails if the example fails or prints something else than the file says.

execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE output RESULT_VARIABLE result)
message("${output}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${result}")
endif()
if(EXPECTED)
  file(READ "${EXPECTED}" expected)
  if(NOT output STREQUAL expected)
    message(FATAL_ERROR "the output differs from ${EXPECTED}, which says:\n${expected}")
  endif()
endif()
