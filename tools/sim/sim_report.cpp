#include "tools/sim/sim_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "sim/cluster/machine/launch_mode.h"
#include "sim/cluster/price/critical_path.h"
#include "sim/hardware/timeline/format_quantities.h"
#include "tools/answer/asked_machine.h"
#include "tools/answer/crossover_chart.h"
#include "tools/answer/noise.h"
#include "tools/program/json_text.h"
#include "tools/program/table.h"

namespace trellis::tools {
namespace {

using namespace sim;

Table phase_table(const CollectiveAnswer& a) {
  Table table("phases", {left("phase"), {"from", "s"}, {"to", "s"}, {"on the path"}, {"transfers"}});
  for (const CollectivePhase& p : a.phases)
    table.add({p.name, in_seconds(p.from), in_seconds(p.to), share_words(p.on_path, a.price.time), p.transfers});
  return table;
}

}  // namespace

void put_interval(nlohmann::ordered_json& j, const UncertaintyInterval& interval) {
  if (interval.high <= 0) return;
  j["time_low_us"] = in_us(interval.low), j["time_high_us"] = in_us(interval.high);
  j["sensitive_to"] = nlohmann::ordered_json::array();
  for (const Sensitivity& s : interval.sensitivities)
    j["sensitive_to"].push_back({{"figure", s.figure}, {"low_us", in_us(s.low)}, {"high_us", in_us(s.high)}});
}

void put_launches(nlohmann::ordered_json& j, const CollectiveAnswer& a) {
  if (a.era.empty()) return;
  j["era"] = a.era, j["launch"] = launch_of(a.era);
  for (const LaunchVariant& other : a.launches)
    j["launches"].push_back({{"launch", other.by},
                             {"era", other.era},
                             {"time_us", in_us(other.time)},
                             {"time_low_us", in_us(other.low)},
                             {"time_high_us", in_us(other.high)}});
  j["draw_with"] = nlohmann::ordered_json::array();
  for (const AlgorithmConfig& config : a.draws) j["draw_with"].push_back(text_of(config));
}

std::string config_words(const AlgorithmConfig& config) {
  return config.algorithm.starts_with(schedule::file_prefix) ? config.algorithm : text_of(config);
}

std::string interval_words(const UncertaintyInterval& interval) {
  const bool by_model =
      std::ranges::any_of(interval.sensitivities, [](const Sensitivity& s) { return s.figure.starts_with("error."); });
  return fmt::format(
      "{} and {}, by figures that are not documented{}{}", sim_time_text(interval.low), sim_time_text(interval.high),
      by_model ? " and the model's own error" : "",
      interval.sensitivities.empty() ? "" : fmt::format(", above all {}", interval.sensitivities.front().figure));
}

std::string sensitivity_words(const Sensitivity& s) {
  return fmt::format("{} = {} to {}: {} to {}", s.figure, s.low_text, s.high_text, sim_time_text(s.low),
                     sim_time_text(s.high));
}

std::string bounds_words(const LowerBounds& bounds) {
  std::string text = fmt::format("latency {}", sim_time_text(bounds.latency));
  const auto add = [&](std::string_view what, Time time) {
    if (time > 0) text += fmt::format(", {} {}", what, sim_time_text(time));
  };
  add("bandwidth", bounds.bandwidth), add("bisection", bounds.bisection), add("memory", bounds.memory);
  return text;
}

std::vector<std::string> left_out_words(const AlgorithmChoice& choice) {
  std::vector<std::string> lines;
  const std::size_t untried = choice.untried.size();
  if (untried > 0)
    lines.push_back(fmt::format("{} config{} too large to be decided: {}{}", untried, untried == 1 ? "" : "s",
                                text_of(choice.untried.front()), untried == 1 ? "" : ", ..."));
  std::map<std::string, std::pair<std::size_t, const RejectedConfig*>>
      first;  // by algorithm: how many were rejected, and the first of them
  for (const RejectedConfig& l : choice.left_out) {
    auto& [count, one] = first.try_emplace(l.config.algorithm, 0, &l).first->second;
    ++count;
  }
  for (const auto& [algorithm, found] : first)
    lines.push_back(fmt::format("{}{}: {}", text_of(found.second->config),
                                found.first == 1 ? "" : fmt::format(" and {} more", found.first - 1),
                                found.second->why));
  return lines;
}

std::string launch_words(const CollectiveAnswer& a) {
  if (a.era.empty()) return {};
  std::string text = fmt::format(
      "{} (era {})", launch_of(a.era) == launches[0] ? "on the device" : fmt::format("by the {}", launch_of(a.era)),
      a.era);
  for (const LaunchVariant& other : a.launches)
    text += fmt::format("; by {}: {} ({} to {})", other.by == launches[1] ? "a graph" : "the host",
                        sim_time_text(other.time), sim_time_text(other.low), sim_time_text(other.high));
  return text;
}

std::string draw_words(const std::vector<AlgorithmConfig>& draws) {
  std::string text;
  const std::size_t named = std::min(most_compared, draws.size());
  for (std::size_t i = 0; i < named; ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", draws[i].algorithm);
  return draws.size() == named ? text : fmt::format("{} and {} more", text, draws.size() - named);
}

std::string sim_text(const SimReport& report, const Machine& machine) {
  const CollectiveAnswer& a = report.answer;
  const Price& p = a.price;
  std::string text =
      fmt::format("{} on {}: {} by {}\n", report.words, machine.title(), sim_time_text(p.time), config_words(a.config));
  const auto line = [&](std::string_view what, const std::string& value) {
    text += fmt::format("  {:13} {}\n", what, value);
  };
  if (!a.interrupted.empty()) line("interrupted", a.interrupted);
  if (a.interval.high > 0) line("between", interval_words(a.interval));
  if (const std::string words = rests_on(machine.spec()); !words.empty()) line("rests on", words);
  if (const std::string words = launch_words(a); !words.empty()) line("launched", words);
  if (!a.draws.empty()) line("a draw with", draw_words(a.draws) + ": their intervals overlap");
  if (!a.noisy.times.empty()) line("with noise", noise_words(a.noisy));
  line("algbw, busbw", fmt::format("{:.3f} GB/s, {:.3f} GB/s", p.algbw * 1e-9, p.busbw * 1e-9));
  line("bounds", bounds_words(p.bounds));
  if (!p.busiest_name.empty())
    line("busiest", fmt::format("{}, {:.0f}% of the time", p.busiest_name, 100 * p.busiest_share));
  if (!p.path.empty()) line("time goes to", path_in_words(p, machine));
  if (report.explain)
    for (const Sensitivity& s :
         std::span(a.interval.sensitivities).first(std::min<std::size_t>(3, a.interval.sensitivities.size())))
      line("sensitive to", sensitivity_words(s));
  const auto& others = a.choice.others;
  for (const ConfigCost& other : std::span(others).first(std::min(most_compared, others.size())))
    line("runner-up", fmt::format("at least {} by {}", sim_time_text(other.time), text_of(other.config)));
  for (const std::string& words : left_out_words(a.choice)) line("left out", words);
  line("simulated", fmt::format("{} of {} ranks, {} transfers{}", p.simulated, report.ranks, p.transfers,
                                p.exact ? "" : ", where they crowd with rates right to 0.012%"));
  for (const std::string& note : report.notes) line("shown", note);
  if (report.explain && !a.phases.empty()) text += "\n" + phase_table(a).text();
  return text;
}

std::string sim_json(const SimReport& report, const Machine& machine) {
  const CollectiveAnswer& a = report.answer;
  const Price& p = a.price;
  nlohmann::ordered_json j{{"collective", report.collective},
                           {"machine", machine.name()},
                           {"what_if", machine.spec().changes},
                           {"algorithm", a.config.algorithm},
                           {"config", config_words(a.config)},
                           {"dims", a.config.dims},
                           {"channels", a.config.channels},
                           {"segments", a.config.segments},
                           {"ranks", report.ranks},
                           {"bytes", p.bytes},
                           {"time_us", in_us(p.time)},
                           {"time_ps", p.time},
                           {"algbw_GBps", p.algbw * 1e-9},
                           {"busbw_GBps", p.busbw * 1e-9},
                           {"bound_latency_us", in_us(p.bounds.latency)},
                           {"bound_bandwidth_us", in_us(p.bounds.bandwidth)},
                           {"bound_bisection_us", in_us(p.bounds.bisection)},
                           {"bound_memory_us", in_us(p.bounds.memory)},
                           {"busiest", p.busiest_name},
                           {"busiest_share", p.busiest_share},
                           {"ranks_simulated", p.simulated},
                           {"transfers_simulated", p.transfers},
                           {"exact", p.exact},
                           {"interrupted", a.interrupted},
                           {"left_out", left_out_words(a.choice)}};
  put_interval(j, a.interval);
  put_launches(j, a);
  put_noise(j, a.noisy);
  for (const CriticalPathShare& s : path_shares(p, machine))
    j["path"].push_back({{"what", s.words}, {"time_us", in_us(s.time)}});
  for (const CollectivePhase& phase : a.phases)
    j["phases"].push_back({{"phase", phase.name},
                           {"from_us", in_us(phase.from)},
                           {"to_us", in_us(phase.to)},
                           {"on_path_us", in_us(phase.on_path)},
                           {"transfers", phase.transfers},
                           {"bytes", phase.bytes}});
  return json_text(j);
}

}  // namespace trellis::tools
