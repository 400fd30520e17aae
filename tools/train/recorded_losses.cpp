#include <filesystem>

#include "text/number_parsing.h"
#include "text/read_file.h"
#include "text/refuse.h"
#include "text/words.h"
#include "tools/train/loss_curve.h"

namespace trellis::tools {
namespace {

constexpr std::size_t validation_column = 8;  // of metrics.csv, named as below
constexpr std::string_view validation_name = "validation_loss";

double number_in(std::string_view text, const std::string& file) {
  if (const auto value = text::number<double>(text)) return *value;
  text::refuse("{}: '{}' is no number: expected lines of step and loss", file, text);
}

// Any file of numbers would make a line: only the names of its columns tell that they are steps and losses.
void expect_curve(std::string_view head, const std::string& file) {
  const std::vector<std::string_view> names = text::split(head, ',');
  const bool validation = names.size() <= validation_column || names[validation_column] == validation_name;
  if (names.size() >= 2 && names[0] == "step" && names[1] == "loss" && validation) return;
  text::refuse(
      "{}: expected a first line 'step,loss', or of more columns of a run's metrics.csv, where {} is the {}th, "
      "and it is '{}'",
      file, validation_name, validation_column + 1, head);
}

}  // namespace

std::vector<LossLine> losses_of(const std::string& run, int mean) {
  const std::filesystem::path path =
      std::filesystem::is_directory(run) ? std::filesystem::path(run) / "metrics.csv" : std::filesystem::path(run);
  LossLine line{.name = std::filesystem::absolute(path).parent_path().filename().string(), .points = {}};
  LossLine validation{.name = line.name + " validation", .points = {}};
  double step = 0, loss = 0;
  int count = 0;
  const std::string text = text::read_file(path.string());
  const std::vector<std::string_view> lines = text::split(text, '\n');
  expect_curve(lines.front(), path.string());
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string_view> cells = text::split(lines[i], ',');
    if (cells.size() < 2) continue;
    if (cells.size() > validation_column && !cells[validation_column].empty())
      validation.points.emplace_back(number_in(cells[0], path.string()),
                                     number_in(cells[validation_column], path.string()));
    step += number_in(cells[0], path.string()), loss += number_in(cells[1], path.string());
    if (++count < mean) continue;
    line.points.emplace_back(step / count, loss / count);
    step = loss = 0, count = 0;
  }
  if (count > 0) line.points.emplace_back(step / count, loss / count);
  std::vector<LossLine> both{std::move(line)};
  if (!validation.points.empty()) both.push_back(std::move(validation));
  return both;
}

}  // namespace trellis::tools
