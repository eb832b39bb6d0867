// SPDX-License-Identifier: MIT
#include "weft/http/response.h"

#include <utility>

#include "weft/base/assert.h"

namespace weft::inline v0::http {

namespace {

void require_free(std::string_view name) {
  for (std::string_view own : {"content-length", "transfer-encoding", "connection"}) {
    if (!equal_ignoring_case(name, own)) continue;
    throw UsageError("header field " + std::string(own) +
                     " is the server's own: use content_length() or close_after()");
  }
}

}  // namespace

void Response::require_head(const char* what) const {
  if (has_begun_) {
    throw UsageError(std::string(what) +
                     " after the head was sent: call it before the first write()");
  }
}

void Response::status(int code) {
  require_head("Response::status()");
  if (code < 200 || code > 599) {
    throw UsageError("a response has a status between 200 and 599, not " + std::to_string(code));
  }
  status_ = code;
}

void Response::header(std::string_view name, std::string_view value) {
  require_head("Response::header()");
  require_free(name);
  headers_.add(name, value);
}

void Response::set_header(std::string_view name, std::string_view value) {
  require_head("Response::set_header()");
  require_free(name);
  headers_.set(name, value);
}

void Response::remove_header(std::string_view name) {
  require_head("Response::remove_header()");
  headers_.remove(name);
}

void Response::body(std::string bytes) {
  require_head("Response::body()");
  body_ = std::move(bytes);
}

void Response::body(std::string_view type, std::string bytes) {
  require_head("Response::body()");
  headers_.set("content-type", type);
  body_ = std::move(bytes);
}

void Response::content_length(std::uint64_t bytes) {
  require_head("Response::content_length()");
  length_ = bytes;
}

Task<Result<void>> Response::write(std::span<const std::byte> bytes) {
  return sink_->write_body(*this, bytes);
}

Task<Result<void>> Response::write_file(Descriptor& file, FileRange range) {
  return sink_->write_file(*this, file, range);
}

Task<Result<void>> Response::flush() { return sink_->flush(*this); }

void Response::rest(HeaderLines& lines) noexcept {
  // Not by assignment: libstdc++ keeps the memory when what is assigned needs none.
  if (body_.capacity() > std::string().capacity()) std::string().swap(body_);
  body_.clear();
  headers_.clear();
  headers_.swap(lines);
}

void Response::reset(detail::ResponseSink& sink) noexcept {
  sink_ = &sink;
  status_ = 200;
  has_begun_ = false;
  closes_ = false;
  length_.reset();
  headers_.clear();
  body_.clear();
}

}  // namespace weft::inline v0::http
