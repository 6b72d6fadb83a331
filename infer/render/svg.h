// An SVG document that grows element by element, and the style all figures share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace infer {

struct Point {
  double x = 0, y = 0;
};

/// `text` for XML: markup and control characters escaped or gone, invalid UTF-8 as U+FFFD.
std::string escaped(std::string_view text);

/// About how wide `text` is in a figure, where no font can be asked.
double text_width(std::string_view text, double size = 12);

enum class Anchor { kStart, kMiddle, kEnd };

/// Looks come from classes, which the style gives colours for light and for dark: text, title,
/// grid, axis; s0 … s6 for lines, f0 … f6 for areas.
class Svg {
 public:
  Svg(double width, double height, std::string_view title);

  /// `turned`: reading upwards.
  void text(Point at, std::string_view text, Anchor anchor = Anchor::kStart,
            std::string_view css_class = "text", bool turned = false);
  void line(Point from, Point to, std::string_view css_class);
  /// `attributes` as they stand in the element: class="f0". `tooltip` where not empty.
  void rect(Point corner, double width, double height, std::string_view attributes,
            std::string_view tooltip = {});
  void circle(Point centre, double radius, std::string_view attributes,
              std::string_view tooltip = {});
  /// Points that are not finite break the line.
  void path(const std::vector<Point>& points, std::string_view attributes,
            std::string_view tooltip = {});
  /// A PNG file, stretched over the rectangle without smoothing.
  void image(Point corner, double width, double height, std::string_view png);
  void add(std::string_view element) { body_ += element; }

  std::string document() const;

 private:
  std::string body_;
};

/// A coordinate: at most two decimals.
std::string coordinate(double value);

/// How many line classes there are; line i has class s(i % kNumColours), dashed from the second
/// round on.
inline constexpr int kNumColours = 7;
std::string line_class(size_t i);
std::string area_class(size_t i);

}  // namespace infer
