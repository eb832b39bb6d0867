// SPDX-License-Identifier: MIT
#pragma once
// A directory that is gone afterwards, with what is in it.
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace weft::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() : TemporaryDirectory(std::filesystem::temp_directory_path()) {}
  explicit TemporaryDirectory(const std::filesystem::path& where) {
    std::string pattern = (where / "weft-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) {
      throw std::system_error(errno, std::generic_category(), "mkdtemp");
    }
    path_ = pattern;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }

  // Where a sync costs nothing, if there is such a place: for tests that make many.
  [[nodiscard]] static std::filesystem::path where_syncs_are_cheap() {
    std::filesystem::path memory = "/dev/shm";
    return ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
  }

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  // The path of a file in it.
  [[nodiscard]] std::string file(std::string_view name) const { return (path_ / name).string(); }
  // Makes one, and the directories on its way. Returns: its path.
  std::string write(std::string_view name, std::string_view text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace weft::test
