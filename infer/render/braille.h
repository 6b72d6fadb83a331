// Lines drawn with braille dots: eight to a character.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace infer {

class BrailleCanvas {
 public:
  /// In characters; there are twice as many dots across and four times as many down.
  BrailleCanvas(int width, int height);

  int dots_across() const { return 2 * width_; }
  int dots_down() const { return 4 * height_; }
  /// Dots outside are left out; (0, 0) is at the top left.
  void dot(int x, int y);
  void line(int x1, int y1, int x2, int y2);
  /// Writes ASCII over the character that holds this dot, and those to its right.
  void text(int x, int y, const std::string& text);

  std::vector<std::string> lines() const;

 private:
  int width_, height_;
  std::vector<uint8_t> dots_;  // [height, width], a bit for each dot
  std::vector<char> text_;     // [height, width], 0: none
};

}  // namespace infer
