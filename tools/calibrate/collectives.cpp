#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "measure/bench_names.h"
#include "sim/cluster/choose/algorithm_choice.h"
#include "sim/cluster/choose/usual_configs.h"
#include "sim/cluster/price/uncertainty_interval.h"
#include "text/refuse.h"
#include "tools/answer/asked_machine.h"
#include "tools/calibrate/calibration_points.h"

namespace trellis::tools {
namespace {

constexpr std::int64_t most_effort = 2'000'000;
constexpr double noticed = 0.05;  // fraction of a time: a figure whose range changes it by less is not fitted
constexpr std::size_t most_figures = 6;
constexpr double usual_launch = 50e-6;  // seconds
constexpr double unbounded = std::numeric_limits<double>::infinity();

// A collective on its own copy of a machine, by the named algorithm, or else by the simulator's choice.
class TimedCollective {
 public:
  TimedCollective(const sim::MachineSpec& spec, const std::string& era, schedule::Collective collective, int ranks,
                  double bytes, double element, const std::string& algorithm)
      : machine_(spec),
        pricer_(machine_, sim::first_ranks(machine_, ranks > 0 ? ranks : machine_.ranks()),
                {.operation = {.collective = collective, .peer = sim::last_rank}, .era = era, .element = element}),
        bytes_(bytes) {
    if (algorithm.empty()) {
      const sim::AlgorithmChoice choice = sim::choose(pricer_, sim::usual_configs(pricer_, bytes), bytes,
                                                      {.within = sim::usual_within, .most_effort = most_effort});
      if (choice.best.empty())
        text::refuse("no algorithm serves {} among {}", schedule::name(collective), pricer_.group().ranks());
      config_ = choice.best.front().config;
    } else {
      config_ = sim::algorithm_config_named(algorithm);
      if (config_.dims.empty()) config_.dims = sim::usual_dims(config_.algorithm, machine_, pricer_.group().ranks());
      if (const std::string why = pricer_.refusal(config_); !why.empty()) text::refuse("'{}': {}", algorithm, why);
    }
    pricer_.expect_right(config_);
  }

  double seconds(const FigureValues& given) {
    sim::MachineSpec spec = machine_.spec();
    for (const auto& [key, value] : given)
      if (spec.figures.has(key)) spec.figures.set(key, value);
    const sim::Machine other(std::move(spec));
    return sim::in_seconds(sim::price(pricer_.pattern(config_, bytes_), other, pricer_.options(bytes_)).time);
  }

  std::vector<FreeMachineFigure> free() {
    const sim::Time time = pricer_.price(config_, bytes_).time;
    const sim::UncertaintyInterval interval =
        sim::interval(pricer_.pattern(config_, bytes_), machine_.spec(), pricer_.options(bytes_), time);
    std::vector<FreeMachineFigure> all;
    const std::string& era = pricer_.settings().era;
    const std::string launch = fmt::format("era.{}.launch", era.empty() ? machine_.spec().era : era);
    if (machine_.spec().figures.has(launch)) {
      // It is not known what launched the measured collective, so the launch may take any time up to twice the figure,
      // or up to usual_launch if that is more.
      const sim::Figure& f = machine_.spec().figures.at(launch);
      all.push_back({{launch, f.value, 0, std::max(2 * f.value, usual_launch), 0, 1}, f.dimension});
    }
    for (const sim::Sensitivity& s : interval.sensitivities) {
      if (static_cast<double>(s.width()) < noticed * static_cast<double>(time) || all.size() == most_figures) break;
      if (s.figure == launch) continue;
      const sim::Figure& f = machine_.spec().figures.at(s.figure);
      if (f.low < f.high) all.push_back({{s.figure, f.value, f.low, f.high, 0, unbounded}, f.dimension});
    }
    return all;
  }

 private:
  const sim::Machine machine_;
  sim::Pricer pricer_;
  double bytes_;
  sim::AlgorithmConfig config_;
};

CalibrationPoint subject_of(std::string place, std::string group, double seconds, const std::string& op, int ranks,
                            double bytes, const std::string& type, const std::string& algorithm,
                            const std::string& machine, const MeasurementDefaults& usual) {
  if (machine.empty()) throw std::invalid_argument("expected the machine in a column of that name, or --machine");
  schedule::Collective collective = schedule::Collective::all_reduce;
  bool known = false;
  for (const schedule::Collective c : schedule::collectives()) {
    std::string plain(schedule::name(c));
    std::erase(plain, '_');
    if (plain == op || schedule::name(c) == op) collective = c, known = true;
  }
  if (!known) collective = measure::bench_op(op).collective;
  const double element =
      type.empty() ? 4 : static_cast<double>(kernels::size_of(measure::bench_type(type, measure::BenchStyle::nccom)));
  const auto timed = std::make_shared<TimedCollective>(machine_with(machine, usual.figures), usual.era, collective,
                                                       ranks, bytes, element, algorithm);
  CalibrationPoint out{.measurement = {.name = std::move(place), .group = std::move(group), .seconds = seconds},
                       .words = fmt::format("{} of {} on {}", schedule::name(collective),
                                            measure::bytes_text(static_cast<std::uint64_t>(bytes)), machine)};
  out.free = [timed] { return timed->free(); };
  out.seconds = [timed](const FigureValues& given) { return timed->seconds(given); };
  return out;
}

}  // namespace

CalibrationPoint collective_of_row(const measure::TableRow& row, const MeasurementDefaults& usual) {
  const auto said = [&](std::initializer_list<const char*> columns, const std::string& other) {
    for (const char* column : columns)
      if (const std::string* found = row.find(column)) return *found;
    return other;
  };
  try {
    const std::string op = said({"collective", "op", "operation"}, usual.collective);
    if (op.empty()) throw std::invalid_argument("expected the collective in a column of that name, or --collective");
    const auto seconds = row.seconds();
    if (!seconds) throw std::invalid_argument("expected a column time(us), time_us or seconds");
    const char* size = row.find("size(b)") != nullptr ? "size(b)" : row.find("bytes") != nullptr ? "bytes" : "size";
    const std::string ranks = said({"ranks"}, "");
    const int count = ranks.empty() ? usual.ranks : measure::whole_count("ranks", row.number("ranks"));
    return subject_of(row.place, row.place, *seconds, op, count, row.number(size), said({"type", "dtype"}, ""),
                      said({"algorithm"}, ""), said({"machine"}, usual.machine), usual);
  } catch (const std::invalid_argument& e) {
    const std::string_view why = e.what();
    throw std::invalid_argument(why.starts_with(row.place) ? std::string(why) : fmt::format("{}: {}", row.place, why));
  }
}

CalibrationPoint collective_of_record(const measure::Record& r, const std::string& place,
                                      const MeasurementDefaults& usual) {
  try {
    const auto unit = measure::seconds_of(r.unit);
    const auto bytes = r.number("size_bytes");
    if (!unit || !bytes || r.word("op").empty()) throw std::invalid_argument("expected an op, size_bytes and a time");
    const std::string type = r.word("dtype") == "unknown" ? "" : r.word("dtype");
    return subject_of(r.id, r.configuration(), r.value * *unit, r.word("op"), r.count("ranks").value_or(usual.ranks),
                      *bytes, type, "", usual.machine, usual);
  } catch (const std::invalid_argument& e) {
    text::refuse("{}: {}: {}", place, r.id, e.what());
  }
}

}  // namespace trellis::tools
