// Prices: how long a collective takes on a machine, and why.

#include "python/binding/signals.h"
#include "sim/cluster/answer/collective_answer.h"
#include "sim/cluster/price/critical_path.h"
#include "sim/cluster/price/timeline.h"
#include "text/words.h"

namespace trellis::binding {
namespace {

using namespace nb::literals;
using namespace sim;

struct Link {
  std::string name;
  double bytes = 0, rate = 0, busy = 0;
};

// An answer, with its critical path in words and by the names of its links, and the load of each link that carried
// bytes.
struct Explained {
  CollectiveAnswer answer;
  std::string path_words;
  std::vector<std::string> resources;  // names, one for each leg of the path; "": the leg uses none
  std::vector<Link> links;
};

void explain(const Machine& machine, Explained& e) {
  const Price& p = e.answer.price;
  e.path_words = path_in_words(p, machine);
  for (const CriticalPathLeg& leg : p.path)
    e.resources.push_back(leg.resource == no_resource ? "" : machine.resource_name(leg.resource));
  const double seconds = in_seconds(p.time);
  for (ResourceId r = 0; r < machine.resources(); ++r) {
    const double carried = e.answer.carried[r];
    if (carried <= 0) continue;
    const double rate = machine.rate(r);
    e.links.push_back({machine.resource_name(r), carried, rate, carried / (rate * seconds)});
  }
}

// The group is the machine's first `ranks` ranks; 0: all, or as many as the schedule has.
Explained answer_to(CollectiveQuestion q, const MachineSpec& spec, Rank ranks, ProgressMonitor& watch) {
  PricingSession priced(spec, &watch);
  if (q.schedule) ranks = q.schedule->ranks();
  if (ranks > priced.machine().ranks())
    throw std::invalid_argument(std::to_string(ranks) + " ranks: " + spec.name + " has " +
                                std::to_string(priced.machine().ranks()));
  q.group = first_in_a_row(priced.machine(), ranks);
  Explained e{.answer = answer(q, priced)};
  if (q.path && e.answer.interrupted.empty() && e.answer.price.time != forever) explain(priced.machine(), e);
  return e;
}

std::string_view name_of(CriticalPathLeg::Kind kind) {
  return text::word_of(kind, {"launch", "software", "moving", "latency"});
}

nb::dict as_dict(const Explained& e, bool with_interval) {
  nb::dict d;
  const CollectiveAnswer& a = e.answer;
  const Price& p = a.price;
  d["config"] = text_of(a.config);
  d["time_ps"] = p.time;
  d["bytes"] = p.bytes;
  d["algbw"] = p.algbw;
  d["busbw"] = p.busbw;
  d["bounds_ps"] = nb::make_tuple(p.bounds.latency, p.bounds.bandwidth, p.bounds.bisection, p.bounds.memory);
  d["busiest"] = nb::make_tuple(p.busiest_name, p.busiest_share);
  d["simulated"] = p.simulated;
  d["transfers"] = p.transfers;
  d["exact"] = p.exact;
  nb::list path, sensitivities;
  for (std::size_t i = 0; i < e.resources.size(); ++i) {
    const CriticalPathLeg& leg = p.path[i];
    path.append(nb::make_tuple(std::string(name_of(leg.kind)), leg.time, leg.from, leg.to, e.resources[i]));
  }
  d["path"] = path;
  d["path_words"] = e.path_words;
  std::vector<double> bytes, rates, busy;
  nb::list names;
  for (const Link& link : e.links)
    names.append(link.name), bytes.push_back(link.bytes), rates.push_back(link.rate), busy.push_back(link.busy);
  d["links"] = nb::make_tuple(names, as_array(bytes), as_array(rates), as_array(busy));
  if (with_interval) {
    for (const Sensitivity& s : a.interval.sensitivities)
      sensitivities.append(nb::make_tuple(s.figure, s.low_text, s.high_text, s.low, s.high));
    d["interval_ps"] = nb::make_tuple(a.interval.low, a.interval.high);
  }
  d["sensitivities"] = sensitivities;
  return d;
}

// What ran where and when: rows' names, and for each span its row, label, start and end.
nb::dict timeline(const MachineSpec& spec, const schedule::Schedule& schedule, double bytes) {
  Timeline seen;
  SignalWatcher signals;
  signals.watch([&] {
    const Machine machine(spec);
    const CompiledSchedule pattern(schedule);
    const auto run = run_for(pattern, machine,
                             {.bytes = bytes,
                              .stopped = [&](Time, double) { return signals.raised(); },
                              .members = first_in_a_row(machine, schedule.ranks()).members},
                             true);
    if (run->run() != forever) seen = timeline_of(*run, machine).timeline;
  });
  std::vector<std::int64_t> row, start, end;
  nb::list rows, labels;
  for (const Track& track : seen.tracks) rows.append(nb::make_tuple(track.group, track.name));
  for (const Span& span : seen.spans) {
    row.push_back(span.track), start.push_back(span.start), end.push_back(span.end);
    labels.append(seen.label(span.label));
  }
  nb::dict d;
  d["rows"] = rows, d["labels"] = labels;
  d["row"] = as_array(row), d["start_ps"] = as_array(start), d["end_ps"] = as_array(end);
  return d;
}

}  // namespace

void add_prices(nb::module_& m) {
  m.def(
      "price",
      [](const MachineSpec& machine, const schedule::Schedule* schedule, const std::string& collective, double bytes,
         const std::string& config, Rank ranks, Rank root, double element, const std::string& era, bool fold,
         bool in_place, bool interval, bool explain) {
        CollectiveQuestion q{.settings = {.operation = {.collective = schedule ? schedule->task.operation.collective
                                                                               : schedule::collective_named(collective),
                                                        .root = root,
                                                        .peer = last_rank,
                                                        .in_place = in_place},
                                          .era = era,
                                          .element = element,
                                          .fold = fold},
                             .bytes = bytes,
                             .schedule = schedule,
                             .interval = interval,
                             .path = explain,
                             .links = explain};
        if (!config.empty()) q.config = algorithm_config_named(config);
        Explained answer;
        SignalWatcher signals;
        StopOnSignal watch(signals);
        signals.watch([&] { answer = answer_to(std::move(q), machine, ranks, watch); });
        return as_dict(answer, interval);
      },
      "machine"_a, "schedule"_a.none(), "collective"_a, "bytes"_a, "config"_a = "", "ranks"_a = 0, "root"_a = 0,
      "element"_a = 4.0, "era"_a = "", "fold"_a = true, "in_place"_a = false, "interval"_a = true, "explain"_a = true);
  m.def("timeline", &timeline, "machine"_a, "schedule"_a, "bytes"_a);
}

}  // namespace trellis::binding
