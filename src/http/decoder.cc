// SPDX-License-Identifier: MIT
#include "decoder.h"

#include <new>

#include "weft/base/assert.h"
#include "zlib_stream.h"
#if WEFT_HAS_BROTLI
#include <brotli/decode.h>
#endif

namespace weft::inline v0::http::detail {

namespace {

// RFC 1952, 2.2: one member behind the other. What is behind the last and is none is an error.
class GzipDecoder final : public Decoder {
 public:
  Step decode(std::span<const std::byte> bytes, std::span<std::byte> room) override {
    Step all;
    while (true) {
      if (is_whole_ && !bytes.empty()) {
        stream_.reset();
        is_whole_ = false;
      }
      InflateStream::Step step = stream_.run(bytes, room);
      all.taken += step.taken;
      all.made += step.made;
      all.is_bad = step.end == InflateStream::End::bad;
      is_whole_ = step.end == InflateStream::End::reached || is_whole_;
      bytes = bytes.subspan(step.taken);
      room = room.subspan(step.made);
      if (step.end != InflateStream::End::reached || bytes.empty() || room.empty()) return all;
    }
  }
  bool is_whole() const noexcept override { return is_whole_; }

 private:
  InflateStream stream_{kGzipWindowBits};
  bool is_whole_ = false;
};

#if WEFT_HAS_BROTLI

class BrotliDecoder final : public Decoder {
 public:
  BrotliDecoder() : state_(::BrotliDecoderCreateInstance(nullptr, nullptr, nullptr)) {
    if (!state_) throw std::bad_alloc();
  }

  Step decode(std::span<const std::byte> bytes, std::span<std::byte> room) override {
    if (is_whole()) return {.taken = 0, .made = 0, .is_bad = !bytes.empty()};
    std::size_t left = bytes.size(), space = room.size();
    auto next = reinterpret_cast<const std::uint8_t*>(bytes.data());
    auto out = reinterpret_cast<std::uint8_t*>(room.data());
    BrotliDecoderResult result =
        ::BrotliDecoderDecompressStream(state_.get(), &left, &next, &space, &out, nullptr);
    bool is_behind_end = result == BROTLI_DECODER_RESULT_SUCCESS && left > 0;
    return {.taken = bytes.size() - left,
            .made = room.size() - space,
            .is_bad = result == BROTLI_DECODER_RESULT_ERROR || is_behind_end};
  }
  bool is_whole() const noexcept override { return ::BrotliDecoderIsFinished(state_.get()) != 0; }

 private:
  struct Destroy {
    void operator()(BrotliDecoderState* state) const noexcept {
      ::BrotliDecoderDestroyInstance(state);
    }
  };
  std::unique_ptr<BrotliDecoderState, Destroy> state_;
};

#endif

}  // namespace

std::unique_ptr<Decoder> make_decoder(Coding coding) {
#if WEFT_HAS_BROTLI
  if (coding == Coding::brotli) return std::make_unique<BrotliDecoder>();
#endif
  WEFT_ASSERT(coding == Coding::gzip, "a decoder of a coding that is not known");
  return std::make_unique<GzipDecoder>();
}

}  // namespace weft::inline v0::http::detail
