#include "measure/published/accuracy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include "sim/hardware/figures/embedded_files.h"

namespace trellis::measure {
namespace {

constexpr double stated = 0.8;        // an interval is to hold this fraction of the measured values
constexpr double mostly_fixed = 0.2;  // launches are fitted to records with at most this fraction of other time

// Values in groups of equal weight: each configuration counts once, however many records it has.
using Groups = std::map<std::string, std::vector<double>>;

// The value below which the fraction `part` of the weight lies. Quantiles lie up to half a group further out than in
// the values, because a new value is of one of n + 1 groups (split conformal prediction).
double quantile(const Groups& groups, double part) {
  std::vector<std::pair<double, double>> weighted;
  for (const auto& [name, values] : groups)
    for (const double v : values) weighted.emplace_back(v, 1.0 / static_cast<double>(values.size()));
  std::ranges::sort(weighted);
  const auto n = static_cast<double>(groups.size());
  const double shift = part < 0.5 ? -(1 - 2 * part) : part > 0.5 ? 2 * part - 1 : 0;
  const double wanted = part * n + shift * 0.5;
  double below = 0;
  for (const auto& [value, weight] : weighted)
    if ((below += weight) >= wanted - 1e-9) return value;
  return weighted.back().first;
}

double middle_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

const LaunchOverhead* launch_in(const FittedParameters* fit, const RecordAnswer& a) {
  if (fit == nullptr || !a.launch) return nullptr;
  const auto found = fit->launches.find(a.launch->figure);
  return found == fit->launches.end() ? nullptr : &found->second;
}

// The launch time in seconds that can be read off a record; none where much else takes time, or where the launch is not
// one of those that are fitted to many records.
std::optional<double> fixed_part(const ComparedRecord& c) {
  static const sim::Figures of_many = sim::Figures::read(sim::data_text("published", "fitted"));
  const auto unit = seconds_of(c.record->unit);
  if (!c.answer.launch || !unit || !of_many.has(c.answer.launch->figure)) return {};
  const double rest = c.answer.launch->rest;
  if (rest > mostly_fixed * c.record->value) return {};
  return c.answer.launch->without(c.record->value, rest) * *unit;
}

std::map<std::string, LaunchOverhead> fit_launches(const std::vector<ComparedRecord>& all, const OfRecord& of,
                                                   std::string_view without) {
  std::map<std::string, Groups> found;
  for (const ComparedRecord& c : all)
    if (const auto fixed = fixed_part(c); fixed && of(*c.record) != without)
      found[c.answer.launch->figure][c.record->configuration()].push_back(*fixed);
  std::map<std::string, LaunchOverhead> launches;
  for (const auto& [figure, groups] : found) {
    Groups middles;
    for (const auto& [name, values] : groups) middles[name] = {middle_of(values)};
    launches[figure] = {.figure = figure,
                        .value = quantile(middles, 0.5),
                        .range = {quantile(middles, (1 - stated) / 2), quantile(middles, (1 + stated) / 2)}};
  }
  return launches;
}

// The range of the value over its uncertain figures, the launch among them, as if these were independent.
sim::ValueRange by_figures(const ComparedRecord& c, const FittedParameters* fit) {
  const RecordAnswer& a = c.answer;
  const double value = c.simulated(fit);
  double below = a.range.high > 0 ? *a.simulated - a.range.low : 0;
  double above = a.range.high > 0 ? a.range.high - *a.simulated : 0;
  if (a.launch) {
    const LaunchOverhead* other = launch_in(fit, a);
    const double unit = other == nullptr ? 1 : *seconds_of(c.record->unit), rest = a.launch->rest;
    const LaunchOverhead& launch = other == nullptr ? *a.launch : *other;
    below = std::hypot(below, value - a.launch->with(launch.range.low / unit, rest));
    above = std::hypot(above, a.launch->with(launch.range.high / unit, rest) - value);
  }
  return {std::max(value - below, value * 1e-3), value + above};
}

// How much the model's own error must add to the figures' range for the interval to hold the record, as a logarithm:
// negative below, positive above; 0 where the figures' range is enough.
double needed(const ComparedRecord& c, const FittedParameters& fit) {
  const double value = c.simulated(&fit);
  const sim::ValueRange range = by_figures(c, &fit);
  const double off = std::log(c.record->value / value);
  const double by_range = off < 0 ? std::log(range.low / value) : std::log(range.high / value);
  const double rest = std::sqrt(std::max(0.0, off * off - by_range * by_range));
  return off < 0 ? -rest : rest;
}

double rounded(double v) {
  if (v <= 0) return v;
  const double size = std::pow(10, 2 - std::floor(std::log10(v)));
  return std::round(v * size) / size;
}

std::string list_of(const std::set<std::string>& configurations) {
  return fmt::format("{}", fmt::join(configurations, " "));
}

}  // namespace

double ComparedRecord::simulated(const FittedParameters* fit) const {
  const LaunchOverhead* launch = launch_in(fit, answer);
  if (launch == nullptr) return *answer.simulated;
  return answer.launch->with(launch->value / *seconds_of(record->unit), answer.launch->rest);
}

sim::ValueRange ComparedRecord::interval(const FittedParameters* fit) const {
  sim::ModelErrorRange error = sim::error_range(kind());
  if (fit != nullptr) {
    const auto found = fit->errors.find(kind());
    error = found == fit->errors.end() ? sim::ModelErrorRange{} : found->second;
  }
  return sim::widened(simulated(fit), by_figures(*this, fit), error);
}

bool ComparedRecord::inside(const FittedParameters* fit) const {
  const sim::ValueRange range = interval(fit);
  return range.low <= record->value && record->value <= range.high;
}

double ComparedRecord::width(const FittedParameters* fit) const {
  const sim::ValueRange range = interval(fit);
  return std::sqrt(range.high / range.low);
}

FittedParameters fit(const std::vector<ComparedRecord>& all, const OfRecord& of, std::string_view without) {
  FittedParameters found{.launches = fit_launches(all, of, without), .errors = {}};
  std::map<std::string, Groups> errors;
  for (const ComparedRecord& c : all)
    if (c.answer.simulated && of(*c.record) != without)
      errors[c.kind()][c.record->configuration()].push_back(needed(c, found));
  for (const auto& [kind, groups] : errors)
    found.errors[kind] = {.low = std::exp(std::min(0.0, quantile(groups, (1 - stated) / 2))),
                          .high = std::exp(std::max(0.0, quantile(groups, (1 + stated) / 2)))};
  return found;
}

std::string fit_text(const FittedParameters& fit, const std::vector<ComparedRecord>& all) {
  std::map<std::string, std::set<std::string>> of;
  for (const ComparedRecord& c : all) {
    if (!c.answer.simulated) continue;
    of["error." + c.kind()].insert(c.record->configuration());
    if (fixed_part(c)) of[c.answer.launch->figure].insert(c.record->configuration());
  }
  std::string text =
      "# Written by `trellis validate --fit` from all published records: what no single record tells. Ranges hold the\n"
      "# middle 80% of the configurations that are named (source:table), each counted once. launch: from the host's\n"
      "# call to the collective's start, and back. error.KIND: factors on a simulated value for what the model "
      "lacks.\n";
  for (const auto& [figure, launch] : fit.launches)
    text += fmt::format("{} = {} us {}..{} us | fitted {} | {} configurations, where little else takes time\n", figure,
                        rounded(launch.value * 1e6), rounded(launch.range.low * 1e6), rounded(launch.range.high * 1e6),
                        list_of(of[figure]), of[figure].size());
  for (const auto& [kind, error] : fit.errors)
    text += fmt::format("error.{} = 1 {}..{} | fitted {} | {} configurations\n", kind, rounded(error.low),
                        rounded(error.high), list_of(of["error." + kind]), of["error." + kind].size());
  return text;
}

double value_at(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(std::ceil(part * static_cast<double>(values.size()))) - 1];
}

void AccuracyAccumulator::add(double error, bool inside, double width) {
  errors_.push_back(std::abs(error));
  widths_.push_back(width);
  inside_ += inside ? 1 : 0;
}

Accuracy AccuracyAccumulator::found() const {
  const std::size_t n = errors_.size();
  if (n == 0) return {};
  return {.records = n,
          .median = value_at(errors_, 0.5),
          .ninth = value_at(errors_, 0.9),
          .worst = std::ranges::max(errors_),
          .inside = static_cast<double>(inside_) / static_cast<double>(n),
          .width = value_at(widths_, 0.5)};
}

std::map<std::string, Accuracy> hold_out(const std::vector<ComparedRecord>& all, const OfRecord& of) {
  std::set<std::string> groups;
  for (const ComparedRecord& c : all)
    if (c.answer.simulated) groups.insert(of(*c.record));
  std::map<std::string, AccuracyAccumulator> kinds;
  for (const std::string& group : groups) {
    const FittedParameters others = fit(all, of, group);
    for (const ComparedRecord& c : all)
      if (c.answer.simulated && of(*c.record) == group)
        kinds[c.kind()].add(c.error(&others), c.inside(&others), c.width(&others));
  }
  std::map<std::string, Accuracy> found;
  for (const auto& [kind, accuracy] : kinds) found[kind] = accuracy.found();
  return found;
}

KernelRankingAccuracy ranking(const std::vector<ComparedRecord>& all) {
  static const std::regex version(
      R"(\.(v\d+|step\d+|ladder\d+|baseline|best|tiled|hoist_load|block_free\w*|fully_optimi[sz]ed|stream|rowchunk\d+|free\d+)(?=\.|$))");
  std::map<std::string, std::vector<const ComparedRecord*>> ladders;
  for (const ComparedRecord& c : all)
    if (c.answer.simulated && c.record->kind() == "kernel" && seconds_of(c.record->unit))
      ladders[fmt::format("{} {}", std::regex_replace(c.record->id, version, ".*"), c.record->unit)].push_back(&c);
  KernelRankingAccuracy found;
  double agree = 0;
  for (const auto& [name, versions] : ladders) {
    const std::size_t before = found.pairs;
    for (std::size_t i = 0; i < versions.size(); ++i)
      for (std::size_t j = i + 1; j < versions.size(); ++j) {
        const double measured = std::log(versions[i]->record->value / versions[j]->record->value);
        const double simulated = std::log(versions[i]->simulated() / versions[j]->simulated());
        if (std::abs(measured) < tie) continue;
        ++found.pairs;
        agree += simulated == 0 ? 0 : (simulated > 0) == (measured > 0) ? 1 : -1;
      }
    found.ladders += found.pairs > before ? 1 : 0;
  }
  if (found.pairs > 0) found.tau = agree / static_cast<double>(found.pairs);
  return found;
}

}  // namespace trellis::measure
