#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/launch_on_hosts.h"
#include "measure/published/accuracy.h"
#include "measure/published/record.h"
#include "sim/hardware/figures/embedded_files.h"
#include "sim/hardware/figures/figures.h"
#include "text/refuse.h"
#include "tools/answer/price_progress.h"
#include "tools/program/command.h"
#include "tools/program/interrupt_poller.h"
#include "tools/program/json_text.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/program/progress.h"
#include "tools/validate/training.h"

namespace trellis::tools {

using namespace measure;
namespace {

struct Options {
  std::vector<std::string> files;
  std::string only, output, fit;
  bool json = false, hold_out = false, by_source = false;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Simulates each published measurement that it knows how to model, and prints measured, simulated, the error, "
      "and\n"
      "the interval that should hold four in five measured values, with a mark where it does not. Then, for each "
      "kind:\n"
      "the median, the 90th percentile and the worst of the errors, the part of the records within their intervals,\n"
      "and the intervals' median width (x/÷); apart for the records that a figure of the hardware's data was fitted\n"
      "to. Then what it could not model, and why.");
  app.add_option("files", o.files,
                 "Records, in the form of a list of {id, generation, what, parameters, value, unit} [those that were "
                 "installed]");
  app.add_option("--only", o.only, "Only records whose id begins with this");
  auto* const hold_out =
      app.add_flag("--hold-out", o.hold_out,
                   "Leave out each table of a source in turn, fit launches and errors to the others,\n"
                   "and print how well that answers what was left out");
  app.add_flag("--by-source", o.by_source, "With --hold-out: leave out each source, a repository or page, as a whole")
      ->needs(hold_out);
  app.add_option("--fit", o.fit,
                 "Fit launches and errors to these records, and write them to this file: published/fitted.published")
      ->check(output_file());
  app.add_flag("--json", o.json, R"(Print {"records":[{"id","measured","simulated","low","high","inside",...}]})");
  app.add_option("-o,--output", o.output, "Write here [standard output]")->check(output_file());
}

// The files of records that were given, or else the one that is installed with the program.
std::vector<std::string> record_files(const Options& o) {
  if (!o.files.empty()) return o.files;
  const auto prefix = std::filesystem::path(launch::path_of_this_program()).parent_path().parent_path();
  const std::string installed = prefix / "share/trellis/published/measured.json";
  if (!std::filesystem::exists(installed))
    text::refuse(
        "no file was given, and {} is not there: expected records, as sim/published/measured.json of the source",
        installed);
  return {installed};
}

// Every record that a figure of any chip or machine was fitted to.
std::set<std::string> fitted_records() {
  std::set<std::string> all;
  for (const sim::EmbeddedFile& file : sim::data_files()) {
    const auto others = [&](std::string_view name) { return sim::data_text(file.kind, name); };
    if (file.kind != "chips") continue;
    const sim::Figures figures = sim::Figures::read(file.text, others);
    for (const auto& [key, figure] : figures.all()) all.insert(figure.records.begin(), figure.records.end());
  }
  return all;
}

// The property by which records are left out together; none: no record is left out.
OfRecord left_out_by(const Options& o) {
  if (!o.hold_out) return {};
  return o.by_source ? OfRecord(&Record::publisher) : OfRecord(&Record::configuration);
}

void put(nlohmann::ordered_json& j, const Accuracy& a) {
  j = {{"records", a.records}, {"median", a.median}, {"ninth", a.ninth},
       {"worst", a.worst},     {"inside", a.inside}, {"width", a.width}};
}

std::string json_of(const std::vector<ComparedRecord>& all, const OfRecord& left_out) {
  nlohmann::ordered_json out;
  out["records"] = nlohmann::ordered_json::array();
  for (const ComparedRecord& c : all) {
    nlohmann::ordered_json r{{"id", c.record->id}, {"measured", c.record->value}, {"unit", c.record->unit}};
    for (const char* key : {"simulated", "error", "low", "high", "inside"}) r[key] = nullptr;
    if (c.answer.simulated) {
      const sim::ValueRange range = c.interval();
      r["simulated"] = *c.answer.simulated;
      r["error"] = c.error();
      r["low"] = range.low, r["high"] = range.high, r["inside"] = c.inside();
    }
    r["kind"] = c.kind();
    r["configuration"] = c.record->configuration();
    r["fitted"] = c.fitted;
    r["by"] = c.answer.by;
    r["why_not"] = c.answer.simulated ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(c.answer.why_not);
    out["records"].push_back(std::move(r));
  }
  const KernelRankingAccuracy order = ranking(all);
  out["order"] = {{"ladders", order.ladders}, {"pairs", order.pairs}, {"tau", order.tau}};
  if (left_out)
    for (const auto& [kind, accuracy] : hold_out(all, left_out)) put(out["held_out"][kind], accuracy);
  return json_text(out, 1);
}

std::string number_text(double v) {
  const double size = std::abs(v);
  return size >= 1e6 || (size < 1e-3 && size > 0) ? fmt::format("{:.4g}", v)
                                                  : fmt::format("{:.{}f}", v, size < 10 ? 3 : 1);
}

std::string line_text(const ComparedRecord& c, std::size_t width) {
  const Record& r = *c.record;
  if (!c.answer.simulated) return fmt::format("{:{}}  {}\n", r.id, width, c.answer.why_not);
  const sim::ValueRange range = c.interval();
  return fmt::format("{:{}} {:>12} {:>12} {:9} {:>+7.1f}% {:>21} {:4} {:6} {}\n", r.id, width, number_text(r.value),
                     number_text(*c.answer.simulated), r.unit, 100 * c.error(),
                     fmt::format("{}..{}", number_text(range.low), number_text(range.high)), c.inside() ? "" : "OUT",
                     c.fitted ? "fitted" : "", c.answer.by);
}

std::string totals_text(std::string_view title, const std::map<std::string, Accuracy>& kinds) {
  std::string out = fmt::format("\n{:24} {:>7} {:>9} {:>9} {:>9} {:>7} {:>6}\n", title, "records", "median", "90%",
                                "worst", "inside", "x/÷");
  for (const auto& [kind, a] : kinds)
    out += fmt::format("{:24} {:>7} {:>8.1f}% {:>8.1f}% {:>8.1f}% {:>6.0f}% {:>6.2f}\n", kind, a.records,
                       100 * a.median, 100 * a.ninth, 100 * a.worst, 100 * a.inside, a.width);
  return out;
}

std::map<std::string, Accuracy> totals(const std::vector<ComparedRecord>& all, bool fitted) {
  std::map<std::string, AccuracyAccumulator> kinds;
  for (const ComparedRecord& c : all)
    if (c.answer.simulated && c.fitted == fitted) kinds[c.kind()].add(c.error(), c.inside(), c.width());
  std::map<std::string, Accuracy> found;
  for (const auto& [kind, accuracy] : kinds) found[kind] = accuracy.found();
  return found;
}

std::string report(const std::vector<ComparedRecord>& all, const OfRecord& left_out) {
  std::size_t width = 0;
  for (const ComparedRecord& c : all) width = std::max(width, c.record->id.size());
  std::string out = fmt::format("{:{}} {:>12} {:>12} {:9} {:>8} {:>21} {:4} {:6} {}\n", "record", width, "measured",
                                "simulated", "unit", "error", "interval", "", "", "by");
  for (const ComparedRecord& c : all)
    if (c.answer.simulated) out += line_text(c, width);
  out += totals_text("not fitted", totals(all, false)) + totals_text("fitted", totals(all, true));
  if (left_out) out += totals_text("left out, others fitted", hold_out(all, left_out));
  if (const KernelRankingAccuracy order = ranking(all); order.pairs > 0)
    out += fmt::format("\norder of {} kernels' versions: Kendall's tau {:.2f} over {} pairs\n", order.ladders,
                       order.tau, order.pairs);
  out += "\nnot modelled\n";
  for (const ComparedRecord& c : all)
    if (!c.answer.simulated) out += line_text(c, width);
  return out;
}

// The records with their answers; when the user interrupts, only those that are done.
std::vector<ComparedRecord> compared(const std::vector<Record>& records, const std::string& setups,
                                     const std::string& only, bool& interrupted) {
  const std::set<std::string> fitted = fitted_records();
  std::vector<ComparedRecord> all;
  const auto wanted = [&](const Record& r) { return r.id.starts_with(only); };
  // Steps are laid out by train/, which measure/ does not see.
  std::optional<TrainingRecordPricer> steps;
  if (!setups.empty()) steps.emplace(setups, records);
  const auto answered = [&](const Record& r, const std::function<bool()>& stopped) {
    const std::optional<RecordAnswer> step = steps ? steps->of(r, stopped) : std::nullopt;
    return step ? *step : answer(r, records);
  };
  const InterruptPoller interrupts;
  InterruptWatchdog prompt_end(interrupts);
  Progress progress(static_cast<std::size_t>(std::ranges::count_if(records, wanted)));
  for (const Record& r : records) {
    if (!wanted(r)) continue;
    if ((interrupted = interrupts.asked())) break;
    progress.next(r.id);
    ComparedRecord c{&r, {}, false};
    try {
      c.answer = answered(r, [&] { return interrupts.asked(); });
    } catch (const StepStopped&) {
      interrupted = true;
      break;
    }
    c.fitted = fitted.contains(r.id) || std::ranges::find(c.answer.fitted_to, r.id) != c.answer.fitted_to.end();
    if (c.answer.simulated && !(std::isfinite(*c.answer.simulated) && *c.answer.simulated > 0 && r.value > 0))
      c.answer = RecordAnswer::no("no error can be given: the measured value or the simulated one is not above 0");
    all.push_back(std::move(c));
    prompt_end.has_results();
  }
  prompt_end.over();
  return all;
}

int run(const Options& o) {
  std::vector<Record> records;
  std::string setups;  // training.json beside the first file that has one: how its records were run
  for (const std::string& file : record_files(o)) {
    const auto beside = std::filesystem::path(file).parent_path() / "training.json";
    if (setups.empty() && std::filesystem::exists(beside)) setups = read_input(beside.string());
    std::vector<Record> more = read_records(read_input(file), file);
    records.insert(records.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  bool interrupted = false;
  const std::vector<ComparedRecord> all = compared(records, setups, o.only, interrupted);
  if (interrupted) {
    std::string unwritten;
    for (const std::string& file : {o.output, o.fit})
      if (!file.empty()) unwritten += fmt::format(", and {} was not written", file);
    write_output("",
                 report(all, OfRecord()) + fmt::format("interrupted: {} records are there{}\n", all.size(), unwritten));
    return 1;
  }
  if (all.empty() && !o.only.empty()) text::refuse("--only {}: no record's id begins with it", o.only);
  if (!o.fit.empty()) write_output(o.fit, fit_text(fit(all), all));
  write_output(o.output, o.json ? json_of(all, left_out_by(o)) : report(all, left_out_by(o)));
  return 0;
}

const RegisteredCommand registered("validate", "Compare the simulator with published measurements",
                                   "trellis validate\n"
                                   "trellis validate measured.json\n"
                                   "trellis validate measured.json --only dma. --json\n"
                                   "trellis validate measured.json mine.json --hold-out\n"
                                   "trellis validate measured.json mine.json --fit fitted.published",
                                   add, run);

}  // namespace
}  // namespace trellis::tools
