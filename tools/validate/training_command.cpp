// trellis train validate: priced steps held against published training records.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "measure/published/accuracy.h"
#include "text/refuse.h"
#include "tools/answer/asked_machine.h"
#include "tools/answer/price_progress.h"
#include "tools/program/command.h"
#include "tools/program/json_text.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/validate/training.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string file, setups, only, output, figures, times = by_formulas;
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Lays out and prices the step of each published training record, as `trellis train price` does, with what a "
      "file\n"
      "beside the records says of its run: model, precision, recomputation, and a rule where a record contradicts\n"
      "itself. Prints each record's step measured, simulated, and simulated with the two fitted figures as the other\n"
      "families of models give them; whether the interval around that holds it; errors with 0, 1 and 2 figures "
      "fitted,\n"
      "and with each family left out; and the baseline to beat, a table of one MFU a family. Where the file beside\n"
      "them says that no figure may be fitted to any, errors by family instead.");
  app.add_option("file", o.file, "Records, as sim/published/measured.json")->required();
  app.add_option("--setups", o.setups, "A file that says how the records were run [training.json beside the file]");
  app.add_option("--only", o.only, "Only records whose id begins with this");
  app.add_option("--figures", o.figures, figures_help);
  add_times_option(app, o.times);
  app.add_flag("--json", o.json, "Print JSON");
  app.add_option("-o,--output", o.output, "Write here [standard output]")->check(output_file());
}

std::string json_of(const TrainingValidation& training) {
  nlohmann::ordered_json out{{"records", nlohmann::ordered_json::array()}};
  for (const TrainingComparison& l : training.lines)
    out["records"].push_back(
        {{"id", l.id},
         {"family", l.family},
         {"measured_s", l.measured},
         {"simulated_s", l.simulated},
         {"left_out_s", l.left_out > 0 ? nlohmann::ordered_json(l.left_out) : nullptr},
         {"low_s", l.low},
         {"high_s", l.high},
         {"error", l.simulated / l.measured - 1},
         {"left_out_error", l.left_out > 0 ? nlohmann::ordered_json(l.left_out / l.measured - 1) : nullptr},
         {"inside", l.inside()},
         {"table_s", l.table > 0 ? nlohmann::ordered_json(l.table) : nullptr},
         {"fits", l.fits},
         {"rule", l.rule}});
  for (const auto& [how, errors] : training.errors) {
    const auto at = [&of = errors](double part) { return std::expm1(measure::value_at(of, part)); };
    out["errors"].push_back({{"fitted", how}, {"median", at(0.5)}, {"ninth", at(0.9)}, {"worst", at(1)}});
  }
  for (const FittedFigures& f : training.fitted)
    out["fitted"].push_back({{"without", f.without}, {"exposed", f.exposed}, {"hosts", f.hosts}});
  for (const auto& [id, why] : training.apart) out["apart"][id] = why;
  for (const auto& [id, why] : training.faults) out["not_priced"][id] = why;
  return json_text(out, 1);
}

int run(const Options& o) {
  const std::string beside = (std::filesystem::path(o.file).parent_path() / "training.json").string();
  std::vector<measure::Record> asked;
  std::ranges::copy_if(measure::read_records(read_input(o.file), o.file), std::back_inserter(asked),
                       [&](const measure::Record& r) { return r.id.starts_with(o.only); });
  const TrainingRecords found = training_records(read_input(o.setups.empty() ? beside : o.setups), asked);
  if (found.records.empty() && found.faults.empty()) text::refuse("{}: no record of it is among the setups", o.file);
  const InterruptPoller interrupts;
  InterruptWatchdog prompt_end(interrupts);
  Progress progress(found.records.size());
  const TrainingValidation training = training_answer(
      found, o.figures, o.times,
      {.next = [&](const std::string& id) { progress.next(id); }, .stopped = [&] { return interrupts.asked(); }});
  prompt_end.over();
  progress.clear();
  if (training.stopped) {
    write_output(
        "", training_text(training) + fmt::format("interrupted: {} of {} records are there{}\n", training.lines.size(),
                                                  found.records.size(),
                                                  o.output.empty() ? "" : ", and " + o.output + " was not written"));
    return 1;
  }
  write_output(o.output, o.json ? json_of(training) : training_text(training));
  return 0;
}

const RegisteredCommand registered("train validate", "Compare priced training steps with published records",
                                   "trellis train validate sim/published/measured.json\n"
                                   "trellis train validate sim/published/measured.json --only train.bert\n"
                                   "trellis train validate sim/published/repositories.json --setups "
                                   "sim/published/training_others.json",
                                   add, run);

}  // namespace
}  // namespace trellis::tools
