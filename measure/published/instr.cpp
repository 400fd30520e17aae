#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <string>

#include "measure/published/record.h"
#include "sim/core/program/emit_instructions.h"
#include "sim/core/program/program_builder.h"
#include "sim/core/run/instruction_cost.h"

// Records of single instructions: the cost on the engine, by the rule of the instruction's kind.
namespace trellis::measure {
namespace {

using namespace sim::core;
using sim::ChipSpec;

struct Shape {
  std::int64_t partitions = 128, elements = 1;
};

// "[128,512]" in the text, or n and partitions among the parameters.
std::optional<Shape> shape_of(const Record& r) {
  Shape s;
  std::smatch found;
  if (std::regex_search(r.what, found, std::regex(R"(\[\s*(\d+)\s*[,x]\s*(\d+)\s*\])"))) {
    s.partitions = whole_count("partitions", std::stod(found[1]));
    s.elements = whole_count("elements", std::stod(found[2]));
  } else if (std::regex_search(r.what, found, std::regex(R"(\b(\d+)x(\d+)\b)"))) {
    s.partitions = whole_count("partitions", std::stod(found[1]));
    s.elements = whole_count("elements", std::stod(found[2]));
  } else if (!r.number("n") && !r.number("moving")) {
    return std::nullopt;
  }
  if (const auto partitions = r.count("partitions")) s.partitions = *partitions;
  if (const auto elements = r.count("n")) s.elements = *elements;
  return s;
}

DType type_of(const Record& r) {
  for (const auto& [word, type] : {std::pair{"bf16", DType::bf16}, std::pair{"fp16", DType::f16},
                                   std::pair{"fp32", DType::f32}, std::pair{"fp8", DType::f8e4m3}})
    if (r.says(word) || r.word("dtype") == word || r.id.find(word) != std::string::npos) return type;
  return DType::bf16;
}

struct Mnemonic {
  std::string_view word, kind;
  Engine engine;
  int inputs;
  std::vector<Attribute> attributes;
};

const std::vector<Mnemonic>& mnemonics() {
  static const std::vector<Mnemonic> all = {
      {"activate", "activation", Engine::scalar, 1, {func(ActivationFunction::exp)}},
      {"activation", "activation", Engine::scalar, 1, {func(ActivationFunction::exp)}},
      {"tensor_tensor_scan",
       "tensor_tensor_scan",
       Engine::vector,
       2,
       {alu(AluOp::multiply), alu(AluOp::add, Key::op1)}},
      {"scalar_tensor_tensor",
       "scalar_tensor_tensor",
       Engine::vector,
       2,
       {alu(AluOp::multiply), number(Key::value, 1), alu(AluOp::add, Key::op1)}},
      {"tensor_tensor", "tensor_tensor", Engine::vector, 2, {alu(AluOp::add)}},
      {"tensor_scalar", "tensor_scalar", Engine::vector, 1, {alu(AluOp::add), number(Key::value, 1)}},
      {"tensor_copy", "tensor_copy", Engine::vector, 1, {}},
      {"tensor_reduce", "tensor_reduce", Engine::vector, 1, {alu(AluOp::add)}},
      {"memset", "memset", Engine::vector, 0, {number(Key::value, 1)}},
      {"iota", "iota", Engine::gpsimd, 0, {}},
      {"bn_stats", "bn_stats", Engine::vector, 1, {}},
      {"reciprocal", "reciprocal", Engine::vector, 1, {}}};
  return all;
}

// The cost of a single instruction, computed from a program that has no other.
InstructionCost cost_alone(const Mnemonic& m, const Shape& shape, DType type, const ChipSpec& chip) {
  ProgramBuilder b("one", chip);
  const std::int64_t rows = std::min<std::int64_t>(shape.partitions, 128);
  const TensorOperand out = b.tile("out", type, rows, m.kind == "tensor_reduce" ? 1 : shape.elements);
  std::vector<TensorOperand> inputs;
  for (int i = 0; i < m.inputs; ++i) inputs.push_back(b.tile(fmt::format("in{}", i), type, rows, shape.elements));
  b.add(m.kind, m.engine, {out}, inputs, m.attributes);
  const NeuronCoreProgram p = b.finish();
  return cost_of(BoundInstruction(p, p.instructions.front()), chip);
}

std::optional<RecordAnswer> timed(const Record& r, sim::Time t, std::string by) {
  const auto value = time_in(r.unit, t);
  if (!value) return RecordAnswer::no(fmt::format("'{}' is no unit of time", r.unit));
  return RecordAnswer{.simulated = value, .by = std::move(by)};
}

std::optional<RecordAnswer> tensor_engine(const Record& r, const ChipSpec& chip) {
  const double clock = chip.engine[0].clock;
  if (r.says("LoadStationary") || r.says("ldweights") || r.says("LoadWeights"))
    return timed(r, sim::cycles_time(chip.tensor.rows / chip.tensor.load_rows + chip.tensor.load_exposed, clock),
                 "a load's rows and what no product hides");
  if (!r.says("matmul") && !r.says("transpose") && !r.says("multiplymoving")) return std::nullopt;
  const double moving = r.number("moving").value_or(shape_of(r).value_or(Shape{.elements = 0}).elements);
  if (moving <= 0) return RecordAnswer::no("it does not say how many rows move");
  const double row =
      type_of(r) == DType::f32 ? chip.tensor.row_cycles_f32 / chip.tensor.passes_f32 : chip.tensor.row_cycles_wide;
  return timed(r, chip.engine[0].latency + sim::cycles_time(moving * row, clock), "rows and the engine's latency");
}

std::optional<RecordAnswer> instruction(const Record& r, const std::vector<Record>&) {
  if (r.kind() != "instr") return std::nullopt;
  const auto chip = chip_of(r);
  if (!chip) return RecordAnswer::no(fmt::format("unknown generation '{}'", r.generation));
  if (r.says("table load")) return timed(r, chip->table_load, "figure scalar.table.load");
  if (r.says("event_semaphore") || r.says("semaphore instruction"))
    return timed(r, chip->semaphore_instruction, "figure semaphore.instruction");
  if (auto found = tensor_engine(r, *chip)) return found;
  for (const Mnemonic& m : mnemonics()) {
    if (!r.says(m.word)) continue;
    const bool tiny = r.says("tiny");
    const auto shape = tiny ? Shape{.elements = 1} : shape_of(r);
    if (!shape) return RecordAnswer::no("it does not say how large the operands are");
    const InstructionCost cost = cost_alone(m, *shape, type_of(r), *chip);
    const std::string by = fmt::format("{} of {} elements a row", m.kind, shape->elements);
    if (r.says("back-to-back") || r.says("throughput") || (r.says("interval") && !r.says("dependent")))
      return timed(r, cost.interval, by + ", interval");
    if (r.says("dependent")) return timed(r, cost.latency + chip->semaphore_latency, by + " and a semaphore");
    return timed(r, cost.latency, by);
  }
  return RecordAnswer::no("no instruction of the simulator is what it names");
}

const RegisteredRecordModel registered("instructions", instruction);

}  // namespace
}  // namespace trellis::measure
