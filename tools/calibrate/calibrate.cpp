// trellis calibrate: figures of a machine fitted again to a user's own measurements.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "measure/published/accuracy.h"
#include "net/sha256.h"
#include "sim/hardware/figures/figure_units.h"
#include "text/printable.h"
#include "text/refuse.h"
#include "tools/answer/price_progress.h"
#include "tools/calibrate/calibration_points.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"
#include "tools/program/interrupt_poller.h"
#include "tools/program/json_text.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/program/progress.h"

namespace trellis::tools {
namespace {

using measure::CalibrationResult;
using measure::FittedFigure;
using measure::FreeFigure;

constexpr std::size_t least_steps = 5;  // with fewer steps, their errors do not tell how wide an interval is
constexpr double stated = 0.8;          // fraction of the measurements that lie within an interval

struct Options {
  std::vector<std::string> files, only;
  MeasurementDefaults usual;
  std::string setups, output;
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Fits a machine's figures to measurements of your own, and writes those that the measurements tell into a file\n"
      "for --figures of `trellis sim`, `train price`, `train search` and `train validate`. What is assumed of a "
      "figure\n"
      "(its range) counts as one more measurement; a figure whose range the measurements do not halve stays as it is,\n"
      "and the reason is printed. Errors are printed as they were, as fitted, and with each measurement, or each "
      "family\n"
      "of steps, left out of the fit: the last is what to expect of the next one.\n\n"
      "RECORDS are tables with a head, comma-separated or as nccom-test prints them, or JSON in the form of\n"
      "sim/published/measured.json. A row with a size is a collective: size(B) or bytes, time(us) or time_us, type, "
      "and\n"
      "collective, ranks, machine, algorithm where the options do not say them. A row without is a training step:\n"
      "step_seconds, step_ms, sequences_per_second or tokens_per_second; config (a YAML file), machine, software, "
      "family;\n"
      "a column with a dot in its name is a key of the configuration: "
      "distributed_strategy.tensor_model_parallel_size.");
  app.add_option("records", o.files, "Tables or JSON of measurements")->required();
  app.add_option("-m,--machine", o.usual.machine, "The machine, where a row does not say it");
  app.add_option("--collective", o.usual.collective, "The collective, where a row does not say it");
  app.add_option("-n,--ranks", o.usual.ranks, "Ranks of a collective, where a row does not say it [all]")
      ->check(above_zero());
  app.add_option("--era", o.usual.era,
                 "The software's generation, for collectives: 2025, 2026-host [the machine's usual one]");
  app.add_option("--config", o.usual.config, "The configuration of a step, where a row does not say it");
  app.add_option("--software", o.usual.software,
                 "The Neuron SDK release that compiled a step, where a row does not say it");
  add_times_option(app, o.usual.times);
  app.add_option("--setups", o.setups,
                 "A file that says how the training records in JSON were run [training.json beside the file]");
  app.add_option("--figures", o.usual.figures, "Figures to begin with, as this command writes them");
  app.add_option("--only", o.only, "Fit these figures alone: step.level,step.hosts")->delimiter(',');
  app.add_flag("--json", o.json, "Print JSON");
  app.add_option("-o,--output", o.output, "Write the figures here")->check(output_file());
}

class Subjects {
 public:
  explicit Subjects(const Options& o) : o_(o) {}

  std::vector<CalibrationPoint> read() {
    for (const std::string& file : o_.files) {
      const std::string text = read_input(file);
      text::expect_text(file, text);
      sources_.push_back(fmt::format("{} (sha256 {})", file, net::short_digest(text)));
      const std::size_t begins = text.find_first_not_of(" \t\r\n");
      if (begins != text.npos && (text[begins] == '[' || text[begins] == '{'))
        add_records(file, text);
      else
        add_rows(file, text);
    }
    if (all_.empty()) throw std::invalid_argument("no measurement can be priced: see --help for what a row needs");
    return std::move(all_);
  }
  const std::vector<std::string>& sources() const { return sources_; }
  const std::vector<std::string>& left() const { return left_; }  // records that cannot be used, and why

 private:
  void add_rows(const std::string& file, const std::string& text) {
    for (const measure::TableRow& row : measure::read_table(text, file).rows) {
      const bool sized = row.find("size(b)") != nullptr || row.find("bytes") != nullptr || row.find("size") != nullptr;
      all_.push_back(sized ? collective_of_row(row, o_.usual) : step_of_row(row, file, o_.usual));
    }
  }

  // Published records that cannot be used are left out and reported.
  void add_records(const std::string& file, const std::string& text) {
    const std::vector<measure::Record> records = measure::read_records(text, file);
    const bool steps = std::ranges::any_of(records, [](const measure::Record& r) { return r.kind() == "train"; });
    const std::string beside = (std::filesystem::path(file).parent_path() / "training.json").string();
    if (steps && (!o_.setups.empty() || std::filesystem::exists(beside))) {
      const TrainingRecords found = training_records(read_input(o_.setups.empty() ? beside : o_.setups), records);
      for (const TrainingRecord& r : found.records) {
        if (r.fits)
          all_.push_back(step_of_record(r, o_.usual));
        else
          left_.push_back(fmt::format("{}: {}", r.id, r.rule));
      }
      for (const auto& [id, why] : found.apart) left_.push_back(fmt::format("{}: {}", id, why));
    }
    for (const measure::Record& r : records) {
      if (r.kind() != "coll" || o_.usual.machine.empty()) continue;
      try {
        all_.push_back(collective_of_record(r, file, o_.usual));
      } catch (const std::invalid_argument& e) {
        left_.push_back(e.what());
      }
    }
  }

  const Options& o_;
  std::vector<CalibrationPoint> all_;
  std::vector<std::string> sources_, left_;
};

// The figures that the measurements' times depend on, each once. If measurements differ in a figure's value or range,
// those of the first one are taken.
std::vector<FreeMachineFigure> free_in(const std::vector<CalibrationPoint>& all, const std::vector<std::string>& only) {
  std::vector<FreeMachineFigure> free;
  for (const CalibrationPoint& s : all)
    for (const FreeMachineFigure& f : s.free())
      if (std::ranges::find(free, f.key, &FreeFigure::key) == free.end()) free.push_back(f);
  std::vector<std::string> known;
  for (const FreeMachineFigure& f : free) known.push_back(f.key);
  for (const std::string& key : only)
    if (std::ranges::find(known, key) == known.end())
      text::refuse("--only {}: no time here depends on it: expected some of {}", key, fmt::join(known, ", "));
  if (!only.empty())
    std::erase_if(free, [&](const FreeMachineFigure& f) { return std::ranges::find(only, f.key) == only.end(); });
  return free;
}

struct Sizes {
  double median = 0, ninth = 0, worst = 0;
};
Sizes sizes_of(const std::vector<double>& errors) {
  std::vector<double> sizes;
  for (double e : errors) sizes.push_back(std::expm1(std::abs(e)));
  return {measure::value_at(sizes, 0.5), measure::value_at(sizes, 0.9), measure::value_at(sizes, 1)};
}

// The factor by which a step's predicted time is off in at most four of five cases, if the fit left the step's group
// out. As a further step comes to the n measured ones, the quantile is taken of n + 1 values, as in conformal
// prediction.
std::optional<double> spread_of(const std::vector<CalibrationPoint>& all, const CalibrationResult& c) {
  std::vector<double> sizes;
  std::set<std::string> groups;
  for (std::size_t i = 0; i < c.left_out.size(); ++i)
    if (all[i].step) sizes.push_back(std::abs(c.left_out[i])), groups.insert(all[i].measurement.group);
  if (sizes.size() < least_steps || groups.size() < 2) return {};
  std::ranges::sort(sizes);
  const auto rank = static_cast<std::size_t>(std::ceil(stated * (static_cast<double>(sizes.size()) + 1)));
  return std::exp(sizes[std::min(rank, sizes.size()) - 1]);
}

std::string with_unit(double value, const sim::Unit& unit) {
  return unit.name.empty() ? fmt::format("{:.5g}", value / unit.size)
                           : fmt::format("{:.5g} {}", value / unit.size, unit.name);
}

class Report {
 public:
  Report(const Options& o, const std::vector<CalibrationPoint>& all, const std::vector<FreeMachineFigure>& free,
         const CalibrationResult& c, const Subjects& from)
      : o_(o), all_(all), free_(free), c_(c), from_(from), spread_(spread_of(all, c)) {}

  std::string text() const {
    std::size_t width = 11;
    for (const CalibrationPoint& s : all_) width = std::max(width, s.measurement.name.size());
    std::string out = fmt::format("{:{}} {:>11} {:>8} {:>8} {:>8}  {}\n", "measurement", width, "measured", "before",
                                  "fitted", "left out", "of");
    for (std::size_t i = 0; i < all_.size(); ++i)
      out += fmt::format("{:{}} {:>9.4g} s {:>8} {:>8} {:>8}  {}\n", all_[i].measurement.name, width,
                         all_[i].measurement.seconds, percent(c_.before[i]), percent(c_.after[i]),
                         c_.left_out.empty() ? "" : percent(c_.left_out[i]), all_[i].words);
    for (const std::string& each : from_.left()) out += fmt::format("not used: {}\n", each);
    out += fmt::format("\n{:28} {:>8} {:>8} {:>8}\n", "errors", "median", "90%", "worst");
    const auto line = [&](const char* what, const std::vector<double>& errors) {
      const Sizes s = sizes_of(errors);
      out += fmt::format("{:28} {:>7.1f}% {:>7.1f}% {:>7.1f}%\n", what, 100 * s.median, 100 * s.ninth, 100 * s.worst);
    };
    line("before", c_.before), line("fitted", c_.after);
    if (!c_.left_out.empty())
      line("left out of the fit", c_.left_out);
    else
      out += "left out of the fit          nothing: all measurements are of one group\n";
    out += "\n";
    for (const FittedFigure& f : c_.figures) out += figure_line(f);
    if (spread_)
      out += fmt::format("{:28} {:.3g}: four of five steps left out are that near\n", "step.spread", *spread_);
    return out;
  }

  std::string json() const {
    nlohmann::ordered_json out;
    for (std::size_t i = 0; i < all_.size(); ++i)
      out["measurements"].push_back(
          {{"name", all_[i].measurement.name},
           {"of", all_[i].words},
           {"measured_s", all_[i].measurement.seconds},
           {"error_before", std::expm1(c_.before[i])},
           {"error", std::expm1(c_.after[i])},
           {"error_left_out", c_.left_out.empty() ? nlohmann::ordered_json(nullptr)
                                                  : nlohmann::ordered_json(std::expm1(c_.left_out[i]))}});
    for (const FittedFigure& f : c_.figures)
      out["figures"].push_back({{"key", f.before.key},
                                {"identified", f.identified()},
                                {"before", f.before.value},
                                {"value", f.value},
                                {"low", f.low},
                                {"high", f.high},
                                {"outside_assumed", is_outside(f)},
                                {"why_not", f.why_not}});
    const auto put = [&](const char* what, const std::vector<double>& errors) {
      if (errors.empty()) return;
      const Sizes s = sizes_of(errors);
      out["errors"][what] = {{"median", s.median}, {"ninth", s.ninth}, {"worst", s.worst}};
    };
    put("before", c_.before), put("fitted", c_.after), put("left_out", c_.left_out);
    if (spread_) out["step_spread"] = *spread_;
    out["not_used"] = from_.left();
    return json_text(out, 1);
  }

  std::string file() const {
    std::string out = fmt::format(
        "# Written by trellis calibrate from {} measurements: {}{}.\n"
        "# Errors: median {:.1f}% before, {:.1f}% fitted{}. Ranges hold four values in five.\n",
        all_.size(), fmt::join(from_.sources(), ", "),
        o_.usual.times == by_formulas ? "" : "; steps' operations by programs, as --times has it",
        100 * sizes_of(c_.before).median, 100 * sizes_of(c_.after).median,
        c_.left_out.empty() ? "" : fmt::format(", {:.1f}% left out of the fit", 100 * sizes_of(c_.left_out).median));
    std::set<std::string> names;
    for (const CalibrationPoint& s : all_) {
      std::string name = s.measurement.name;
      for (char& c : name)
        if (c == ' ' || c == '|' || c == '#') c = '_';
      names.insert(name);
    }
    for (const FittedFigure& f : c_.figures) {
      if (!f.identified()) {
        out += fmt::format("# {} stays as it was: {}\n", f.before.key, f.why_not);
        continue;
      }
      const sim::Unit& unit = unit_of(f);
      out += fmt::format("{} = {} {:.5g}..{:.5g} | fitted {} | was {}\n", f.before.key, with_unit(f.value, unit),
                         f.low / unit.size, f.high / unit.size, fmt::join(names, " "), with_unit(f.before.value, unit));
    }
    if (spread_)
      out += fmt::format(
          "step.spread = {0:.4g} 1..{0:.4g} | assumed | four of five steps left out of the fit are within "
          "this factor\n",
          *spread_);
    return out;
  }

 private:
  static std::string percent(double error) { return fmt::format("{:+.1f}%", 100 * std::expm1(error)); }

  const sim::Unit& unit_of(const FittedFigure& f) const {
    return sim::unit_for(f.before.value, std::ranges::find(free_, f.before.key, &FreeFigure::key)->dimension);
  }

  std::string figure_line(const FittedFigure& f) const {
    const sim::Unit& unit = unit_of(f);
    if (!f.identified())
      return fmt::format("{:28} stays {}: {}\n", f.before.key, with_unit(f.before.value, unit), f.why_not);
    return fmt::format("{:28} {} -> {}, between {} and {}{}\n", f.before.key, with_unit(f.before.value, unit),
                       with_unit(f.value, unit), with_unit(f.low, unit), with_unit(f.high, unit),
                       is_outside(f) ? fmt::format(": outside of the {} to {} that was assumed",
                                                   with_unit(f.before.low, unit), with_unit(f.before.high, unit))
                                     : "");
  }

  static bool is_outside(const FittedFigure& f) {
    return f.identified() && (f.value < f.before.low || f.value > f.before.high);
  }

  const Options& o_;
  const std::vector<CalibrationPoint>& all_;
  const std::vector<FreeMachineFigure>& free_;
  const CalibrationResult& c_;
  const Subjects& from_;
  std::optional<double> spread_;
};

int run(const Options& o) {
  Subjects from(o);
  const InterruptPoller interrupts;
  InterruptWatchdog prompt_end(interrupts);
  const std::vector<CalibrationPoint> all = from.read();
  const std::vector<FreeMachineFigure> free = free_in(all, o.only);
  std::vector<measure::Measurement> measured;
  for (const CalibrationPoint& s : all) measured.push_back(s.measurement);
  Progress progress;
  const CalibrationResult fitted = measure::calibrate({free.begin(), free.end()}, measured,
                                                      [&](std::size_t i, const std::vector<double>& values) -> double {
                                                        if (interrupts.asked()) return 0;
                                                        progress.say(all[i].measurement.name);
                                                        FigureValues given;
                                                        for (std::size_t k = 0; k < free.size(); ++k)
                                                          given[free[k].key] = values[k];
                                                        return all[i].seconds(given);
                                                      });
  prompt_end.over();
  progress.clear();
  if (fitted.stopped) throw std::runtime_error("interrupted: no figure was fitted, and nothing written");
  const Report report(o, all, free, fitted, from);
  const bool any = std::ranges::any_of(fitted.figures, [](const FittedFigure& f) { return f.identified(); });
  write_output("", o.json ? report.json() : report.text());
  if (any && !o.output.empty()) write_output(o.output, report.file());
  if (!any && !o.output.empty())
    throw std::runtime_error(fmt::format("{} was not written: these measurements tell no figure", o.output));
  return any ? 0 : 1;
}

const RegisteredCommand registered(
    "calibrate", "Fit a machine's figures to measurements of your own",
    "trellis calibrate nccom.txt -m trn1.32xlarge --collective all_reduce -o mine.figures\n"
    "trellis calibrate steps.csv --machine \"trn1.32xlarge x 4\" -o mine.figures\n"
    "trellis train price llama7b.yaml -m \"trn1.32xlarge x 4\" --figures mine.figures",
    add, run);

}  // namespace
}  // namespace trellis::tools
