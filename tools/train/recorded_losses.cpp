#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <stdexcept>

#include "measure/words.h"
#include "tools/program/output.h"
#include "tools/train/loss_curve.h"

namespace trellis::tools {

using namespace measure;
namespace {

constexpr std::size_t validation_column = 8;  // of metrics.csv

double number_in(const std::string& text, const std::string& file) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::invalid_argument(fmt::format("{}: '{}' is no number: expected lines of step and loss", file, text));
  return value;
}

}  // namespace

std::vector<LossLine> losses_of(const std::string& run, int mean) {
  const std::filesystem::path path =
      std::filesystem::is_directory(run) ? std::filesystem::path(run) / "metrics.csv" : std::filesystem::path(run);
  LossLine line{.name = std::filesystem::absolute(path).parent_path().filename().string(), .points = {}};
  LossLine validation{.name = line.name + " validation", .points = {}};
  double step = 0, loss = 0;
  int count = 0;
  const std::vector<std::string> lines = words_between(read_input(path.string()), '\n');
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = words_between(lines[i], ',');
    if (cells.size() < 2) continue;
    if (cells.size() > validation_column && !cells[validation_column].empty())
      validation.points.emplace_back(number_in(cells[0], path.string()),
                                     number_in(cells[validation_column], path.string()));
    step += number_in(cells[0], path.string()), loss += number_in(cells[1], path.string());
    if (++count < mean) continue;
    line.points.emplace_back(step / count, loss / count);
    step = loss = 0, count = 0;
  }
  std::vector<LossLine> both{std::move(line)};
  if (!validation.points.empty()) both.push_back(std::move(validation));
  return both;
}

}  // namespace trellis::tools
