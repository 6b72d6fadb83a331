// Compressed data for tests.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <stdexcept>
#include <string>

namespace phasor {

inline std::string gzip_of(const std::string& text) {
  z_stream stream{};
  constexpr int kGzip = 16;
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzip + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string bytes(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

inline std::string zstd_of(const std::string& text) {
  std::string bytes(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), 3);
  if (ZSTD_isError(size) != 0) throw std::runtime_error("ZSTD_compress");
  bytes.resize(size);
  return bytes;
}

}  // namespace phasor
