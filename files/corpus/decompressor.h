// gzip and zstd, as a stream.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>

namespace infer {

/// What is wrong with compressed data: the end of a sentence that begins with the file's name.
class DecompressionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Several members (gzip) or frames (zstd), one after another, are one stream.
class Decompressor {
 public:
  /// Null for data that is not compressed. Throws DecompressionError for formats that are not
  /// read here.
  static std::unique_ptr<Decompressor> for_data(std::string_view beginning);
  /// Whether more bytes are needed to tell.
  static bool undecided(std::string_view beginning);

  virtual ~Decompressor() = default;
  Decompressor() = default;
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  /// Takes from the beginning of `in` and fills the beginning of `out`. Returns the bytes of `out`;
  /// with less than all of them, `in` is used up. Throws DecompressionError.
  virtual size_t run(std::string_view& in, std::span<char> out) = 0;
  /// Whether the data may end here.
  virtual bool complete() const = 0;
};

}  // namespace infer
