// Writes SVG: elements in the order of the calls, text escaped, numbers short.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace trellis::tools::draw {

// For charts: a grid, curves, and shaded areas.
inline constexpr std::string_view chart_style =
    R"(text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#1f2328}
.grid{stroke:#e1e4e8;stroke-width:1}.frame{fill:none;stroke:#c3c8ce}.dim{fill:#646c76}
.curve{fill:none;stroke-width:2;stroke-linejoin:round}.band{opacity:.16}.region{opacity:.13}
.dashed{stroke-dasharray:6 4}
@media (prefers-color-scheme:dark){text{fill:#e3e6ea}.grid{stroke:#2b3138}.frame{stroke:#454c55}
.dim{fill:#9aa3ad}}
)";

struct Point {
  double x = 0, y = 0;
};

class Svg {
 public:
  // Begins with the paper, the background of every picture: light, and dark where the reader prefers that. The style is
  // for what the picture puts on it.
  Svg(double width, double height, std::string_view style, std::string_view title);

  void open(std::string_view css_class, std::string_view title = {});  // opens a group; the title is shown on hover
  void close();
  // `attributes` are written unchanged: fill="..." and the like.
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
std::string through(const std::vector<Point>&);  // a path's commands
std::string escaped(std::string_view);

}  // namespace trellis::tools::draw
