// Lines in, however many and however long, and the signals that wait for the end of a line's work.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

/// Holds back SIGINT, SIGTERM and SIGHUP for as long as one lives, so that work ends at a good
/// place. The end of the last one lets them through: a signal that has come then ends the program
/// as it always does. For the main thread.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool pending() const;

 private:
  static inline int alive_ = 0;
  static inline sigset_t before_;
};

constexpr size_t kMaxLineBytes = 1 << 20;  // what follows is left out

struct Line {
  std::string text;              // without "\n" or "\r\n"
  int64_t left_out = 0;          // bytes beyond kMaxLineBytes
  int64_t number = 0;            // from 1
  const char* oddity = nullptr;  // what is said of bytes that no line of text has
};

/// Reads a file, or standard input for "-", line by line in bounded memory and without a byte-order
/// mark; or gives the texts it was made with. To be made before any thread begins: threads inherit
/// what signals it holds back.
class LineReader {
 public:
  /// Opens the file, and says that a terminal is read, unless `quiet`. All that reads throws
  /// InvalidArgument naming a file that cannot be read or is no text, by its first bytes or by
  /// what its first two lines hold; further down a line has an `oddity`.
  LineReader(std::string file, bool quiet);
  /// Gives these texts, which may hold any character.
  explicit LineReader(const std::vector<std::string>& texts)
      : texts_(texts.rbegin(), texts.rend()) {}
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// Nothing at the end, and where a signal came while there was nothing to read.
  std::optional<Line> next();
  /// Whether next() has something at once.
  bool ready() const;

  /// Throws InvalidArgument: a text was needed, and none came.
  [[noreturn]] void refuse_empty() const { fail("it holds no text; write one text a line"); }

  /// Of the file, for the lines that next() gave.
  int64_t bytes_read() const { return bytes_; }
  int64_t size() const { return size_; }  // of the file; 0 where that is not known
  std::string name() const;               // of the file, for messages
  bool interrupted() const { return interrupts_.pending(); }

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void refuse_other_formats(std::string_view beginning) const;
  bool fill();

  Interrupts interrupts_;
  std::string file_;                // empty: there are texts instead
  std::vector<std::string> texts_;  // the last one first
  int64_t size_ = 0;
  int64_t lines_ = 0;
  int64_t bytes_ = 0;  // of the lines

  int descriptor_ = -1;
  bool ended_ = false;  // the file has been read: a terminal gives its end once
  std::vector<char> buffer_;
  std::string_view unread_;  // of buffer_
};

}  // namespace infer
