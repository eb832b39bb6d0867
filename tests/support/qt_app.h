// SPDX-License-Identifier: MIT
#pragma once
// An application of Qt's for the time of one test, without a display.

namespace weft::test {

template <class App>
class QtApp {
 public:
  QtApp() = default;
  QtApp(const QtApp&) = delete;
  QtApp& operator=(const QtApp&) = delete;

  auto& get() { return app_; }

 private:
  char name_[5] = "test";
  char platform_[10] = "-platform";
  char offscreen_[10] = "offscreen";
  char* arguments_[4] = {name_, platform_, offscreen_, nullptr};
  int count_ = 3;
  App app_{count_, arguments_};
};

}  // namespace weft::test
