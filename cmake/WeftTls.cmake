# SPDX-License-Identifier: MIT
# weft::tls, over OpenSSL. Sets WEFT_HAS_TLS; who links weft::tls has the macro WEFT_HAS_TLS.
#
#   WEFT_WITH_TLS
#     AUTO   on if OpenSSL is found
#     ON     an error if it is not found
#     OFF

set(WEFT_WITH_TLS AUTO CACHE STRING "TLS, over OpenSSL: AUTO, ON or OFF")
set_property(CACHE WEFT_WITH_TLS PROPERTY STRINGS AUTO ON OFF)
set(WEFT_HAS_TLS FALSE)
if(WEFT_WITH_TLS)
  find_package(OpenSSL 3.0 QUIET)
  if(OPENSSL_FOUND)
    set(WEFT_HAS_TLS TRUE)
    weft_library(tls ROOMS tls LINK weft_net OpenSSL::SSL OpenSSL::Crypto)
    target_compile_definitions(weft_tls PUBLIC WEFT_HAS_TLS=1)
  elseif(WEFT_WITH_TLS STREQUAL "AUTO")
    message(STATUS "weft: no TLS, because OpenSSL 3.0 was not found (Debian: libssl-dev)")
  else()
    message(FATAL_ERROR "WEFT_WITH_TLS is ON, but OpenSSL 3.0 was not found (Debian: libssl-dev)")
  endif()
endif()
