// SPDX-License-Identifier: MIT
#pragma once
// OpenSSL's reasons, as Errors.
#include "weft/tls/error.h"

namespace weft::inline v0::tls::detail {

// Whether this entry of OpenSSL's error queue says that a certificate was not accepted; why is the verification's result.
[[nodiscard]] bool is_verification(unsigned long entry) noexcept;
[[nodiscard]] Error verification_error(long result) noexcept;
// Of any other entry. 0: the queue was empty.
[[nodiscard]] Error openssl_error(unsigned long entry) noexcept;

}  // namespace weft::inline v0::tls::detail
