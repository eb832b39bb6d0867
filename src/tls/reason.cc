// SPDX-License-Identifier: MIT
#include "reason.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

namespace weft::inline v0::tls::detail {

namespace {

// A fatal alert that the peer sent has its number here, above SSL_AD_REASON_OFFSET.
Error alert_error(int alert) noexcept {
  switch (alert) {
    case SSL_AD_NO_APPLICATION_PROTOCOL:
      return Error::no_application_protocol;
    case SSL_AD_PROTOCOL_VERSION:
      return Error::no_common_version;
    case SSL_AD_HANDSHAKE_FAILURE:
    case SSL_AD_INSUFFICIENT_SECURITY:
      return Error::no_common_parameters;
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED:
      return Error::own_certificate_refused;
    default:
      return Error::peer_reported;
  }
}

}  // namespace

bool is_verification(unsigned long entry) noexcept {
  return ERR_GET_LIB(entry) == ERR_LIB_SSL &&
         ERR_GET_REASON(entry) == SSL_R_CERTIFICATE_VERIFY_FAILED;
}

Error verification_error(long result) noexcept {
  switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return Error::certificate_expired;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Error::certificate_not_yet_valid;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return Error::certificate_self_signed;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return Error::certificate_unknown_authority;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return Error::certificate_wrong_host;
    case X509_V_ERR_CERT_REVOKED:
      return Error::certificate_revoked;
    case X509_V_ERR_OUT_OF_MEM:
      return Error::out_of_memory;
    default:
      return Error::certificate_refused;
  }
}

Error openssl_error(unsigned long entry) noexcept {
  int reason = ERR_GET_REASON(entry);
  if (reason == ERR_R_MALLOC_FAILURE) return Error::out_of_memory;
  if (ERR_GET_LIB(entry) != ERR_LIB_SSL) return Error::protocol_violation;
  if (reason >= SSL_AD_REASON_OFFSET) return alert_error(reason - SSL_AD_REASON_OFFSET);
  switch (reason) {
    case SSL_R_NO_APPLICATION_PROTOCOL:
      return Error::no_application_protocol;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return Error::certificate_missing;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_VERSION_TOO_HIGH:
      return Error::no_common_version;
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SHARED_GROUPS:
    case SSL_R_NO_SUITABLE_GROUPS:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
      return Error::no_common_parameters;
    default:
      return Error::protocol_violation;
  }
}

}  // namespace weft::inline v0::tls::detail
