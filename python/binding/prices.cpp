// Prices: how long a collective takes on a machine, and why.
#include <optional>

#include "python/binding/parts.h"
#include "sim/choose/choice.h"
#include "sim/choose/usual_ways.h"
#include "sim/price/interval.h"
#include "sim/price/path.h"
#include "sim/price/timeline.h"

namespace trellis::binding {
namespace {

using namespace nb::literals;
using namespace sim;

// What is asked. With a schedule, the collective and the way are its own.
struct Question {
  const schedule::Schedule* schedule = nullptr;
  std::string collective;
  double bytes = 0;
  std::string way;  // empty: the fastest
  Rank ranks = 0;   // 0: all of the machine
  Rank root = 0;
  double element = 4;
  std::string era;
  bool fold = true, packets = false, in_place = false;
  bool interval = true, explain = true;
};

struct Link {
  std::string name;
  double bytes = 0, rate = 0, busy = 0;
};

struct Answer {
  std::string way;
  Price price;
  std::optional<Interval> interval;
  std::string path_words;
  std::vector<std::string> resources;  // of the legs
  std::vector<Link> links;
};

std::optional<Pattern> pattern_asked(const Question& q, const Group& group, const Machine& machine,
                                     PriceOptions& options, Answer& answer) {
  if (q.schedule) {
    answer.way = q.schedule->algorithm;
    return Pattern(*q.schedule);
  }
  const auto collective = schedule::collective_named(q.collective);
  Pricer pricer(machine, group,
                {.collective = collective,
                 .era = q.era,
                 .element = q.element,
                 .root = q.root,
                 .in_place = q.in_place,
                 .fold = q.fold,
                 .packets = q.packets});
  Way way;
  if (q.way.empty()) {
    const Choice choice = choose(pricer, usual_ways(pricer, q.bytes), q.bytes, {.within = usual_within});
    if (choice.best.empty()) throw std::invalid_argument("no algorithm serves " + q.collective + " here");
    way = choice.best.front().way;
  } else {
    way = way_named(q.way);
    if (way.dims.empty()) way.dims = usual_dims(way.algorithm, machine, group.ranks());
    if (const std::string refusal = pricer.refusal(way); !refusal.empty())
      throw std::invalid_argument(q.way + ": " + refusal);
  }
  answer.way = text_of(way);
  return pattern_for(schedule::algorithm_named(way.algorithm), pricer.request(way), options);
}

void look_at_links(const Pattern& pattern, const Machine& machine, const PriceOptions& options, Answer& answer) {
  const auto run = run_for(pattern, machine, options, false);
  const double seconds = in_seconds(run->run());
  for (ResourceId r = 0; r < machine.resources(); ++r) {
    const double carried = run->carried(r);
    if (carried <= 0) continue;
    const double rate = machine.rate(r);
    answer.links.push_back({machine.resource_name(r), carried, rate, carried / (rate * seconds)});
  }
}

Answer answer_to(const Question& q, const MachineSpec& spec) {
  const Machine machine(spec);
  const Rank ranks = q.schedule ? q.schedule->ranks() : q.ranks;
  if (ranks > machine.ranks())
    throw std::invalid_argument(std::to_string(ranks) + " ranks: " + spec.name + " has " +
                                std::to_string(machine.ranks()));
  const Group group = first_in_a_row(machine, ranks);
  PriceOptions options{.bytes = q.bytes,
                       .element = q.element,
                       .era = q.era,
                       .fold = q.fold,
                       .packets = q.packets,
                       .explain = q.explain,
                       .members = group.members};
  Answer answer;
  const auto pattern = pattern_asked(q, group, machine, options, answer);
  answer.price = price(*pattern, machine, options);
  if (q.explain) {
    answer.path_words = path_in_words(answer.price, machine);
    for (const Leg& leg : answer.price.path)
      answer.resources.push_back(leg.resource == no_resource ? "" : machine.resource_name(leg.resource));
    look_at_links(*pattern, machine, options, answer);
  }
  options.explain = false;
  if (q.interval) answer.interval = interval(*pattern, spec, options, answer.price.time);
  return answer;
}

std::string_view name_of(Leg::Kind kind) {
  constexpr std::string_view names[] = {"launch", "software", "moving", "latency"};
  return names[static_cast<std::size_t>(kind)];
}

nb::dict as_dict(const Answer& a) {
  nb::dict d;
  const Price& p = a.price;
  d["way"] = a.way;
  d["time_ps"] = p.time;
  d["bytes"] = p.bytes;
  d["algbw"] = p.algbw;
  d["busbw"] = p.busbw;
  d["bounds_ps"] = nb::make_tuple(p.bounds.latency, p.bounds.bandwidth, p.bounds.bisection, p.bounds.memory);
  d["busiest"] = nb::make_tuple(p.busiest_name, p.busiest_share);
  d["simulated"] = p.simulated;
  d["transfers"] = p.transfers;
  d["exact"] = p.exact;
  nb::list path, sways;
  for (std::size_t i = 0; i < a.resources.size(); ++i) {
    const Leg& leg = p.path[i];
    path.append(nb::make_tuple(std::string(name_of(leg.kind)), leg.time, leg.from, leg.to, a.resources[i]));
  }
  d["path"] = path;
  d["path_words"] = a.path_words;
  std::vector<double> bytes, rates, busy;
  nb::list names;
  for (const Link& link : a.links)
    names.append(link.name), bytes.push_back(link.bytes), rates.push_back(link.rate), busy.push_back(link.busy);
  d["links"] = nb::make_tuple(names, as_array(bytes), as_array(rates), as_array(busy));
  if (a.interval) {
    for (const Sway& s : a.interval->sways)
      sways.append(nb::make_tuple(s.figure, s.low_text, s.high_text, s.low, s.high));
    d["interval_ps"] = nb::make_tuple(a.interval->low, a.interval->high);
  }
  d["sways"] = sways;
  return d;
}

// What ran where and when: rows' names, and for each span its row, label, start and end.
nb::dict timeline(const MachineSpec& spec, const schedule::Schedule& schedule, double bytes) {
  Timeline seen;
  {
    const nb::gil_scoped_release others_may_run;
    const Machine machine(spec);
    const Pattern pattern(schedule);
    const auto run =
        run_for(pattern, machine, {.bytes = bytes, .members = first_in_a_row(machine, schedule.ranks()).members}, true);
    run->run();
    seen = timeline_of(*run, machine).timeline;
  }
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
         const std::string& way, Rank ranks, Rank root, double element, const std::string& era, bool fold, bool packets,
         bool in_place, bool interval, bool explain) {
        const Question q{schedule, collective, bytes,   way,      ranks,    root,   element,
                         era,      fold,       packets, in_place, interval, explain};
        Answer answer;
        {
          const nb::gil_scoped_release others_may_run;
          answer = answer_to(q, machine);
        }
        return as_dict(answer);
      },
      "machine"_a, "schedule"_a.none(), "collective"_a, "bytes"_a, "way"_a = "", "ranks"_a = 0, "root"_a = 0,
      "element"_a = 4.0, "era"_a = "", "fold"_a = true, "packets"_a = false, "in_place"_a = false, "interval"_a = true,
      "explain"_a = true);
  m.def("timeline", &timeline, "machine"_a, "schedule"_a, "bytes"_a);
}

}  // namespace trellis::binding
