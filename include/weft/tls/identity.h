// SPDX-License-Identifier: MIT
#pragma once
// weft::tls::Identity: a certificate and its private key, as PEM text.
//
//     Result<tls::Identity> ours = tls::load_identity("chain.pem", "key.pem");
//     tls::Identity development = tls::self_signed({"localhost", "127.0.0.1"});
//
// Threads        a value.
#include <chrono>
#include <string>
#include <vector>

#include "weft/base/result.h"

namespace weft::inline v0::tls {

struct Identity {
  std::string certificate_pem;  // the certificate first, then those that lead to its root
  std::string key_pem;          // without a passphrase
};

// Blocks, as files do: for start-up, or inside of blocking(). Errors: those of the files. What is in them is
// looked at by who uses it.
[[nodiscard]] Result<Identity> load_identity(const std::string& certificate_path,
                                             const std::string& key_path);

struct SelfSignedOptions {
  std::chrono::system_clock::duration valid_for = std::chrono::days(30);
  // A clock that is a little behind ours still takes it.
  std::chrono::system_clock::time_point valid_from =
      std::chrono::system_clock::now() - std::chrono::hours(1);
};

// For development and tests: a new P-256 key, and a certificate for `names`, hosts or IP addresses, that nobody vouches
// for. Who has it among its roots accepts it.
// Throws: UsageError without a name; std::bad_alloc.
[[nodiscard]] Identity self_signed(const std::vector<std::string>& names,
                                   SelfSignedOptions options = {});

}  // namespace weft::inline v0::tls
