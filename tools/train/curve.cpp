// trellis train curve: the losses of several runs in one picture.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "measure/words.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/train/loss_curve.h"

namespace trellis::tools {

using namespace measure;
namespace {

constexpr std::size_t validation_column = 8;  // of metrics.csv

struct Options {
  std::vector<std::string> runs;
  std::string output, title = "loss";
  int mean = 1;
};

void add(CLI::App& app, Options& o) {
  app.description("Draws the losses of runs: folders with a metrics.csv, or such files. A run is named by its folder.");
  app.add_option("runs", o.runs, "Folders or files")->required();
  app.add_option("-o,--output", o.output, "An SVG file [standard output]")->check(output_file());
  app.add_option("--title", o.title, "Above the picture")->capture_default_str();
  app.add_option("--mean", o.mean, "Average this many steps for each point")->capture_default_str();
}

double number_in(const std::string& text, const std::string& file) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::invalid_argument(fmt::format("{}: '{}' is no number: expected lines of step and loss", file, text));
  return value;
}

// The losses, and where the run has them the losses of its validation.
std::vector<LossLine> lines_of(const std::string& run, int mean) {
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

int run(const Options& o) {
  if (o.mean < 1) throw std::invalid_argument(fmt::format("--mean {}: expected at least 1", o.mean));
  std::vector<LossLine> lines;
  for (const std::string& each : o.runs)
    for (LossLine& line : lines_of(each, o.mean)) lines.push_back(std::move(line));
  write_output(o.output, loss_curve(o.title, lines));
  return 0;
}

const Registered curve(command(
    "train curve", "Draws the losses of several runs",
    "trellis train curve build/runs/fp32 build/runs/bf16SR build/runs/bf16 --mean 10 -o rounding.svg", add, run));

}  // namespace
}  // namespace trellis::tools
