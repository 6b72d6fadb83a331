// Lines in, however many and however long.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "files/corpus/decompressor.h"
#include "infer/cli/interrupts.h"

namespace infer {

constexpr size_t kMaxLineBytes = 1 << 20;  // what follows is left out

struct Line {
  std::string text;      // without "\n" or "\r\n"
  int64_t left_out = 0;  // bytes beyond kMaxLineBytes
  int64_t file = 0;      // the number of its file, from 0
  int64_t number = 0;    // in its file, from 1
};

/// Where a line begins, and what is before it.
struct Place {
  int64_t file = 0;    // the number of the file, from 0
  int64_t offset = 0;  // in the file, in bytes; of what is compressed, after decompression
  int64_t line = 0;    // in the file, from 0
};

/// Reads files one after another, or standard input for "-", line by line in bounded memory and
/// without byte-order marks; or gives the texts it was made with. Data that is compressed by gzip
/// or zstd is decompressed. To be made before any thread begins: threads inherit what signals it
/// holds back.
class LineReader {
 public:
  /// Says that a terminal is read, unless `quiet`. Opens a file when its lines are asked for; all
  /// that reads throws InvalidArgument naming a file that cannot be read.
  LineReader(std::vector<std::string> files, bool quiet);
  /// Opens the file now.
  LineReader(const std::string& file, bool quiet) : LineReader(std::vector{file}, quiet) {
    open_file(0);
  }
  /// Gives these texts, which may hold any character.
  explicit LineReader(const std::vector<std::string>& texts)
      : texts_(texts.rbegin(), texts.rend()) {}
  ~LineReader() { close_file(); }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// Nothing at the end, and where a signal came while there was nothing to read.
  std::optional<Line> next();
  /// Whether next() has something at once.
  bool ready() const;

  /// Whether the file being read is; waits for its first bytes.
  bool compressed() { return begin_file() && decompressor_ != nullptr; }

  /// Of the next line, or the end of the line before it.
  Place place() const { return place_; }
  /// The next line is the one at `place`. Forward in a compressed file, and back to its beginning
  /// and from there, this reads all that is before it; at once elsewhere.
  void go_to(const Place& place);
  /// Files that are not regular, in which lines may come for ever, are errors.
  void refuse_pipes() { takes_pipes_ = false; }
  /// next() gives so many lines more, of files up to this one.
  void stop_after(int64_t lines, int64_t last_file = std::numeric_limits<int64_t>::max()) {
    lines_left_ = lines;
    last_file_ = last_file;
  }
  /// After an exception, go_to() begins anew.
  void close_file();

  int64_t bytes_read() const;                 // of the files, for the lines that next() gave
  int64_t size() const { return size_; }      // of the files together; 0 where that is not known
  std::string name() const;                   // of the file, for messages
  std::string where(const Line& line) const;  // likewise: "line 3", or "b.txt: line 3"
  bool interrupted() const { return interrupts_.pending(); }

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void open_file(int64_t number);
  size_t read_into(size_t begin);
  bool begin_file();
  bool fill();

  Interrupts interrupts_;
  std::vector<std::string> files_;
  std::vector<std::string> texts_;  // in place of files; the last one first
  std::vector<int64_t> sizes_;      // of the files
  int64_t size_ = 0;
  Place place_;
  bool takes_pipes_ = true;
  int64_t lines_left_ = std::numeric_limits<int64_t>::max();
  int64_t last_file_ = std::numeric_limits<int64_t>::max();

  int descriptor_ = -1;
  bool begun_ = false;  // the file is known to be compressed or not
  bool ended_ = false;  // it has been read: a terminal gives its end once
  std::unique_ptr<Decompressor> decompressor_;
  int64_t file_bytes_ = 0;  // read of the file
  std::vector<char> buffer_, text_buffer_;
  std::string_view compressed_;  // of buffer_, yet to be decompressed
  std::string_view unread_;      // of buffer_ or text_buffer_
};

}  // namespace infer
