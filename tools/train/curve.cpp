// trellis train curve: the losses of several runs in one picture.

#include "text/refuse.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/train/loss_curve.h"

namespace trellis::tools {
namespace {

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

int run(const Options& o) {
  if (o.mean < 1) text::refuse("--mean {}: expected at least 1", o.mean);
  std::vector<LossLine> lines;
  for (const std::string& each : o.runs)
    for (LossLine& line : losses_of(each, o.mean)) lines.push_back(std::move(line));
  write_output(o.output, loss_curve(o.title, lines));
  return 0;
}

const RegisteredCommand curve(
    "train curve", "Draws the losses of several runs",
    "trellis train curve build/runs/fp32 build/runs/bf16SR build/runs/bf16 --mean 10 -o rounding.svg", add, run);

}  // namespace
}  // namespace trellis::tools
