#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/published/record.h"
#include "sim/hardware/figures/data.h"
#include "sim/hardware/figures/figures.h"
#include "tools/program/command.h"
#include "tools/program/json_text.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"

namespace trellis::tools {

using namespace measure;
namespace {

struct Options {
  std::vector<std::string> files;
  std::string only, output;
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Simulates each published measurement that it knows how to model, and prints measured, simulated and the error;\n"
      "then the median, the 90th percentile and the worst of each kind, apart for the records that a figure of the\n"
      "hardware's data was fitted to; then what it could not model, and why.");
  app.add_option("files", o.files, "Records, in the form of a list of {id, generation, what, parameters, value, unit}")
      ->required();
  app.add_option("--only", o.only, "Only records whose id begins with this");
  app.add_flag("--json", o.json, R"(Print {"records":[{"id","measured","simulated","unit","error",...}]})");
  app.add_option("-o,--output", o.output, "Write here [standard output]")->check(output_file());
}

struct Line {
  const Record* record;
  Answer answer;
  bool fitted = false;

  double error() const { return *answer.simulated / record->value - 1; }
};

// Every record that a figure of any chip or machine was fitted to.
std::set<std::string> fitted_records() {
  std::set<std::string> all;
  for (const sim::DataFile& file : sim::data_files()) {
    const auto others = [&](std::string_view name) { return sim::data_text(file.kind, name); };
    if (file.kind != "chips") continue;
    const sim::Figures figures = sim::Figures::read(file.text, others);
    for (const auto& [key, figure] : figures.all()) all.insert(figure.records.begin(), figure.records.end());
  }
  return all;
}

std::string json_of(const std::vector<Line>& lines) {
  nlohmann::ordered_json out;
  out["records"] = nlohmann::ordered_json::array();
  for (const Line& line : lines) {
    nlohmann::ordered_json r;
    r["id"] = line.record->id;
    r["measured"] = line.record->value;
    if (line.answer.simulated) {
      r["simulated"] = *line.answer.simulated;
      r["unit"] = line.record->unit;
      r["error"] = line.error();
    } else {
      r["simulated"] = nullptr;
      r["unit"] = line.record->unit;
      r["error"] = nullptr;
    }
    r["fitted"] = line.fitted;
    r["by"] = line.answer.by;
    r["why_not"] =
        line.answer.simulated ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(line.answer.why_not);
    out["records"].push_back(std::move(r));
  }
  return json_text(out, 1);
}

std::string number_text(double v) {
  const double size = std::abs(v);
  return size >= 1e6 || (size < 1e-3 && size > 0) ? fmt::format("{:.4g}", v)
                                                  : fmt::format("{:.{}f}", v, size < 10 ? 3 : 1);
}

std::string line_text(const Line& line, std::size_t width) {
  const Record& r = *line.record;
  if (!line.answer.simulated) return fmt::format("{:{}}  {}\n", r.id, width, line.answer.why_not);
  return fmt::format("{:{}} {:>12} {:>12} {:9} {:>+7.1f}% {:6} {}\n", r.id, width, number_text(r.value),
                     number_text(*line.answer.simulated), r.unit, 100 * line.error(), line.fitted ? "fitted" : "",
                     line.answer.by);
}

std::string totals_text(std::string_view name, std::vector<double> errors) {
  std::ranges::sort(errors);
  const auto at = [&](double q) {
    return errors[static_cast<std::size_t>(std::ceil(q * static_cast<double>(errors.size()))) - 1];
  };
  return fmt::format("{:24} {:>7} {:>8.1f}% {:>8.1f}% {:>8.1f}%\n", name, errors.size(), 100 * at(0.5), 100 * at(0.9),
                     100 * errors.back());
}

std::string report(const std::vector<Line>& lines) {
  std::size_t width = 0;
  for (const Line& line : lines) width = std::max(width, line.record->id.size());
  std::string out = fmt::format("{:{}} {:>12} {:>12} {:9} {:>8} {:6} {}\n", "record", width, "measured", "simulated",
                                "unit", "error", "", "by");
  std::map<std::string, std::vector<double>> free, fitted;
  for (const Line& line : lines) {
    if (!line.answer.simulated) continue;
    out += line_text(line, width);
    (line.fitted ? fitted : free)[line.record->kind()].push_back(std::abs(line.error()));
  }
  out += fmt::format("\n{:24} {:>7} {:>9} {:>9} {:>9}\n", "not fitted", "records", "median", "90%", "worst");
  for (const auto& [kind, errors] : free) out += totals_text(kind, errors);
  out += fmt::format("\n{:24} {:>7} {:>9} {:>9} {:>9}\n", "fitted", "records", "median", "90%", "worst");
  for (const auto& [kind, errors] : fitted) out += totals_text(kind, errors);
  out += "\nnot modelled\n";
  for (const Line& line : lines)
    if (!line.answer.simulated) out += line_text(line, width);
  return out;
}

int run(const Options& o) {
  std::vector<Record> records;
  for (const std::string& file : o.files) {
    std::vector<Record> more = read_records(read_input(file), file);
    records.insert(records.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  const std::set<std::string> fitted = fitted_records();
  std::vector<Line> lines;
  for (const Record& r : records) {
    if (!r.id.starts_with(o.only)) continue;
    Line line{&r, answer(r, records), false};
    line.fitted =
        fitted.contains(r.id) || std::ranges::find(line.answer.fitted_to, r.id) != line.answer.fitted_to.end();
    if (line.answer.simulated && !(std::isfinite(*line.answer.simulated) && r.value != 0))
      line.answer = Answer::no("no error can be given: the measured value is 0, or the simulated one not finite");
    lines.push_back(std::move(line));
  }
  if (lines.empty() && !o.only.empty())
    throw std::invalid_argument(fmt::format("--only {}: no record's id begins with it", o.only));
  write_output(o.output, o.json ? json_of(lines) : report(lines));
  return 0;
}

const Registered registered(command<Options>("validate", "Hold the simulator against published measurements",
                                             "trellis validate measured.json\n"
                                             "trellis validate measured.json --only dma. --json",
                                             add, run));

}  // namespace
}  // namespace trellis::tools
