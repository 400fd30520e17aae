#include "tools/train/step_price_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "schedule/graph/match_exchanges.h"
#include "sim/hardware/report/html_parts.h"
#include "sim/hardware/timeline/format_quantities.h"
#include "tools/answer/noise.h"
#include "tools/program/json_text.h"
#include "tools/program/table.h"
#include "tools/train/memory_parts.h"
#include "train/config/experts/experts_check.h"

namespace trellis::tools {
namespace {

using sim::Time;

Table classes_of(const PricedStep& p) {
  std::vector<Column> columns{left("ranks")};
  for (const std::string& phase : p.graph.phases) columns.push_back({phase, "s"});
  for (const schedule::GraphCommunicator& c : p.graph.communicators) columns.push_back({c.name, "s"});
  columns.push_back({"idle", "s"});
  columns.push_back({"memory", "B"});
  for (const char* what : memory_part_names) columns.push_back({what, "B"});
  Table table("classes", std::move(columns));
  for (std::size_t c = 0; c < p.price.classes.size(); ++c) {
    const sim::StepTimeBreakdown& t = p.price.classes[c];
    std::vector<Cell> row{schedule::ranks_words(p.graph.classes[c].ranks)};
    for (std::size_t i = 0; i < p.graph.phases.size(); ++i) row.emplace_back(sim::in_seconds(t.compute[i]));
    for (Time exposed : t.exposed) row.emplace_back(sim::in_seconds(exposed));
    row.emplace_back(sim::in_seconds(t.idle));
    row.emplace_back(static_cast<double>(p.memory[c].bytes));
    for (const double part : memory_parts(p.memory[c])) row.emplace_back(part);
    table.add(std::move(row));
  }
  return table;
}

Table exchanges_of(const PricedStep& p) {
  Table table("exchanges",
              {left("exchange"), left("on"), {"size", "B"}, {"alone", "s"}, {"together", "s"}, left("algorithm")});
  constexpr std::size_t most = 12;
  for (std::size_t i = 0; i < std::min(most, p.price.exchanges.size()); ++i) {
    const sim::ExchangePrice& e = p.price.exchanges[i];
    table.add({e.name, p.graph.communicators[e.communicator].name, e.bytes, sim::in_seconds(e.alone),
               sim::in_seconds(e.together), e.algorithm});
  }
  return table;
}

// The time that each engine would need if the others took none, on the ranks that compute longest.
std::string engines_words(const PricedStep& p) {
  const sim::StepTimeBreakdown& most = p.price.classes[p.busiest()];
  return fmt::format("Tensor {}, Vector {}, Scalar {}, DMA {}, each alone", sim::time_words(most.engines[0]),
                     sim::time_words(most.engines[1]), sim::time_words(most.engines[2]),
                     sim::time_words(most.engines[3]));
}

double sum_of(const std::vector<sim::OperationKindTime>& kinds, double sim::OperationKindTime::*part) {
  double sum = 0;
  for (const sim::OperationKindTime& k : kinds) sum += k.*part;
  return sum;
}

// The time of each kind of operation on the ranks that compute longest, and whether formulas or programs gave it.
Table kinds_of(const PricedStep& p) {
  Table table("operations", {left("operation"), {"time", "s"}, {"part"}, left("by")});
  const double all = sum_of(p.kinds, &sim::OperationKindTime::seconds);
  for (const sim::OperationKindTime& k : p.kinds) {
    const double programs = k.by_programs / k.seconds;
    table.add({k.kind, k.seconds, fmt::format("{:.1f}%", 100 * k.seconds / all),
               programs == 0   ? "formulas"
               : programs == 1 ? "programs"
                               : fmt::format("programs, {:.0f}% of it formulas", 100 * (1 - programs))});
  }
  return table;
}

nlohmann::ordered_json kinds_json(const PricedStep& p) {
  auto all = nlohmann::ordered_json::array();
  for (const sim::OperationKindTime& k : p.kinds)
    all.push_back({{"operation", k.kind}, {"time_us", k.seconds * 1e6}, {"by_programs_us", k.by_programs * 1e6}});
  return all;
}

std::string ways_words(const PricedStep& p) {
  if (!p.by_programs) return "by formulas";
  return fmt::format(
      "{:.1f}% of computation by programs of sim/core, the rest by formulas",
      100 * sum_of(p.kinds, &sim::OperationKindTime::by_programs) / sum_of(p.kinds, &sim::OperationKindTime::seconds));
}

std::string factors_words(const sim::StepFactors& f) {
  std::string words = fmt::format("computation x {:.3f} for the software's release", f.software);
  if (f.hosts != 1) words += fmt::format(", x {:.3f} for several hosts", f.hosts);
  for (const auto& [communicator, part] : f.exposed)
    words += fmt::format("; {:.0f}% of {} exchanges exposed", 100 * part, communicator);
  return words;
}

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  return seconds < 7200 ? fmt::format("{:.3g} min", seconds / 60) : fmt::format("{:.4g} h", seconds / 3600);
}

std::string goodput_words(const sim::GoodputInputs& f, double step) {
  sim::GoodputInputs best = f;
  best.interval = sim::best_interval(f);
  std::string words = fmt::format("{:.1f}% of the time: a failure each {}, a checkpoint each {}", 100 * sim::goodput(f),
                                  duration(f.between), duration(f.interval));
  if (std::abs(best.interval / f.interval - 1) > 0.05)
    words += fmt::format("; {:.1f}% with one each {}", 100 * sim::goodput(best), duration(best.interval));
  return words + fmt::format("; {:.0f} steps a day", 86400 * sim::goodput(f) / step);
}

std::string memory_words(const PricedStep& p) {
  const auto most = static_cast<double>(p.most_memory().bytes);
  std::string words = fmt::format("{} of {} a rank{}", sim::bytes_words(most), sim::bytes_words(p.memory_of_rank),
                                  p.fits() ? "" : ": does NOT fit");
  if (const double pairs = attention_pairs(p.most_memory()); pairs > 0)
    words += fmt::format("; {} of it are attention's pairs, none with model.fusions.flash_attention",
                         sim::bytes_words(pairs));
  return words;
}

}  // namespace

std::string step_path_words(const PricedStep& p) {
  std::map<std::string, Time> parts;
  Time before = 0, waits = 0;
  const auto phase = [&](std::size_t i) { return i < p.graph.phases.size() ? p.graph.phases[i] : "computation"; };
  const auto exchanges = [&](std::uint32_t i) { return fmt::format("{} exchanges", p.graph.communicators[i].name); };
  for (const auto& [c, t] : p.price.path) {
    const schedule::GraphTask& task = p.graph.classes[c].tasks[t];
    const sim::TaskTiming& when = p.price.tasks[c][t];
    waits += std::max<Time>(0, when.start - before);
    if (when.stretch >= 0) {
      const sim::StepTimeBreakdown& spent = p.price.stretches[static_cast<std::size_t>(when.stretch)];
      for (std::size_t i = 0; i < spent.compute.size(); ++i) parts[phase(i)] += spent.compute[i];
      for (std::uint32_t i = 0; i < spent.exposed.size(); ++i) parts[exchanges(i)] += spent.exposed[i];
    } else {
      parts[task.kind == schedule::GraphTask::Kind::compute ? phase(task.phase) : exchanges(task.communicator)] +=
          when.end - std::max(when.start, before);
    }
    before = when.end;
  }
  if (waits > 0) parts["waiting"] = waits;
  std::vector<std::pair<Time, std::string>> sorted;
  for (const auto& [what, time] : parts) sorted.emplace_back(time, what);
  std::ranges::sort(sorted, std::greater{});
  std::vector<std::string> words;
  for (const auto& [time, what] : sorted)
    if (time > 0) words.push_back(fmt::format("{} {}", sim::share_words(time, p.price.time), what));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string step_text(const PricedStep& p, const sim::Machine& machine) {
  const train::MeshShape& m = p.shape;
  const double seconds = sim::in_seconds(p.price.time);
  std::string out = fmt::format("{} on {}: {} ranks, tensor {}, pipeline {}, data {}{}; {} micro-batches of {}\n",
                                p.config.name, machine.title(), p.graph.ranks, m.tensor, m.pipeline, m.data,
                                train::context_words(p.config), p.micro_batches, p.config.micro_batch_size);
  out += fmt::format("  step           {}\n", sim::time_words(p.price.time));
  out += fmt::format("  between        {} and {}: four of five published steps are that near\n",
                     sim::time_words(p.price.low), sim::time_words(p.price.high));
  out += fmt::format("  throughput     {:.4g} sequences/s, {:.4g} tokens/s\n",
                     static_cast<double>(p.sequences()) / seconds, static_cast<double>(p.tokens()) / seconds);
  out += fmt::format("  MFU            {:.1f}% of {:.4g} TFLOP/s; forward and backward, causal halves, nothing twice\n",
                     100 * p.mfu(), p.peak * 1e-12);
  out += fmt::format("  memory         {}\n", memory_words(p));
  out += fmt::format("  engines        {}\n", engines_words(p));
  out += fmt::format("  operations     {}\n", ways_words(p));
  out += fmt::format("  model          {}\n", factors_words(p.price.factors));
  if (const std::string routing = train::routing_words(p.config); !routing.empty())
    out += fmt::format("  routing        {}\n", routing);
  out += fmt::format("  critical path  {}\n", step_path_words(p));
  if (!p.noisy.times.empty()) out += fmt::format("  with noise     {}\n", noise_words(p.noisy));
  if (p.failures) out += fmt::format("  goodput        {}\n", goodput_words(*p.failures, seconds));
  if (p.laid_out < p.micro_batches)
    out += fmt::format("  laid out       {} of {} micro-batches: those between the first and the last are alike\n",
                       p.laid_out, p.micro_batches);
  return out + "\n" + classes_of(p).text() + "\n" + exchanges_of(p).text() + "\n" + kinds_of(p).text() +
         "proved: communication matches, and nobody waits in a circle\n";
}

std::string step_json(const PricedStep& p, const sim::Machine& machine) {
  const train::MeshShape& m = p.shape;
  const double seconds = sim::in_seconds(p.price.time);
  nlohmann::ordered_json out{{"config", p.config.name},
                             {"machine", machine.name()},
                             {"what_if", machine.spec().changes},
                             {"ranks", p.graph.ranks},
                             {"tensor", m.tensor},
                             {"pipeline", m.pipeline},
                             {"data", m.data},
                             {"micro_batches", p.micro_batches},
                             {"time_ps", p.price.time},
                             {"low_ps", p.price.low},
                             {"high_ps", p.price.high},
                             {"sequences_per_second", static_cast<double>(p.sequences()) / seconds},
                             {"tokens_per_second", static_cast<double>(p.tokens()) / seconds},
                             {"mfu", p.mfu()},
                             {"memory_bytes", p.most_memory().bytes},
                             {"attention_pairs_bytes", attention_pairs(p.most_memory())},
                             {"memory_of_rank_bytes", p.memory_of_rank},
                             {"fits", p.fits()},
                             {"routing", train::routing_words(p.config)},
                             {"software_factor", p.price.factors.software},
                             {"hosts_factor", p.price.factors.hosts},
                             {"times", p.by_programs ? "programs" : "formulas"},
                             {"critical_path", step_path_words(p)}};
  put_noise(out, p.noisy);
  if (p.failures)
    out["goodput"] = {{"part", sim::goodput(*p.failures)},
                      {"seconds_between_failures", p.failures->between},
                      {"checkpoint_seconds", p.failures->interval},
                      {"best_checkpoint_seconds", sim::best_interval(*p.failures)}};
  out["classes"] = classes_of(p).object()["classes"];
  out["exchanges"] = exchanges_of(p).object()["exchanges"];
  out["operations"] = kinds_json(p);
  return json_text(out, 1);
}

std::string step_page(const PricedStep& p, const sim::Machine& machine) {
  return "<pre>" + sim::escaped_html(step_text(p, machine)) + "</pre>";
}

}  // namespace trellis::tools
