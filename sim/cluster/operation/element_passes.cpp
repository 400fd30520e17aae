#include "sim/cluster/operation/element_passes.h"

namespace trellis::sim {

EngineTimes passes_over(const OperationShape& s, const EngineRates& e, const ElementPasses& p) {
  const double n = s.elements(), in = bytes_of(s.type), out = bytes_of(s.result_type());
  const auto columns = static_cast<double>(s.columns);
  EngineTimes t;
  t.vector = e.vector(p.vector * n, s.type);
  t.scalar = e.scalar(p.scalar * n);
  const double through = s.fused ? e.spill() : 1;
  t.memory = through * (e.memory(p.reads * n * in, columns * in) + e.memory(p.writes * n * out, columns * out));
  t.bytes = through * n * (p.reads * in + p.writes * out);
  t.flops = p.flops * n;
  return t;
}

OperationModel kind_of_passes(std::string name, std::string summary, const ElementPasses& p, ProgramOf program) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .extents = "rows x columns, batch times",
          .work = [p](const OperationShape& s, const EngineRates& e) { return passes_over(s, e, p); },
          .program = std::move(program)};
}

std::optional<std::string> program_type(const OperationShape& s) {
  if (s.type != "bf16" && s.type != "f32") return {};
  return s.type;
}

namespace {

constexpr std::uint64_t blocks_timed = 64;  // simulated at most: of 128 rows, or pieces; tile reuse is steady by then

// The same shape with results of the type that it reads.
OperationShape as_read(const OperationShape& s) {
  OperationShape plain = s;
  plain.result = "";
  return plain;
}

}  // namespace

ProgramOf program_of_rows(std::string name) {
  return [name = std::move(name)](const OperationShape& s, const EngineRates&) -> std::optional<CoreProgram> {
    constexpr std::uint64_t block = 128;
    const auto type = program_type(s);
    if (!type || s.fused) return {};
    return CoreProgram{.name = name,
                       .parameters = {{"columns", std::to_string(s.columns)}, {"type", *type}},
                       .grows = "rows",
                       .extent = s.rows * s.batch,
                       .most = blocks_timed * block,
                       .does = as_read(s)};
  };
}

ProgramOf program_of_elements(std::string name, std::uint64_t piece, std::string type_parameter) {
  return [name = std::move(name), piece, parameter = std::move(type_parameter)](
             const OperationShape& s, const EngineRates&) -> std::optional<CoreProgram> {
    const auto type = program_type(s);
    if (!type || s.fused) return {};
    return CoreProgram{.name = name,
                       .parameters = {{parameter, *type}},
                       .grows = "n",
                       .extent = s.rows * s.columns * s.batch,
                       .most = blocks_timed * piece,
                       .does = as_read(s)};
  };
}

}  // namespace trellis::sim
