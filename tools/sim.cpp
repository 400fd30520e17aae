// trellis sim: what a collective takes on a simulated machine, and why.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/choice.h"
#include "sim/interval.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/request_options.h"

namespace trellis::tools {
namespace {

using namespace sim;

struct Options {
  std::string collective, machine = "trn2.48xlarge", bytes = "1MiB", era;
  RequestOptions request;
  std::vector<std::string> what_if;
  int ranks = 0;
  bool json = false, explain = false, packets = false, no_fold = false;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Prices a collective on a simulated machine: how long it takes, what bounds it, and how sure that is.\n\n"
      "Machines are data files, several of one (\"trn2.48xlarge x 4\"), or shapes: torus:16x32x32, ring:64, switch:8,\n"
      "clos:64, fattree:4x8x16, dragonfly:4x8x33, full:8, and these within each other: cores:4/torus:4x4/clos:16.");
  app.add_option("collective", o.collective, "all_reduce, all_gather, ...")->required();
  app.add_option("-m,--machine", o.machine, "The machine")->capture_default_str();
  app.add_option("-b,--bytes", o.bytes, "Size of the larger buffer: 8, 64KiB, 1GiB")->capture_default_str();
  app.add_option("-n,--ranks", o.ranks, "Only the machine's first so many ranks [all]")->check(CLI::NonNegativeNumber);
  app.add_option("--era", o.era, "The software's generation [the machine's usual one]");
  app.add_option("--what-if", o.what_if,
                 "KEY=VALUE of the machine's figures, dead:0-1, slow:0-1:0.5, nic:RANK:0.5, hbm:RANK:0.5 or "
                 "straggler:RANK:0.5; repeatable");
  app.add_flag("--explain", o.explain, "The critical path, and the figures that the answer hangs on");
  app.add_flag("--packets", o.packets, "Packet by packet and not as flows: slow");
  app.add_flag("--unfolded", o.no_fold, "Go through every rank even where they are alike");
  app.add_flag("--json", o.json, "Print JSON");
  add_request_options(app, o.request);
}

double bytes_of(const std::string& text) {
  std::size_t end = 0;
  double value = -1;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
  }
  std::string unit = text.substr(end);
  double scale = 1;
  const std::pair<const char*, double> units[] = {
      {"", 1},     {"B", 1},    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0},
      {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};
  const auto* known = std::ranges::find(units, unit, [](const auto& u) { return std::string(u.first); });
  if (known == std::end(units) || value < 0)
    throw std::invalid_argument(fmt::format("'{}': expected a size like 8, 64KiB or 1GB", text));
  scale = known->second;
  return value * scale;
}

std::string time_text(Time t) {
  const double s = in_seconds(t);
  if (s < 1e-6) return fmt::format("{:.1f} ns", s * 1e9);
  if (s < 1e-3) return fmt::format("{:.2f} us", s * 1e6);
  if (s < 1) return fmt::format("{:.3f} ms", s * 1e3);
  return fmt::format("{:.3f} s", s);
}

Candidate wanted(const Options& o, const Machine& machine, const PriceOptions& options, std::vector<Candidate>& tried) {
  const auto collective = schedule::collective_named(o.collective);
  const schedule::Rank ranks = o.ranks > 0 ? o.ranks : machine.ranks();
  if (o.request.algorithm.empty() || o.request.algorithm == "auto") {
    tried = best_first(collective, machine, ranks, options);
    if (tried.empty()) throw std::invalid_argument(fmt::format("no algorithm serves {} here", o.collective));
    return tried.front();
  }
  RequestOptions request = o.request;
  if (request.dims.empty()) request.dims = shape_text(usual_dims(o.request.algorithm, machine, ranks));
  const Asked a = asked(collective, request);
  if (a.request.ranks() != ranks)
    throw std::invalid_argument(
        fmt::format("--dims {} are {} ranks: expected {}", request.dims, a.request.ranks(), ranks));
  return {a.algorithm, a.request, 0};
}

nlohmann::json json_of(const Options& o, const Candidate& c, const Price& p, const Interval& interval) {
  nlohmann::json j{{"collective", o.collective},
                   {"machine", o.machine},
                   {"algorithm", c.algorithm->name},
                   {"dims", c.request.dims},
                   {"channels", c.request.channels},
                   {"segments", c.request.segments},
                   {"ranks", c.request.ranks()},
                   {"bytes", p.bytes},
                   {"time_us", in_us(p.time)},
                   {"time_ps", p.time},
                   {"time_low_us", in_us(interval.low)},
                   {"time_high_us", in_us(interval.high)},
                   {"algbw_GBps", p.algbw * 1e-9},
                   {"busbw_GBps", p.busbw * 1e-9},
                   {"bound_latency_us", in_us(p.bounds.latency)},
                   {"bound_bandwidth_us", in_us(p.bounds.bandwidth)},
                   {"bound_bisection_us", in_us(p.bounds.bisection)},
                   {"busiest", p.busiest_name},
                   {"busiest_share", p.busiest_share},
                   {"ranks_simulated", p.simulated},
                   {"transfers_simulated", p.transfers}};
  for (const Sway& s : interval.sways)
    j["hangs_on"].push_back({{"figure", s.figure}, {"low_us", in_us(s.low)}, {"high_us", in_us(s.high)}});
  return j;
}

std::string text_of(const Options& o, const Machine& machine, const Candidate& c, const Price& p, const Interval& i,
                    const std::vector<Candidate>& tried) {
  std::string text = fmt::format("{} of {} on {}: {} by {} ({}, {} channels)\n", o.collective, o.bytes, machine.name(),
                                 time_text(p.time), c.algorithm->name, shape_text(c.request.dims), c.request.channels);
  text += fmt::format("  between       {} and {}, by the machine's figures that are not documented\n", time_text(i.low),
                      time_text(i.high));
  text += fmt::format("  algbw, busbw  {:.3f} GB/s, {:.3f} GB/s\n", p.algbw * 1e-9, p.busbw * 1e-9);
  text += fmt::format("  bounds        latency {}, bandwidth {}, bisection {}\n", time_text(p.bounds.latency),
                      time_text(p.bounds.bandwidth), time_text(p.bounds.bisection));
  if (!p.busiest_name.empty())
    text += fmt::format("  busiest       {}, {:.0f}% of the time\n", p.busiest_name, 100 * p.busiest_share);
  if (!p.path.empty()) text += fmt::format("  time goes to  {}\n", path_in_words(p, machine));
  if (o.explain)
    for (std::size_t k = 0; k < std::min<std::size_t>(3, i.sways.size()); ++k)
      text += fmt::format("  hangs on      {} = {} to {}: {} to {}\n", i.sways[k].figure, i.sways[k].low_text,
                          i.sways[k].high_text, time_text(i.sways[k].low), time_text(i.sways[k].high));
  for (std::size_t k = 1; k < std::min<std::size_t>(4, tried.size()); ++k)
    text += fmt::format("  rather than   {} by {} ({}, {} channels)\n", time_text(tried[k].time),
                        tried[k].algorithm->name, shape_text(tried[k].request.dims), tried[k].request.channels);
  text += fmt::format("  gone through  {} of {} ranks, {} transfers\n", p.simulated, c.request.ranks(), p.transfers);
  return text;
}

int run(const Options& o) {
  MachineSpec spec = machine_spec(o.machine);
  for (const std::string& each : o.what_if) what_if(spec, each);
  const Machine machine(spec);
  PriceOptions options{
      .bytes = bytes_of(o.bytes), .era = o.era, .fold = !o.no_fold, .packets = o.packets, .explain = o.explain};
  if (o.ranks > machine.ranks())
    throw std::invalid_argument(fmt::format("-n {}: {} has {} ranks", o.ranks, machine.name(), machine.ranks()));
  for (Rank r = 0; r < o.ranks && o.ranks < machine.ranks(); ++r) options.members.push_back(r);
  std::vector<Candidate> tried;
  const Candidate c = wanted(o, machine, options, tried);
  const Pattern pattern = pattern_for(*c.algorithm, c.request, options);
  const Price p = price(pattern, machine, options);
  const Interval i = interval(pattern, spec, options, p.time);
  write_output("", o.json ? json_of(o, c, p, i).dump(2) + "\n" : text_of(o, machine, c, p, i, tried));
  return 0;
}

const Registered simulate(command("sim", "Prices a collective on a simulated machine",
                                  "trellis sim all_reduce --machine trn2.48xlarge --bytes 64MiB --explain\n"
                                  "trellis sim all_reduce --machine torus:16x32x32 -a torus --bytes 1GiB\n"
                                  "trellis sim all_gather --machine \"trn2.48xlarge x 4\" --bytes 16MiB --json\n"
                                  "trellis sim all_reduce --machine torus:4x4x4 -a torus --what-if slow:0-1:0.5",
                                  add, run));

}  // namespace
}  // namespace trellis::tools
