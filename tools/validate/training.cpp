#include "tools/validate/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>
#include <stdexcept>

#include "measure/published/accuracy.h"
#include "tools/answer/asked_machine.h"
#include "tools/validate/training_records.h"

namespace trellis::tools {
namespace {

// One record's step. A fit interpolates between the corners, as times are nearly linear in either figure.
struct Prepared {
  TrainingComparison line;
  std::unique_ptr<FittableStep> step;
  std::array<double, 4> corners = {};  // seconds at (exposed, hosts) = (0, 0), (0, 1), (1, 0), (1, 1)

  double about(double exposed, double hosts) const {
    const double without = corners[0] * (1 - exposed) + corners[2] * exposed;
    const double with = corners[1] * (1 - exposed) + corners[3] * exposed;
    return without * (1 - hosts) + with * hosts;
  }
};

// The two figures with the least sum of |log| errors over the records that may be fitted to; hosts may be held at 0.
FittedFigures fitted(const std::vector<Prepared>& all, const std::string& without, bool with_hosts) {
  constexpr int fine = 50;
  FittedFigures best{.without = without};
  double least = std::numeric_limits<double>::infinity();
  for (int e = 0; e <= fine; ++e)
    for (int h = 0; h <= (with_hosts ? fine : 0); ++h) {
      const double exposed = static_cast<double>(e) / fine, hosts = 0.5 * h / fine;
      double sum = 0;
      for (const Prepared& p : all)
        if (p.line.fits && p.line.family != without)
          sum += std::abs(std::log(p.about(exposed, hosts) / p.line.measured));
      if (sum < least) least = sum, best.exposed = exposed, best.hosts = hosts;
    }
  return best;
}

// Times each record by the median MFU of its family's records: a baseline to compare the simulation with.
void add_table(std::vector<Prepared>& all) {
  std::map<std::string, std::vector<double>> rates;
  for (const Prepared& p : all)
    if (p.line.fits) rates[p.line.family].push_back(p.step->flops_of_rank() / p.line.measured);
  for (auto& [family, of] : rates) std::ranges::sort(of);
  for (Prepared& p : all) {
    const auto& of = rates[p.line.family];
    if (!of.empty()) p.line.table = p.step->flops_of_rank() / of[of.size() / 2];
  }
}

sim::StepOptions options_of(const TrainingRecord& r, const std::function<bool()>& stopped) {
  return {.software = r.software, .stopped = [stopped](sim::Time, double) { return stopped(); }};
}

std::vector<Prepared> prepared(const TrainingRecords& found, const std::string& figures, const std::string& times,
                               const ValidationCallbacks& control, TrainingValidation& answer) {
  std::vector<Prepared> steps;
  for (const TrainingRecord& r : found.records) {
    if (control.stopped()) throw StepStopped();
    control.next(r.id);
    Prepared p{.line = {.id = r.id, .family = r.family, .rule = r.rule, .fits = r.fits, .measured = r.measured}};
    try {
      const sim::MachineSpec spec = machine_with(r.machine, figures);
      sim::StepOptions options = options_of(r, control.stopped);
      options.programs = programs_for(times, sim::Machine(spec));
      p.step = std::make_unique<FittableStep>(r.config, spec, options, r.ranks);
      p.line.simulated = p.step->usual();
      p.line.low = p.line.simulated / p.step->spread(), p.line.high = p.line.simulated * p.step->spread();
      answer.lines.push_back(p.line);
      if (r.fits)
        for (std::size_t i = 0; i < p.corners.size(); ++i)
          p.corners[i] = p.step->seconds(static_cast<double>(i / 2), static_cast<double>(i % 2));
      steps.push_back(std::move(p));
    } catch (const std::invalid_argument& e) {
      answer.faults[r.id] = e.what();
    }
  }
  return steps;
}

void add_errors(TrainingValidation& answer, std::vector<Prepared>& steps) {
  const auto note = [&](const std::string& how, const Prepared& p, double seconds) {
    if (p.line.fits) answer.errors[how].push_back(std::abs(std::log(seconds / p.line.measured)));
  };
  const FittedFigures one = fitted(steps, "", false), two = fitted(steps, "", true);
  answer.fitted.push_back(two);
  std::set<std::string> families;
  for (const Prepared& p : steps) families.insert(p.line.family);
  for (const std::string& family : families)
    if (std::ranges::any_of(steps, [&](const Prepared& p) { return p.line.fits && p.line.family != family; }))
      answer.fitted.push_back(fitted(steps, family, true));
  for (Prepared& p : steps) {
    note("0 figures", p, p.step->seconds(1, 0));
    note("1 figure: exposed", p, p.step->seconds(one.exposed, 0));
    note("2 figures: exposed, hosts", p, p.step->seconds(two.exposed, two.hosts));
    note("a table: one MFU a family", p, p.line.table);
    const auto own = std::ranges::find(answer.fitted, p.line.family, &FittedFigures::without);
    if (own == answer.fitted.end()) continue;
    p.line.left_out = p.step->seconds(own->exposed, own->hosts);
    p.line.low = p.line.left_out / p.step->spread(), p.line.high = p.line.left_out * p.step->spread();
    note("2 figures, its family left out", p, p.line.left_out);
  }
}

}  // namespace

TrainingValidation training_answer(const TrainingRecords& found, const std::string& figures, const std::string& times,
                                   const ValidationCallbacks& control) {
  TrainingValidation answer{.apart = found.apart, .faults = found.faults};
  try {
    std::vector<Prepared> steps = prepared(found, figures, times, control, answer);
    if (std::ranges::none_of(steps, [](const Prepared& p) { return p.line.fits; })) return answer;
    add_table(steps);
    add_errors(answer, steps);
    answer.lines.clear();
    for (Prepared& p : steps) answer.lines.push_back(std::move(p.line));
  } catch (const StepStopped&) {
    answer.stopped = true, answer.fitted.clear(), answer.errors.clear();
  }
  return answer;
}

TrainingRecordPricer::TrainingRecordPricer(const std::string& setups, const std::vector<measure::Record>& records)
    : found_(training_records(setups, records)) {}

std::optional<measure::RecordAnswer> TrainingRecordPricer::of(const measure::Record& record,
                                                              const std::function<bool()>& stopped) const {
  using measure::RecordAnswer;
  if (record.kind() != "train") return {};
  for (const auto* why : {&found_.apart, &found_.faults})
    if (const auto said = why->find(record.id); said != why->end()) return RecordAnswer::no(said->second);
  const auto r = std::ranges::find(found_.records, record.id, &TrainingRecord::id);
  if (r == found_.records.end())
    return RecordAnswer::no(record.unit == "%" ? "it follows from the throughput and the model's operations"
                                               : "what it was run with is not known");
  try {
    const double step =
        FittableStep(r->config, machine_with(r->machine, ""), options_of(*r, stopped), r->ranks).usual();
    const double factor = measure::seconds_of(record.unit) ? step / r->measured : r->measured / step;
    return RecordAnswer{.simulated = record.value * factor,
                        .kind = "train",
                        .by = fmt::format("a step of {:.3g} s on {}, release {}", step, r->machine, r->software)};
  } catch (const std::invalid_argument& e) {
    return RecordAnswer::no(e.what());
  }
}

namespace {

double percent_off(double simulated, double measured) { return 100 * (simulated / measured - 1); }

std::string apart_text(const TrainingValidation& a) {
  std::string out;
  for (const auto& [id, why] : a.apart) out += fmt::format("apart: {}: {}\n", id, why);
  return out;
}

// Errors by family, of records that nothing was fitted to.
std::string families_text(const TrainingValidation& a) {
  std::map<std::string, std::vector<const TrainingComparison*>> families;
  for (const TrainingComparison& l : a.lines) families[l.family].push_back(&l);
  std::size_t width = 8;
  for (const auto& [name, of] : families) width = std::max(width, name.size());
  std::string out = fmt::format("\n{:{}} {:>7} {:>8} {:>8} {:>8} {:>7}\n", "family", width, "records", "signed",
                                "median", "worst", "inside");
  for (const auto& [name, of] : families) {
    std::vector<double> ratios, sizes;
    std::size_t inside = 0;
    for (const TrainingComparison* l : of) {
      ratios.push_back(l->simulated / l->measured);
      sizes.push_back(std::abs(std::log(ratios.back())));
      inside += l->inside() ? 1 : 0;
    }
    out += fmt::format("{:{}} {:>7} {:>+7.1f}% {:>7.1f}% {:>7.1f}% {:>4}/{}\n", name, width, of.size(),
                       100 * (measure::value_at(ratios, 0.5) - 1), 100 * std::expm1(measure::value_at(sizes, 0.5)),
                       100 * std::expm1(measure::value_at(sizes, 1)), inside, of.size());
  }
  return out;
}

std::string unfitted_text(const TrainingValidation& a) {
  std::size_t width = 0;
  for (const TrainingComparison& l : a.lines) width = std::max(width, l.id.size());
  std::string out = fmt::format("\n{:{}} {:>9} {:>9} {:>8} {:>17}\n", "training: a step, in s", width, "measured",
                                "simulated", "error", "between");
  for (const TrainingComparison& l : a.lines)
    out += fmt::format("{:{}} {:>9.4g} {:>9.4g} {:>+7.1f}% {:>8.4g} {:>8.4g} {}{}\n", l.id, width, l.measured,
                       l.simulated, percent_off(l.simulated, l.measured), l.low, l.high,
                       l.inside() ? "inside" : "outside", l.rule.empty() ? "" : "; " + l.rule);
  return out;
}

// Each record beside the time by figures that were fitted without its family, and a summary of the errors.
std::string fitted_text(const TrainingValidation& a) {
  std::size_t width = 0, inside = 0, fit = 0;
  for (const TrainingComparison& l : a.lines) width = std::max(width, l.id.size());
  const bool any = std::ranges::any_of(a.lines, [](const TrainingComparison& l) { return l.left_out > 0; });
  std::string out = fmt::format("\n{:{}} {:>9} {:>9} {:>8} {}\n", "training: a step, in s", width, "measured",
                                "simulated", "error", any ? fmt::format("{:>9} {:>8} ", "left out", "error") : "");
  for (const TrainingComparison& l : a.lines) {
    const bool in = l.inside(), other = l.left_out > 0;
    fit += l.fits && other, inside += l.fits && other && in;
    const std::string left = other
                                 ? fmt::format("{:>9.2f} {:>+7.1f}% ", l.left_out, percent_off(l.left_out, l.measured))
                                 : std::string(any ? 19 : 0, ' ');
    out += fmt::format("{:{}} {:>9.2f} {:>9.2f} {:>+7.1f}% {}{}{}\n", l.id, width, l.measured, l.simulated,
                       percent_off(l.simulated, l.measured), left, in ? "inside" : "outside",
                       l.rule.empty() ? "" : (l.fits ? "; " : "; not fitted to: ") + l.rule);
  }
  out += apart_text(a);
  if (any) out += fmt::format("\ninside the interval, its family left out: {} of {}\n", inside, fit);
  out += fmt::format("\n{:32} {:>8} {:>9} {:>9}\n", "training", "median", "90%", "worst");
  for (const auto& [how, errors] : a.errors) {
    const auto at = [&of = errors](double part) { return std::expm1(measure::value_at(of, part)); };
    out += fmt::format("{:32} {:>7.1f}% {:>8.1f}% {:>8.1f}%\n", how, 100 * at(0.5), 100 * at(0.9), 100 * at(1));
  }
  for (const FittedFigures& f : a.fitted)
    out += fmt::format("fitted {:24} exposed {:.2f}, hosts {:.2f}\n",
                       f.without.empty() ? "to all" : "without " + f.without, f.exposed, f.hosts);
  return out;
}

}  // namespace

std::string training_text(const TrainingValidation& a) {
  std::string out = !a.fitted.empty() ? fitted_text(a) : unfitted_text(a) + apart_text(a) + families_text(a);
  for (const auto& [id, why] : a.faults) out += fmt::format("not priced: {}: {}\n", id, why);
  return out;
}

}  // namespace trellis::tools
