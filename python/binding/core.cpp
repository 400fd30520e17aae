// Programs of one NeuronCore: those that ship and those from text, run on arrays.
#include <cstring>

#include "python/binding/signals.h"
#include "sim/core/check/check.h"
#include "sim/core/program/assembler.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/run/run.h"

namespace trellis::binding {
namespace {

using namespace nb::literals;
using namespace sim::core;

std::vector<std::tuple<std::string, std::string, std::string, std::int64_t>> hbm_buffers(const NeuronCoreProgram& p) {
  std::vector<std::tuple<std::string, std::string, std::string, std::int64_t>> all;
  for (const CoreBuffer& b : p.buffers)
    if (b.space == MemorySpace::hbm)
      all.emplace_back(b.name, std::string(name(b.role)), std::string(kernels::name(b.type)), b.bytes);
  return all;
}

NeuronCoreProgram shipped_program(const std::string& name, const std::string& chip,
                                  const std::vector<std::pair<std::string, std::string>>& settings) {
  const ShippedProgram& one = shipped_named(name);
  Arguments arguments(one.parameters);
  for (const auto& [key, value] : settings) arguments.set(key, value);
  return one.build(arguments, sim::chip_named(chip));
}

// A name, its meaning, the default.
using Setting = std::tuple<std::string, std::string, std::variant<double, std::string>>;

std::variant<double, std::string> default_of(const ProgramParameter& p) {
  if (p.words.empty()) return p.value;
  return p.words.at(static_cast<std::size_t>(p.value));
}

nb::dict as_dict(const NeuronCoreProgram& p, const RunTotals& t, const sim::Timeline& timeline) {
  nb::dict d = dict_of(t);
  nb::list engines;
  for (std::size_t s = 0; s < t.streams.size(); ++s)
    if (t.streams[s].instructions > 0)
      engines.append(nb::make_tuple(s / engine_count, std::string(name(static_cast<Engine>(s % engine_count))),
                                    t.streams[s].instructions, t.streams[s].busy));
  d["engines"] = engines;
  nb::list rows, labels;
  std::vector<std::int64_t> row, start, end;
  for (const sim::Track& track : timeline.tracks) rows.append(nb::make_tuple(track.group, track.name));
  for (const sim::Span& span : timeline.spans) {
    row.push_back(span.track), start.push_back(span.start), end.push_back(span.end);
    labels.append(timeline.label(span.label));
  }
  d["timeline"] = nb::make_tuple(rows, labels, as_array(row), as_array(start), as_array(end));
  d["name"] = p.name;
  return d;
}

struct EndsAtSignal : InstructionObserver {
  struct Ended {};
  void issued(std::uint32_t, const std::int64_t*, sim::Time) override {
    if (signals.raised()) throw Ended();
  }
  void finished(std::uint32_t, sim::Time) override {}
  SignalWatcher signals;
};

// Runs the program on arrays that hold the buffers' bytes, and fills the outputs.
nb::dict run_on_arrays(const NeuronCoreProgram& p, const std::string& chip, bool compute,
                       const std::vector<std::pair<std::string, ReadArray>>& inputs,
                       const std::vector<std::pair<std::string, Array>>& outputs) {
  const sim::ChipSpec spec = sim::chip_named(chip);
  check(p, spec);
  std::optional<CoreMemory> memory;
  if (compute) memory.emplace(p, spec);
  for (const auto& [name, array] : inputs) {
    const auto to = memory->hbm(name);
    if (array.nbytes() != to.size())
      throw std::invalid_argument("input " + name + " has " + std::to_string(array.nbytes()) + " bytes, expected " +
                                  std::to_string(to.size()));
    std::memcpy(to.data(), array.data(), to.size());
  }
  sim::Timeline timeline;
  RunTotals totals;
  EndsAtSignal watch;
  watch.signals.watch([&] {
    totals = run(p, spec, {.memory = memory ? &*memory : nullptr, .timeline = &timeline, .observer = &watch});
  });
  for (const auto& [name, array] : outputs) {
    const auto from = memory->hbm(name);
    if (array.nbytes() != from.size())
      throw std::invalid_argument("output " + name + " has " + std::to_string(array.nbytes()) + " bytes, expected " +
                                  std::to_string(from.size()));
    std::memcpy(array.data(), from.data(), from.size());
  }
  return as_dict(p, totals, timeline);
}

}  // namespace

nb::dict dict_of(const RunTotals& t) {
  nb::dict d;
  d["time_ps"] = t.time;
  d["instructions"] = t.instructions;
  d["descriptors"] = t.descriptors;
  d["dma_bytes"] = t.dma_bytes;
  d["hbm_read_bytes"] = t.hbm_read;
  d["hbm_written_bytes"] = t.hbm_written;
  d["flops"] = t.flops;
  return d;
}

void add_core(nb::module_& m) {
  nb::class_<NeuronCoreProgram>(m, "CoreProgram")
      .def_ro("name", &NeuronCoreProgram::name)
      .def_prop_ro("instructions", [](const NeuronCoreProgram& p) { return p.instructions.size(); })
      .def_prop_ro("buffers", &hbm_buffers)
      .def("text", [](const NeuronCoreProgram& p) { return print(p); })
      .def("unwritten_reads", &unwritten_reads)
      .def(
          "check", [](const NeuronCoreProgram& p, const std::string& chip) { check(p, sim::chip_named(chip)); },
          "chip"_a)
      .def("run", &run_on_arrays, "chip"_a, "compute"_a, "inputs"_a, "outputs"_a);
  m.def(
      "parse_core_program", [](const std::string& text) { return parse(text); }, "text"_a);
  m.def("shipped_core_program", &shipped_program, "name"_a, "chip"_a, "settings"_a);
  m.def("shipped_core_programs", [] {
    std::vector<std::tuple<std::string, std::string, std::vector<Setting>>> all;
    for (const auto& [name, one] : shipped()) {
      std::vector<Setting> settings;
      for (const ProgramParameter& p : one.parameters) settings.emplace_back(p.name, p.meaning, default_of(p));
      all.emplace_back(name, one.summary, settings);
    }
    return all;
  });
}

}  // namespace trellis::binding
