// SPDX-License-Identifier: MIT
#pragma once
// weft::http::StaticFiles: a Handler that answers with the files of a directory.
//
//     StaticFiles files = or_throw(StaticFiles::open("public"));
//     routes.get("/{path...}", files);
//
// The path is the Router's {path...}, or the whole one if there is none. A path never leaves the directory: not by
// "..", not by a symbolic link (openat2(2) with RESOLVE_BENEATH; Linux 5.6). What begins with a dot is not there, unless
// `hidden` says so. A directory is answered with its index, or its listing, or 404.
//
// Beside a file "page.html" there may be "page.html.br" and "page.html.gz": whoever accepts that coding gets them, as they are, under
// the name and type of the file. One that is older than its file is stale, and as if it was not there. To compress files that
// have none: Compression (compression.h).
//
// Knows          HEAD; ETag and Last-Modified with If-None-Match, If-Modified-Since, If-Match, If-Unmodified-Since (RFC 9110,
//                13); one range of bytes with If-Range (14). Several ranges are answered with the whole.
// Threads        any, once it is open.
// Cancellation   where it waits for the peer or for the disk.
// Allocation     a frame; a buffer while a file is sent on a driver that cannot send it by itself.
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/base/unique_fd.h"
#include "weft/http/handler.h"

namespace weft::inline v0::http {

struct StaticFilesOptions {
  std::string index = "index.html";
  bool lists_directories = false;   // that have no index
  std::size_t listed_max = 10'000;  // names of one; that there are more is said
  bool hidden = false;              // what begins with a dot is there, too
  bool precompressed = true;        // files beside others, see above
  std::chrono::seconds max_age{0};  // of `cache-control`; 0: the client asks every time
};

class StaticFiles final : public Handler {
 public:
  // Errors: of open(2); function_not_supported before Linux 5.6.
  [[nodiscard]] static Result<StaticFiles> open(const std::string& directory,
                                                StaticFilesOptions options = {});

  Task<void> handle_request(const Request& request, Response& response,
                            Connection& connection) override;

 private:
  StaticFiles(UniqueFd root, StaticFilesOptions options) noexcept
      : root_(std::move(root)), options_(std::move(options)) {}

  UniqueFd root_;
  StaticFilesOptions options_;
};

// "text/html; charset=utf-8" of "page.html". What is not known: "application/octet-stream".
[[nodiscard]] std::string_view content_type_of(std::string_view file_name) noexcept;

}  // namespace weft::inline v0::http
