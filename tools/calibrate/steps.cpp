#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "text/refuse.h"
#include "tools/answer/asked_machine.h"
#include "tools/calibrate/calibration_points.h"
#include "tools/train/config_file.h"

namespace trellis::tools {
namespace {

constexpr const char* exposed_prefix = "step.exposed.";

// The figures of a step that its formulas do not determine: those that can be fitted.
std::vector<FreeMachineFigure> free_in(FittableStep& step) {
  const sim::Figures& f = step.machine().spec().figures;
  std::vector<FreeMachineFigure> all;
  const auto add = [&](const std::string& key, double least, double most) {
    if (!f.has(key)) return;
    const sim::Figure& figure = f.at(key);
    if (figure.low < figure.high)
      all.push_back({{key, figure.value, figure.low, figure.high, least, most}, figure.dimension});
  };
  if (f.has("step.level")) {
    // step.level is a factor on the formulas' times of computation. Its assumed range is as wide as that of a step's
    // time.
    const double level = f.number("step.level"), spread = step.spread();
    all.push_back({{"step.level", level, level / spread, level * spread, 0, 0}, sim::Dimension::number});
  }
  if (step.has_exposed())
    for (const auto& [key, figure] : f.all())
      if (key.starts_with(exposed_prefix)) add(key, 0, 1);
  if (step.on_several_hosts()) add("step.hosts", 0, 1);
  return all;
}

CalibrationPoint subject_of(std::string place, std::string group, double seconds, const train::StepConfig& config,
                            const std::string& machine, const std::string& software, train::Rank ranks,
                            const MeasurementDefaults& usual) {
  const sim::MachineSpec spec = machine_with(machine, usual.figures);
  const sim::StepOptions options{.software = software, .programs = programs_for(usual.times, sim::Machine(spec))};
  const auto step = std::make_shared<FittableStep>(config, spec, options, ranks);
  const auto value = [step](const FigureValues& given, const std::string& key, double other) {
    if (const auto found = given.find(key); found != given.end()) return found->second;
    const sim::Figures& f = step->machine().spec().figures;
    return f.has(key) ? f.number(key) : other;
  };
  CalibrationPoint out{.measurement = {.name = std::move(place), .group = std::move(group), .seconds = seconds},
                       .words = fmt::format("{} on {}", config.name, machine),
                       .step = true};
  out.free = [step] { return free_in(*step); };
  out.seconds = [step, value](const FigureValues& given) {
    const double level = value(given, "step.level", 1) / value({}, "step.level", 1);
    return step->seconds(value(given, "step.exposed.tensor", 1), value(given, "step.hosts", 0), level);
  };
  return out;
}

}  // namespace

CalibrationPoint step_of_record(const TrainingRecord& r, const MeasurementDefaults& usual) {
  return subject_of(r.id, r.family, r.measured, r.config, r.machine, r.software, r.ranks, usual);
}

CalibrationPoint step_of_row(const measure::TableRow& row, const std::string& file, const MeasurementDefaults& usual) {
  const auto or_usual = [&](const char* column, const std::string& other, const char* option) {
    if (const std::string* said = row.find(column)) return *said;
    if (other.empty()) text::refuse("{}: nothing in column {}: expected it there, or {}", row.place, column, option);
    return other;
  };
  try {
    std::string path = or_usual("config", usual.config, "--config");
    // A path that does not exist from here is relative to the file of rows.
    if (!std::filesystem::exists(path) && row.find("config") != nullptr)
      path = (std::filesystem::path(file).parent_path() / path).string();
    std::vector<std::string> changes;
    for (const auto& [column, cell] : row.cells)
      if (column.find('.') != column.npos) changes.push_back(fmt::format("{}={}", column, cell));
    const train::StepConfig config = read_config(path, changes).job.step;
    double seconds = 0;
    if (const auto said = row.seconds()) {
      seconds = *said;
    } else if (row.find("sequences_per_second") != nullptr) {
      seconds = static_cast<double>(config.global_batch_size) / row.number("sequences_per_second");
    } else if (row.find("tokens_per_second") != nullptr) {
      seconds = static_cast<double>(config.global_batch_size * config.seq_length) / row.number("tokens_per_second");
    } else {
      throw std::invalid_argument("expected a column step_seconds, step_ms, sequences_per_second or tokens_per_second");
    }
    const std::string machine = or_usual("machine", usual.machine, "--machine");
    const std::string* software = row.find("software");
    const std::string* family = row.find("family");
    return subject_of(row.place, family != nullptr ? *family : row.place, seconds, config, machine,
                      software != nullptr ? *software : usual.software, 0, usual);
  } catch (const std::exception& e) {
    const std::string_view why = e.what();
    throw std::invalid_argument(why.starts_with(row.place) ? std::string(why) : fmt::format("{}: {}", row.place, why));
  }
}

}  // namespace trellis::tools
