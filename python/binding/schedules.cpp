// Schedules: made by an algorithm, by moves, or from text; proved and printed.
#include "python/binding/module_parts.h"
#include "schedule/algorithms/algorithm.h"
#include "schedule/algorithms/algorithm_config.h"
#include "schedule/builder/program_recorder.h"
#include "schedule/formats/msccl_xml.h"
#include "schedule/formats/mscclpp_json.h"
#include "schedule/formats/text.h"
#include "schedule/proof/verify.h"

namespace trellis::binding {
namespace {

using namespace nb::literals;
using namespace schedule;

using Pairs = std::vector<std::pair<Rank, Rank>>;  // of permute: who sends to whom

std::vector<Pair> as_pairs(const Pairs& pairs) {
  std::vector<Pair> all;
  for (const auto& [source, target] : pairs) all.push_back({source, target});
  return all;
}

// Records a schedule as moves over the whole machine, one after the other.
class Moves {
 public:
  Moves(const std::string& collective, Rank ranks, std::int32_t pieces, Rank root, Rank peer, bool in_place,
        const Pairs& pairs)
      : recorder_(checked({.operation = {.collective = collective_named(collective),
                                         .root = root,
                                         .peer = peer,
                                         .pairs = as_pairs(pairs),
                                         .in_place = in_place},
                           .ranks = ranks,
                           .pieces = pieces})),
        builder_(recorder_, ranks) {}

  void round() { recorder_.next_round(); }
  void copy(const ChunkPlace& from, const ChunkPlace& to, int channel) { on(channel).copy(known(from), known(to)); }
  void reduce(const ChunkPlace& from, const ChunkPlace& to, int channel) { on(channel).reduce(known(from), known(to)); }
  Schedule finish(const std::string& name) {
    auto programs = recorder_.finish();
    return {recorder_.task(), name, recorder_.channels(), std::move(programs)};
  }

 private:
  static Task checked(Task task) {
    check(task);
    return task;
  }
  Builder on(int channel) const {
    if (channel < 0 || channel >= most_channels)
      throw std::invalid_argument("channel " + std::to_string(channel) + ": expected 0 to " +
                                  std::to_string(most_channels - 1));
    return builder_.on_channel(channel);
  }
  std::int64_t chunks(Region region, Rank rank) const {
    if (region == Region::data) return data_chunks(recorder_.task());
    return region == Region::input ? input_chunks(recorder_.task(), rank) : output_chunks(recorder_.task(), rank);
  }
  const ChunkPlace& known(const ChunkPlace& p) const {
    if (p.rank < 0 || p.rank >= recorder_.task().ranks)
      throw std::invalid_argument("rank " + std::to_string(p.rank) + ": expected 0 to " +
                                  std::to_string(recorder_.task().ranks - 1));
    if (p.first < 0 || p.count < 1 || (p.region != Region::scratch && p.first + p.count > chunks(p.region, p.rank)))
      throw std::invalid_argument("chunks " + std::to_string(p.first) + " to " + std::to_string(p.first + p.count - 1) +
                                  " of rank " + std::to_string(p.rank) +
                                  (p.region == Region::scratch
                                       ? ": expected 0 or more"
                                       : ": there are " + std::to_string(chunks(p.region, p.rank))));
    return p;
  }
  ProgramRecorder recorder_;
  Builder builder_;
};

nb::dict step_as_dict(const Program& program, const Step& step) {
  const auto slice = [](const Slice& s) { return nb::make_tuple(std::string(name(s.buffer)), s.first, s.count); };
  nb::dict d;
  d["op"] = std::string(name(step.op));
  d["channel"] = static_cast<int>(step.channel);
  if (writes(step.op)) d["to"] = slice(step.to);
  if (reads(step.op)) d["from"] = slice(step.from);
  if (step.end.peer >= 0) d["peer"] = step.end.peer, d["tag"] = step.end.tag;
  if (step.second.peer >= 0) d["second"] = step.second.peer;
  nb::list after, further;
  for (const std::int32_t before : program.after(step)) after.append(before);
  for (const Slice& s : program.further(step)) further.append(slice(s));
  d["after"] = after;
  if (step.further.count > 0) d["further"] = further;
  return d;
}

Schedule made(const std::string& config, const std::string& collective, const std::vector<Rank>& dims, Rank root,
              Rank peer, bool in_place, const Pairs& pairs) {
  const AlgorithmConfig w = algorithm_config_named(config);
  Request rest{.operation = {.collective = collective_named(collective),
                             .root = root,
                             .peer = peer,
                             .pairs = as_pairs(pairs),
                             .in_place = in_place},
               .dims = dims};
  return make(w.algorithm, request_by(w, rest));
}

void add_moves(nb::module_& m) {
  nb::enum_<Region>(m, "Region")
      .value("data", Region::data)
      .value("input", Region::input)
      .value("output", Region::output)
      .value("scratch", Region::scratch);
  nb::class_<ChunkPlace>(m, "Place")
      .def(nb::init<Rank, Region, std::int64_t, std::int64_t>(), "rank"_a, "region"_a, "first"_a, "count"_a = 1)
      .def_ro("rank", &ChunkPlace::rank)
      .def_ro("region", &ChunkPlace::region)
      .def_ro("first", &ChunkPlace::first)
      .def_ro("count", &ChunkPlace::count);
  nb::class_<Moves>(m, "Moves")
      .def(nb::init<const std::string&, Rank, std::int32_t, Rank, Rank, bool, const Pairs&>(), "collective"_a,
           "ranks"_a, "pieces"_a = 1, "root"_a = 0, "peer"_a = 0, "in_place"_a = false, "pairs"_a = Pairs())
      .def("round", &Moves::round)
      .def("copy", &Moves::copy, "source"_a, "target"_a, "channel"_a = 0)
      .def("reduce", &Moves::reduce, "source"_a, "target"_a, "channel"_a = 0)
      .def("finish", &Moves::finish, "name"_a);
}

void add_schedule(nb::module_& m) {
  nb::class_<Schedule>(m, "Schedule")
      .def_prop_ro("collective", [](const Schedule& s) { return std::string(name(s.task.operation.collective)); })
      .def_prop_ro("ranks", &Schedule::ranks)
      .def_prop_ro("steps", &Schedule::steps)
      .def_ro("algorithm", &Schedule::algorithm)
      .def_ro("channels", &Schedule::channels)
      .def(
          "program",
          [](const Schedule& s, Rank rank) {
            if (rank < 0 || rank >= s.ranks()) throw nb::index_error(("no rank " + std::to_string(rank)).c_str());
            nb::list steps;
            const Program& program = s.programs[static_cast<std::size_t>(rank)];
            for (const Step& step : program.steps) steps.append(step_as_dict(program, step));
            return steps;
          },
          "rank"_a)
      .def(
          "text", [](const Schedule& s) { return print(s); }, nb::call_guard<nb::gil_scoped_release>())
      .def("msccl_xml", &export_msccl, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "verify",
          [](const Schedule& s) {
            const Report report = verify(s);
            return std::tuple(report.ok(), report.text(), report.steps, report.transfers, report.same_bits_everywhere);
          },
          nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace

void add_schedules(nb::module_& m) {
  add_moves(m);
  add_schedule(m);
  m.def("make_schedule", &made, "config"_a, "collective"_a, "dims"_a, "root"_a = 0, "peer"_a = 0, "in_place"_a = false,
        "pairs"_a = Pairs(), nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "parse_schedule", [](const std::string& text) { return parse(text); }, "text"_a);
  m.def(
      "parse_msccl", [](const std::string& xml) { return import_msccl(xml); }, "xml"_a);
  m.def(
      "parse_mscclpp", [](const std::string& json) { return import_mscclpp(json); }, "json"_a);
  m.def("algorithms", [] {
    std::vector<std::tuple<std::string, std::string, std::string, std::vector<std::string>>> all;
    for (const auto& [name, algorithm] : algorithms()) {
      std::vector<std::string> serves;
      for (const Collective c : algorithm.serves) serves.emplace_back(schedule::name(c));
      all.emplace_back(name, algorithm.summary, algorithm.constraint, serves);
    }
    return all;
  });
  m.def("collectives", [] {
    std::vector<std::string> all;
    for (const Collective c : collectives()) all.emplace_back(name(c));
    return all;
  });
}

}  // namespace trellis::binding
