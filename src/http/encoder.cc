// SPDX-License-Identifier: MIT
#include "encoder.h"

#include <new>

#include "weft/base/assert.h"
#include "zlib_stream.h"
#if WEFT_HAS_BROTLI
#include <brotli/encode.h>
#endif

namespace weft::inline v0::http::detail {

namespace {

class GzipEncoder final : public Encoder {
 public:
  explicit GzipEncoder(int level)
      : stream_({.level = level, .window_bits = kGzipWindowBits, .memory_level = 8}) {}

  void encode(std::span<const std::byte> bytes, After after, std::string& out) override {
    int flush = after == After::nothing ? Z_NO_FLUSH
                : after == After::flush ? Z_SYNC_FLUSH
                                        : Z_FINISH;
    stream_.run(bytes, flush, out);
  }

 private:
  DeflateStream stream_;
};

#if WEFT_HAS_BROTLI

// 256 KiB: what is further back is seldom worth its memory in a page, and the decoder holds as much.
constexpr std::uint32_t kBrotliWindowBits = 18;

class BrotliEncoder final : public Encoder {
 public:
  explicit BrotliEncoder(int level)
      : state_(::BrotliEncoderCreateInstance(nullptr, nullptr, nullptr)) {
    if (!state_) throw std::bad_alloc();
    ::BrotliEncoderSetParameter(state_.get(), BROTLI_PARAM_QUALITY,
                                static_cast<std::uint32_t>(level));
    ::BrotliEncoderSetParameter(state_.get(), BROTLI_PARAM_LGWIN, kBrotliWindowBits);
  }

  void encode(std::span<const std::byte> bytes, After after, std::string& out) override {
    BrotliEncoderOperation operation = after == After::nothing ? BROTLI_OPERATION_PROCESS
                                       : after == After::flush ? BROTLI_OPERATION_FLUSH
                                                               : BROTLI_OPERATION_FINISH;
    std::size_t left = bytes.size();
    auto next = reinterpret_cast<const std::uint8_t*>(bytes.data());
    do {
      std::size_t room = 0;
      if (!::BrotliEncoderCompressStream(state_.get(), operation, &left, &next, &room, nullptr,
                                         nullptr)) {
        throw std::bad_alloc();  // it fails on nothing else
      }
      std::size_t count = 0;  // all there is
      const std::uint8_t* made = ::BrotliEncoderTakeOutput(state_.get(), &count);
      out.append(reinterpret_cast<const char*>(made), count);
    } while (left > 0 || ::BrotliEncoderHasMoreOutput(state_.get()));
  }

 private:
  struct Destroy {
    void operator()(BrotliEncoderState* state) const noexcept {
      ::BrotliEncoderDestroyInstance(state);
    }
  };
  std::unique_ptr<BrotliEncoderState, Destroy> state_;
};

#endif

}  // namespace

std::unique_ptr<Encoder> make_encoder(Coding coding, const CompressionOptions& options) {
#if WEFT_HAS_BROTLI
  if (coding == Coding::brotli) return std::make_unique<BrotliEncoder>(options.brotli_level);
#endif
  WEFT_ASSERT(coding == Coding::gzip, "an encoder of a coding that is not known");
  return std::make_unique<GzipEncoder>(options.gzip_level);
}

}  // namespace weft::inline v0::http::detail
