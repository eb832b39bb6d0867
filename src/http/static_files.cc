// SPDX-License-Identifier: MIT
#include "weft/http/static_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "coding.h"
#include "date.h"
#include "file_request.h"
#include "weft/http/url.h"
#include "weft/io/blocking.h"

namespace weft::inline v0::http {

namespace {

// What is opened, and what it is.
struct Opened {
  UniqueFd fd;
  struct stat status{};
};

std::error_code last_error() { return {errno, std::system_category()}; }

Result<Opened> open_beneath(int root, const std::string& path, bool only_cached) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;  // a FIFO must not block us
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
#ifdef RESOLVE_CACHED
  if (only_cached) how.resolve |= RESOLVE_CACHED;
#endif
  Opened opened;
  opened.fd =
      UniqueFd(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
  if (!opened.fd || ::fstat(opened.fd.get(), &opened.status) != 0)
    return std::unexpected(last_error());
  return opened;
}

// What the kernel has at hand is opened here; for the rest it may have to wait for the disk, and does so elsewhere.
Task<Result<Opened>> open_file(int root, std::string path) {
  Result<Opened> opened = open_beneath(root, path, true);
  if (opened || (opened.error() != std::errc::resource_unavailable_try_again &&
                 opened.error() != std::errc::invalid_argument)) {
    co_return opened;
  }
  auto open = [&] { return open_beneath(root, path, false); };
  co_return co_await blocking(open);
}

std::string etag_of(const struct stat& status) {
  char text[80];
  std::snprintf(text, sizeof text, "\"%llx-%llx-%llx\"",
                static_cast<unsigned long long>(status.st_ino),
                static_cast<unsigned long long>(status.st_size),
                static_cast<unsigned long long>(status.st_mtim.tv_sec) * 1'000'000'000ull +
                    static_cast<unsigned long long>(status.st_mtim.tv_nsec));
  return text;
}

// Nothing that is not there for the outside: names that begin with a dot, and NUL.
bool may_be_seen(std::string_view path, bool hidden) {
  if (path.find('\0') != path.npos) return false;
  if (hidden) return true;
  return !path.starts_with('.') && path.find("/.") == path.npos;
}

void fail(Response& response, int status) {
  response.status(status);
  response.body("text/plain", std::string(reason_phrase(status)) + "\n");
}

int status_of(const std::error_code& error) {
  if (error == std::errc::permission_denied || error == std::errc::operation_not_permitted)
    return 403;
  if (error == std::errc::too_many_files_open || error == std::errc::too_many_files_open_in_system)
    return 503;
  return 404;  // also what would leave the directory
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

// What a listing shows of an entry: a directory with a slash; nothing of what is not served.
std::string shown_name(const dirent& entry, bool hidden) {
  std::string name = entry.d_name;
  if (name == "." || name == ".." || (!hidden && name.starts_with('.'))) return "";
  if (entry.d_type == DT_DIR) return name + '/';
  bool may_be_file = entry.d_type == DT_REG || entry.d_type == DT_LNK || entry.d_type == DT_UNKNOWN;
  return may_be_file ? name : "";
}

// Blocks.
std::string listing(UniqueFd directory, std::string_view title, bool is_root,
                    const StaticFilesOptions& options) {
  std::vector<std::string> names;
  bool has_more = false;
  if (DIR* entries = ::fdopendir(directory.get())) {
    static_cast<void>(directory.release());
    while (const dirent* entry = has_more ? nullptr : ::readdir(entries)) {
      std::string name = shown_name(*entry, options.hidden);
      if (name.empty()) continue;
      has_more = names.size() == options.listed_max;
      if (!has_more) names.push_back(std::move(name));
    }
    ::closedir(entries);
  }
  std::ranges::sort(names);
  std::string heading = escaped(title);
  std::string html = "<!doctype html><meta charset=\"utf-8\"><title>" + heading + "</title><h1>" +
                     heading + "</h1><ul>\n";
  if (!is_root) html += "<li><a href=\"../\">../</a></li>\n";
  for (const std::string& name : names) {
    bool is_directory = name.ends_with('/');
    std::string link =
        percent_encoded(std::string_view(name).substr(0, name.size() - (is_directory ? 1 : 0)));
    html += "<li><a href=\"./" + link + (is_directory ? "/" : "") + "\">" + escaped(name) +
            "</a></li>\n";
  }
  html += "</ul>\n";
  if (has_more) html += "<p>and more: these are " + std::to_string(names.size()) + " of them</p>\n";
  return html;
}

// RFC 9110, 12.5.3: the file in the coding that the peer likes best, if somebody has put it there.
Task<detail::Coding> open_precompressed(int root, const std::string& path, const Request& request,
                                        Opened& opened) {
  using detail::Coding;
  // Also a coding that was not compiled in: the file is only sent.
  std::vector<Coding> offered{Coding::brotli, Coding::gzip};
  detail::Acceptance accepts = detail::acceptance_of(request.headers());
  while (true) {
    Coding coding = detail::choose_coding(accepts, offered);
    if (coding == Coding::identity) co_return coding;
    Result<Opened> found =
        co_await open_file(root, path + (coding == Coding::brotli ? ".br" : ".gz"));
    auto age = [](const struct stat& of) {
      return std::pair(of.st_mtim.tv_sec, of.st_mtim.tv_nsec);
    };
    if (found && S_ISREG(found->status.st_mode) && age(found->status) >= age(opened.status)) {
      opened = std::move(*found);
      co_return coding;
    }
    std::erase(offered, coding);
  }
}

Task<void> send(const Request& request, Response& response, Opened opened, std::string_view name,
                detail::Coding coding, std::chrono::seconds max_age) {
  detail::FileIdentity file;
  file.bytes = static_cast<std::uint64_t>(opened.status.st_size);
  file.modified = opened.status.st_mtim.tv_sec;
  file.etag = etag_of(opened.status);
  detail::FileAnswer answer = detail::answer_for(request.headers(), request.method(), file);
  response.header("accept-ranges", "bytes");
  response.header("etag", file.etag);
  response.header("last-modified", detail::http_date(file.modified));
  if (max_age.count() > 0)
    response.header("cache-control", "max-age=" + std::to_string(max_age.count()));
  if (answer.status == 416) {
    response.header("content-range", "bytes */" + std::to_string(file.bytes));
  } else if (answer.status == 206) {
    std::uint64_t last = answer.range.offset + answer.range.bytes - 1;
    response.header("content-range", "bytes " + std::to_string(answer.range.offset) + "-" +
                                         std::to_string(last) + "/" + std::to_string(file.bytes));
  }
  if (answer.status >= 400) {
    fail(response, answer.status);
    co_return;
  }
  response.status(answer.status);
  if (answer.status == 304) co_return;
  response.header("content-type", content_type_of(name));
  if (coding != detail::Coding::identity) response.header("content-encoding", to_string(coding));
  response.content_length(answer.range.bytes);
  Descriptor descriptor(std::move(opened.fd));
  // What goes wrong now ends the connection (H4).
  Result<void> sent = co_await response.write_file(descriptor, answer.range);
  static_cast<void>(sent);
}

}  // namespace

Result<StaticFiles> StaticFiles::open(const std::string& directory, StaticFilesOptions options) {
  UniqueFd root(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return std::unexpected(last_error());
  Result<Opened> probe = open_beneath(root.get(), ".", false);
  if (!probe && probe.error() == std::errc::function_not_supported)
    return std::unexpected(probe.error());
  return StaticFiles(std::move(root), std::move(options));
}

Task<void> StaticFiles::handle_request(const Request& request, Response& response, Connection&) {
  if (request.method() != Method::get && request.method() != Method::head) {
    fail(response, 405);
    response.header("allow", "GET, HEAD");
    co_return;
  }
  std::optional<std::string> path = request.find_parameter("path");
  if (!path) path = percent_decoded(request.path().substr(1));
  if (!path || !may_be_seen(*path, options_.hidden)) {
    fail(response, 404);
    co_return;
  }
  bool names_directory = path->empty() || path->ends_with('/');
  std::string where = path->empty() ? "." : *path;
  Result<Opened> opened = co_await open_file(root_.get(), where);
  if (opened && S_ISDIR(opened->status.st_mode)) {
    if (!names_directory) {
      response.status(301);
      std::string to(request.path());
      to += '/';
      if (!request.query().empty()) to.append("?").append(request.query());
      // A second slash at the front would be the name of another host.
      to.erase(1, to.find_first_not_of('/') == to.npos ? 0 : to.find_first_not_of('/') - 1);
      response.header("location", to);
      co_return;
    }
    Result<Opened> index = co_await open_file(root_.get(), where + "/" + options_.index);
    if (!index && options_.lists_directories) {
      std::string title = "/" + *path;
      auto list = [&] { return listing(std::move(opened->fd), title, path->empty(), options_); };
      std::string html = co_await blocking(list);
      response.body("text/html; charset=utf-8", std::move(html));
      co_return;
    }
    opened = std::move(index);
    *path += options_.index;
  } else if (opened && names_directory) {
    opened = std::unexpected(std::make_error_code(std::errc::not_a_directory));
  }
  if (opened && !S_ISREG(opened->status.st_mode)) {
    opened = std::unexpected(std::make_error_code(std::errc::no_such_file_or_directory));
  }
  if (!opened) {
    fail(response, status_of(opened.error()));
    co_return;
  }
  detail::Coding coding = detail::Coding::identity;
  if (options_.precompressed && detail::is_compressible(content_type_of(*path))) {
    coding = co_await open_precompressed(root_.get(), *path, request, *opened);
    detail::vary_by_coding(response);
  }
  co_await send(request, response, std::move(*opened), *path, coding, options_.max_age);
}

std::string_view content_type_of(std::string_view file_name) noexcept {
  struct Type {
    std::string_view extension, type;
  };
  static constexpr std::array kTypes = {
      Type{"html", "text/html; charset=utf-8"},
      Type{"htm", "text/html; charset=utf-8"},
      Type{"css", "text/css; charset=utf-8"},
      Type{"js", "text/javascript; charset=utf-8"},
      Type{"mjs", "text/javascript; charset=utf-8"},
      Type{"json", "application/json"},
      Type{"txt", "text/plain; charset=utf-8"},
      Type{"md", "text/markdown; charset=utf-8"},
      Type{"csv", "text/csv; charset=utf-8"},
      Type{"xml", "application/xml"},
      Type{"svg", "image/svg+xml"},
      Type{"png", "image/png"},
      Type{"jpg", "image/jpeg"},
      Type{"jpeg", "image/jpeg"},
      Type{"gif", "image/gif"},
      Type{"webp", "image/webp"},
      Type{"avif", "image/avif"},
      Type{"ico", "image/x-icon"},
      Type{"woff", "font/woff"},
      Type{"woff2", "font/woff2"},
      Type{"wasm", "application/wasm"},
      Type{"pdf", "application/pdf"},
      Type{"zip", "application/zip"},
      Type{"gz", "application/gzip"},
      Type{"mp4", "video/mp4"},
      Type{"webm", "video/webm"},
      Type{"mp3", "audio/mpeg"},
  };
  std::size_t dot = file_name.rfind('.');
  if (dot != file_name.npos && file_name.find('/', dot) == file_name.npos) {
    for (const Type& known : kTypes) {
      if (equal_ignoring_case(file_name.substr(dot + 1), known.extension)) return known.type;
    }
  }
  return "application/octet-stream";
}

}  // namespace weft::inline v0::http
