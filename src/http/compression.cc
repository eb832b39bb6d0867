// SPDX-License-Identifier: MIT
#include "weft/http/compression.h"

#include <algorithm>

#include "coded_sink.h"
#include "weft/base/assert.h"

namespace weft::inline v0::http {

Compression::Compression(CompressionOptions options) : options_(options) {
  if (options.gzip_level < 1 || options.gzip_level > 9) {
    throw UsageError("CompressionOptions::gzip_level is between 1 and 9");
  }
  if (options.brotli_level < 0 || options.brotli_level > 11) {
    throw UsageError("CompressionOptions::brotli_level is between 0 and 11");
  }
}

Task<void> Compression::operator()(const Request& request, Response& response, Next next) const {
  detail::CodedSink sink(request, response, options_);
  co_await next();
  co_await sink.finish();
}

bool has_brotli() noexcept {
  return std::ranges::count(detail::known_codings(), detail::Coding::brotli) > 0;
}

}  // namespace weft::inline v0::http
