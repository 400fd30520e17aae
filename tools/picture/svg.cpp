#include "tools/picture/svg.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "tools/program/provenance.h"

namespace trellis::tools::draw {
namespace {

// In a page with several pictures, the styles of each apply to all: so the paper is the same in all.
constexpr std::string_view paper_style =
    ".paper{fill:#fbfbfa}\n@media (prefers-color-scheme:dark){.paper{fill:#16191d}}\n";

}  // namespace

std::string number(double value) {
  const double rounded = std::round(value * 10) / 10;
  return fmt::format("{}", rounded == 0 ? 0.0 : rounded);
}

std::string through(const std::vector<Point>& points) {
  std::string path;
  for (const Point& p : points) path += fmt::format("{}{} {}", path.empty() ? "M" : "L", number(p.x), number(p.y));
  return path;
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else if (static_cast<unsigned char>(c) < 0x20)
      safe += ' ';
    else
      safe += c;
  }
  return safe;
}

Svg::Svg(double width, double height, std::string_view style, std::string_view title) {
  body_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\">\n"
      "<title>{2}</title>\n<style>\n{3}{4}</style>\n",
      number(width), number(height), escaped(title), paper_style, style);
  rect({0, 0}, {width, height}, 0, R"(class="paper")");
}

void Svg::open(std::string_view css_class, std::string_view title) {
  body_ += fmt::format("<g class=\"{}\">", css_class);
  if (!title.empty()) body_ += fmt::format("<title>{}</title>", escaped(title));
  body_ += '\n';
}

void Svg::close() { body_ += "</g>\n"; }

void Svg::rect(Point corner, Point size, double radius, std::string_view attributes) {
  fmt::format_to(std::back_inserter(body_), "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" {}/>\n",
                 number(corner.x), number(corner.y), number(size.x), number(size.y), number(radius), attributes);
}

void Svg::circle(Point centre, double radius, std::string_view attributes) {
  fmt::format_to(std::back_inserter(body_), "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {}/>\n", number(centre.x),
                 number(centre.y), number(radius), attributes);
}

void Svg::path(std::string_view commands, std::string_view attributes) {
  fmt::format_to(std::back_inserter(body_), "<path d=\"{}\" {}/>\n", commands, attributes);
}

void Svg::line(Point from, Point to, std::string_view attributes) {
  fmt::format_to(std::back_inserter(body_), "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>\n", number(from.x),
                 number(from.y), number(to.x), number(to.y), attributes);
}

void Svg::text(Point at, std::string_view words, std::string_view attributes) {
  fmt::format_to(std::back_inserter(body_), "<text x=\"{}\" y=\"{}\" {}>{}</text>\n", number(at.x), number(at.y),
                 attributes, escaped(words));
}

std::string Svg::finish() && {
  std::string made_by;
  for (const auto& [name, value] : origin()) made_by += fmt::format("{}: {}\n", name, escaped(value));
  if (!made_by.empty()) body_ += "<metadata>\n" + made_by + "</metadata>\n";
  return std::move(body_) + "</svg>\n";
}

}  // namespace trellis::tools::draw
