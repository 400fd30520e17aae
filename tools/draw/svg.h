// Writes SVG: elements in the order they are asked for, text escaped, numbers short.
#pragma once
#include <string>
#include <string_view>

namespace trellis::tools::draw {

struct Point {
  double x = 0, y = 0;
};

class Svg {
 public:
  Svg(double width, double height, std::string_view style, std::string_view title);

  void open(std::string_view css_class, std::string_view title = {});  // a group; the title is shown on hover
  void close();
  // `attributes` are written as they are: fill="..." and the like.
  void rect(Point corner, Point size, double radius, std::string_view attributes);
  void circle(Point centre, double radius, std::string_view attributes);
  void path(std::string_view commands, std::string_view attributes);
  void line(Point from, Point to, std::string_view attributes);
  void text(Point at, std::string_view words, std::string_view attributes);

  std::string finish() &&;

 private:
  std::string body_;
};

std::string number(double);
std::string escaped(std::string_view);

}  // namespace trellis::tools::draw
