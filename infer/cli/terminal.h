// What a terminal is shown: stdout, columns that line up, bars, and the one line of an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "files/utf8.h"

namespace infer {

using phasor::internal::printable;

enum class Tint { kGreen, kRed };

/// Standard output. A reader that went away (`infer … | head -1`) is no error; a full disk is.
class Output {
 public:
  Output();
  /// Throws InvalidArgument where stdout cannot be written.
  void write(std::string_view text);
  /// Lines for people: on a terminal none is wider than it.
  void show(std::string_view text);
  bool closed() const { return closed_; }            // nobody reads any more
  int width() const { return width_; }               // in columns; 100 where stdout is no terminal
  std::string heading(std::string_view text) const;  // bold where there are colours
  std::string tinted(std::string_view text, Tint tint) const;  // likewise
  /// `label` and what fits of `text` behind it, as a line.
  std::string labelled(const std::string& label, std::string_view text) const;

 private:
  bool colours_ = false;
  bool closed_ = false;
  int width_ = 100;
  bool terminal_ = false;
};

/// Where nobody can read it, nothing is written, and nothing else happens.
void write_stderr(std::string_view text);
/// `infer: message` on stderr, in one line whatever the message holds; returns `code`.
int report_error(std::string_view message, int code);
/// The same for the exception being handled; returns its exit code.
int report_current_exception();
/// Something worth knowing, on stderr.
void report_note(std::string_view message);

/// JSON, valid UTF-8, with the characters written as \\uXXXX that printable() leaves out, and that
/// JSON allows as they are.
std::string escaped(std::string json);
/// Columns that printable `text` takes: 2 for a CJK character, 0 for a combining mark.
int display_width(std::string_view text);
std::string pad_left(std::string_view text, int width);
std::string pad_right(std::string_view text, int width);
/// Broken between words into lines of up to `width` columns; the first is `indent` columns short,
/// the others begin with so many spaces.
std::string wrapped(std::string_view text, int indent, int width);

/// Lines wider than `width` columns broken, between words if possible, and continued below the
/// second column of a list, or else two columns further in where the line is indented.
std::string fitted(std::string_view text, int width);

/// Lines of a paragraph, and those that continue an item of a list, joined into one.
std::string reflowed(std::string_view text);

/// `line` without blanks at its end, but with "\n".
std::string trimmed(std::string line);
/// The beginning of `text` before "…" where it takes more than `width` columns.
std::string cut_right(std::string_view text, int width);
/// The end of `text` behind "…" where it takes more than `width` columns.
std::string cut_left(std::string_view text, int width);

/// `share` of `width` columns filled; share is clipped to 0 … 1.
std::string bar(double share, int width);

/// A row of a table whose columns are tokens.
struct TokenRow {
  std::string label;
  std::vector<std::string> cells;
};

/// The rows under each other, broken where `width` is used up; indented by two.
std::string token_table(const std::vector<TokenRow>& rows, int width);

}  // namespace infer
