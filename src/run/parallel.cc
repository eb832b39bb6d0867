// SPDX-License-Identifier: MIT
#include "weft/run/parallel.h"

#include "weft/run/io_context.h"

namespace weft::inline v0::detail {

ParallelWork::ParallelWork(std::size_t size, const ParallelOptions& options) : size_(size) {
  IOContext* context = IOContext::current_or_null();
  spreads_ = context != nullptr;
  tasks_ = options.tasks;
  if (tasks_ == 0) tasks_ = context ? context->workers() : 1;
  grain_ = options.grain;
  if (grain_ == 0) {
    grain_ = std::clamp<std::size_t>(size / (tasks_ * kBlocksPerTask), 1, kGrainMax);
  }
  blocks_ = size / grain_ + (size % grain_ != 0);
  tasks_ = std::min(tasks_, blocks_);
}

}  // namespace weft::inline v0::detail
