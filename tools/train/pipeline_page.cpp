#include "tools/train/pipeline_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/picture/palette.h"
#include "tools/picture/svg.h"
#include "tools/program/provenance.h"

namespace trellis::tools {
namespace {

std::string row(const std::vector<std::string>& cells, const char* cell) {
  std::string text = "<tr>";
  for (const std::string& each : cells) text += fmt::format("<{0}>{1}</{0}>", cell, draw::escaped(each));
  return text + "</tr>\n";
}

std::string figures(const train::PipelineSchedule& s, const train::PipelineTiming& t) {
  std::string text = "<table>" + row({"rank", "stages", "busy", "idle", "most activations alive"}, "th");
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    std::vector<std::int32_t> stages;
    for (std::int32_t c = 0; c < s.shape.chunks; ++c) stages.push_back(s.stage_of(static_cast<std::int32_t>(r), c));
    text += row({std::to_string(r), fmt::format("{}", fmt::join(stages, ", ")), std::to_string(t.busy[r]),
                 std::to_string(t.end - t.busy[r]), std::to_string(t.live[r])},
                "td");
  }
  return text + "</table>";
}

// The ranks of each pipeline rank: a row for each place on the data and context axes, a column for each tensor rank.
std::string layout(const train::Mesh& mesh) {
  const train::MeshShape& shape = mesh.shape();
  constexpr train::Rank most = 64;  // columns and rows that are listed
  std::string text = "<table>";
  std::vector<std::string> head{"pipeline", "data"};
  if (shape.context > 1) head.emplace_back("context");
  const train::Rank all = shape.data * shape.context;
  const train::Rank columns = std::min(most, shape.tensor), rows = std::min(most, all);
  for (train::Rank t = 0; t < columns; ++t) head.push_back(fmt::format("tensor {}", t));
  text += row(head, "th");
  for (train::Rank p = 0; p < shape.pipeline; ++p)
    for (train::Rank r = 0; r < rows; ++r) {
      const train::Rank d = r / shape.context, c = r % shape.context;
      std::vector<std::string> cells{std::to_string(p), std::to_string(d)};
      if (shape.context > 1) cells.push_back(std::to_string(c));
      for (train::Rank t = 0; t < columns; ++t)
        cells.push_back(std::to_string(mesh.rank({.pipeline = p, .data = d, .context = c, .tensor = t})));
      text += row(cells, "td");
    }
  text += "</table>";
  if (columns < shape.tensor || rows < all)
    text += fmt::format("<p>The first {} x {} of {} x {} ranks of each stage.</p>", rows, columns, all, shape.tensor);
  return text;
}

std::string made_by() {
  std::string text = "<section id='made_by'><h2>What made this page</h2><table>";
  for (const auto& [name, value] : origin()) text += row({name, value}, "td");
  return text + "</table></section>";
}

}  // namespace

std::string pipeline_picture(const train::PipelineSchedule& s, const train::PipelineTiming& t) {
  constexpr double left = 70, row = 26, top = 44;
  const double unit = std::max(4.0, std::min(22.0, 1600.0 / static_cast<double>(t.end)));
  const double height = top + row * static_cast<double>(s.ranks.size()) + 30;
  const std::string title = fmt::format("{}: {} ranks, {} stages a rank, {} micro-batches; idle over busy {:.1f}%",
                                        s.name, s.shape.ranks, s.shape.chunks, s.shape.micro_batches, 100 * t.bubble());
  const double width = std::max(left + unit * static_cast<double>(t.end), 8.2 * static_cast<double>(title.size())) + 20;
  draw::Svg svg(width, height, draw::chart_style, title);
  svg.text({12, 26}, title, R"(font-size="14" font-weight="600")");
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    const double y = top + row * static_cast<double>(r);
    svg.text({12, y + 16}, fmt::format("rank {}", r), R"(font-size="12")");
    for (std::size_t i = 0; i < s.ranks[r].size(); ++i) {
      const train::Slot slot = s.ranks[r][i];
      if (!train::computes(slot.action)) continue;
      const auto ink = draw::ink(static_cast<std::int64_t>(slot.action));
      const double x = left + unit * static_cast<double>(t.starts[r][i]),
                   w = unit * static_cast<double>(t.ends[r][i] - t.starts[r][i]);
      svg.open("", fmt::format("{} of micro-batch {}, stage {}", train::name(slot.action), slot.micro,
                               s.stage_of(static_cast<std::int32_t>(r), slot.chunk)));
      svg.rect({x, y}, {w - 1, row - 4}, 2,
               fmt::format(R"(fill="{}" opacity="{}")", ink.colour, slot.chunk % 2 == 0 ? "1" : ".62"));
      if (w > 14)
        svg.text({x + w / 2, y + 15}, std::to_string(slot.micro),
                 fmt::format(R"(font-size="10" text-anchor="middle" style="fill:{}")", ink.text));
      svg.close();
    }
  }
  return std::move(svg).finish();
}

std::string pipeline_page(const train::PipelineSchedule& s, const train::PipelineTiming& t, const train::Mesh& mesh) {
  const std::string title = fmt::format("{}: {} ranks in a pipeline", s.name, s.shape.ranks);
  return fmt::format(
      "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
      "<meta name='color-scheme' content='light dark'><title>{0}</title><style>{1}</style></head><body>\n"
      "<h1>{0}</h1>\n{2}<div id='picture'>{3}</div>\n<h2>What each rank does</h2>\n{4}\n<h2>Which ranks work "
      "together</h2>\n{5}\n{7}\n<script>{6}</script></body></html>\n",
      draw::escaped(title), pipeline_style, pipeline_controls, pipeline_picture(s, t), figures(s, t), layout(mesh),
      pipeline_script, made_by());
}

}  // namespace trellis::tools
