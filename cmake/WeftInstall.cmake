# SPDX-License-Identifier: MIT
# The installed package: headers, find_package(weft), pkg-config weft. Include after the last weft_library().

include(CMakePackageConfigHelpers)

set(weft_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/weft")
set(weft_pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/weft" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h")
install(EXPORT weft-targets NAMESPACE weft:: FILE weftTargets.cmake DESTINATION "${weft_package_dir}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/weftConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/weftConfig.cmake" INSTALL_DESTINATION "${weft_package_dir}")
# Before 1.0 a minor release may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/weftConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/weftConfig.cmake" "${PROJECT_BINARY_DIR}/weftConfigVersion.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/WeftAdapt.cmake" DESTINATION "${weft_package_dir}")

# A static link wants users before what they use: the reverse of the order in which the libraries were made.
get_property(weft_libraries GLOBAL PROPERTY WEFT_LIBRARIES)
list(REVERSE weft_libraries)
get_property(weft_system_libraries GLOBAL PROPERTY WEFT_SYSTEM_LIBRARIES)
list(APPEND weft_libraries ${weft_system_libraries})
list(TRANSFORM weft_libraries PREPEND "-l")
list(TRANSFORM WEFT_PUBLIC_DEFINITIONS PREPEND "-D" OUTPUT_VARIABLE weft_definitions)
set(WEFT_PC_REQUIRES "")
if(WEFT_HAS_TLS)
  list(APPEND weft_definitions -DWEFT_HAS_TLS=1)
  set(WEFT_PC_REQUIRES "openssl >= 3.0")
endif()
string(JOIN " " WEFT_PC_CFLAGS -pthread ${WEFT_PUBLIC_OPTIONS} ${weft_definitions} ${WEFT_SANITIZE_OPTIONS})
string(JOIN " " WEFT_PC_LIBS ${weft_libraries} ${WEFT_PC_MORE_LIBS} -pthread ${WEFT_SANITIZE_OPTIONS})

# The prefix is found from where weft.pc lies, so that the installed tree can be moved.
file(RELATIVE_PATH WEFT_PC_PREFIX "/prefix/${weft_pc_dir}" "/prefix")
string(REGEX REPLACE "/$" "" WEFT_PC_PREFIX "${WEFT_PC_PREFIX}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/weft.pc.in" "${PROJECT_BINARY_DIR}/weft.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/weft.pc" DESTINATION "${weft_pc_dir}")
