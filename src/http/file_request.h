// SPDX-License-Identifier: MIT
#pragma once
// What a request asks of one file: RFC 9110, sections 13 (conditions) and 14 (ranges). Pure: no file is touched.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/http/request.h"
#include "weft/http/response.h"

namespace weft::inline v0::http::detail {

// What a file is known by.
struct FileIdentity {
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  // seconds since 1970
  std::string etag;           // with its quotes
};

struct FileAnswer {
  int status = 200;  // 200, 206, 304, 412 or 416
  FileRange range;   // of 200 and 206
};
[[nodiscard]] FileAnswer answer_for(const Headers& headers, Method method,
                                    const FileIdentity& file);

}  // namespace weft::inline v0::http::detail
