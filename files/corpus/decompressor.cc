#include "files/corpus/decompressor.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>

namespace infer {
namespace {

class Gzip : public Decompressor {
 public:
  Gzip() {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, kGzipOnly + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }

  size_t run(std::string_view& in, std::span<char> out) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    // Also without input: the stream may hold back what had no room.
    for (bool more = true; more && stream_.avail_out > 0;) {
      if (complete_) {  // gzip(1) ignores zeros after the last member, which tapes have
        in.remove_prefix(std::min(in.find_first_not_of('\0'), in.size()));
        if (in.empty()) break;
        inflateReset(&stream_);
        complete_ = false;
      }
      const uInt room = stream_.avail_out;
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
      stream_.avail_in = static_cast<uInt>(in.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      more = stream_.avail_in < in.size() || stream_.avail_out < room;
      in.remove_prefix(in.size() - stream_.avail_in);
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        throw DecompressionError(
            fmt::format("is damaged: {}", stream_.msg == nullptr ? "no gzip data" : stream_.msg));
      }
      complete_ = status == Z_STREAM_END;
    }
    return out.size() - stream_.avail_out;
  }

  bool complete() const override { return complete_; }

 private:
  z_stream stream_{};
  bool complete_ = false;
};

class Zstd : public Decompressor {
 public:
  Zstd() : stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }

  size_t run(std::string_view& in, std::span<char> out) override {
    ZSTD_outBuffer filled{out.data(), out.size(), 0};
    for (bool more = true; more && filled.pos < filled.size;) {
      ZSTD_inBuffer taken{in.data(), in.size(), 0};
      const size_t before = filled.pos;
      const size_t status = ZSTD_decompressStream(stream_.get(), &filled, &taken);
      if (ZSTD_isError(status) != 0) {
        throw DecompressionError(fmt::format("is damaged: {}", ZSTD_getErrorName(status)));
      }
      more = taken.pos > 0 || filled.pos > before;
      if (more) complete_ = status == 0;
      in.remove_prefix(taken.pos);
    }
    return filled.pos;
  }

  bool complete() const override { return complete_; }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  bool complete_ = false;
};

template <typename Format>
std::unique_ptr<Decompressor> make() {
  return std::make_unique<Format>();
}

std::unique_ptr<Decompressor> refuse() {
  throw DecompressionError(
      "is compressed by something else than gzip and zstd; compress it with one of these, or not "
      "at all");
}

struct Format {
  std::string_view magic;
  std::unique_ptr<Decompressor> (*make)();
};

constexpr std::array kFormats = {Format{"\x1F\x8B", make<Gzip>},
                                 Format{"\x28\xB5\x2F\xFD", make<Zstd>},
                                 Format{"\xFD\x37zXZ", refuse},       // xz
                                 Format{"BZh91AY&SY", refuse},        // bzip2
                                 Format{"\x04\x22\x4D\x18", refuse},  // lz4
                                 Format{"PK\x03\x04", refuse}};       // zip

/// A skippable frame, with which zstd data may begin (pzstd's does): its first byte is 50 to 5F.
std::string frame_of(std::string_view beginning) {
  std::string frame(beginning);
  if (!frame.empty() && (frame[0] & 0xF0) == 0x50) frame[0] = 0x50;
  return frame;
}
constexpr std::string_view kSkippable = "\x50\x2A\x4D\x18";

}  // namespace

std::unique_ptr<Decompressor> Decompressor::for_data(std::string_view beginning) {
  for (const Format& format : kFormats) {
    if (beginning.starts_with(format.magic)) return format.make();
  }
  if (frame_of(beginning).starts_with(kSkippable)) return make<Zstd>();
  return nullptr;
}

bool Decompressor::undecided(std::string_view beginning) {
  const auto may_become = [](std::string_view bytes, std::string_view magic) {
    return bytes.size() < magic.size() && magic.starts_with(bytes);
  };
  return may_become(frame_of(beginning), kSkippable) ||
         std::ranges::any_of(
             kFormats, [&](const Format& format) { return may_become(beginning, format.magic); });
}

}  // namespace infer
