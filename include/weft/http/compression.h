// SPDX-License-Identifier: MIT
#pragma once
// weft::http::Compression: a middleware that sends answers by gzip or brotli to whoever accepts it.
//
//     routes.use(http::Compression());                   // before the others: what it wraps is what they answer
//     routes.use(http::Compression({.bytes_min = 4096}));
//
// Handlers do not notice. A body that is filled in is compressed whole; one that is written in pieces is compressed as
// it comes, and flush() brings to the peer all that was written, as without it. The peer says by accept-encoding what
// it takes, with weights (RFC 9110, 12.5.3); brotli goes before gzip where it likes both the same.
//
// Compressed     what is text or like it by its content-type (text/*, JSON, JavaScript, XML, SVG, WebAssembly, …), of bytes_min
//                or more, or of unknown length. Then it has `content-encoding`, its strong ETag becomes a weak one, and
//                it offers no ranges. Whether it is compressed or not, `vary` says that it might have been, of
//                what is text.
// Left alone     what has a content-encoding already, is a part (206, content-range), has no body (204, 304), carries a digest,
//                or says `cache-control: no-transform`; what would not become smaller.
// HEAD           the header fields of GET; the length only where a body was filled in.
// Nothing fits   if the peer accepts neither a coding that we know nor the plain one, it gets the plain one. If it refuses
//                the plain one only, type and size do not matter.
//
// A secret and a text that somebody else has chosen do not belong into one compressed answer: its length tells about
// the secret (BREACH). Say `cache-control: no-transform` there.
//
// Threads        any: it has no state of its own.
// Cancellation   as Response's. A cancelled write() of up to 16 KiB wrote nothing; of more: Error::broken_off follows.
// Allocation     while an answer is on its way: of gzip 268 KiB, of brotli about 1 MiB. An endless one holds it for as long.
#include <cstddef>

#include "weft/core/task.h"
#include "weft/http/router.h"

namespace weft::inline v0::http {

struct CompressionOptions {
  std::size_t bytes_min =
      1024;              // of a body whose length is known: less fits into a packet or two anyhow
  int gzip_level = 6;    // 1, quick, to 9, small
  int brotli_level = 4;  // 0, quick, to 11, small; above 6 it is for files that are compressed once
};

class Compression {
 public:
  // UsageError: there is no such level.
  explicit Compression(CompressionOptions options = {});

  Task<void> operator()(const Request& request, Response& response, Next next) const;

 private:
  CompressionOptions options_;
};

// Whether weft was built with brotli. gzip it always has.
[[nodiscard]] bool has_brotli() noexcept;

}  // namespace weft::inline v0::http
