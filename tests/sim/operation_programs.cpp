// Two ways to a computation's time: the formulas of operation/, and a program of core/ that does the same, instruction
// by instruction. bench/operation_times.py prints both beside each other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/operation/operation_model.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/run/run.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim {
namespace {

struct Pair {
  std::string program;
  std::vector<std::pair<std::string, std::string>> parameters;
  OperationShape shape;
  double low, high;  // bounds of the formula's time relative to the program's
};

double seconds_of_program(const Pair& pair, const ChipSpec& chip) {
  const core::ShippedProgram& program = core::shipped_named(pair.program);
  core::Arguments arguments(program.parameters);
  for (const auto& [name, value] : pair.parameters) arguments.set(name, value);
  return in_seconds(core::run(program.build(arguments, chip), chip).time);
}

OperationShape attention(const char* kind) {
  return {.kind = kind, .rows = 4096, .columns = 4096, .inner = 128, .flash = true};
}

// Formulas price products and attention as programs written by hand, and passes over rows as a compiler writes them.
TEST(OperationPrograms, FormulasAreAsNearToProgramsAsStated) {
  const OperationShape rows{.kind = "", .rows = 4096, .columns = 4096};
  const auto of = [&](const char* kind) {
    OperationShape s = rows;
    s.kind = kind;
    return s;
  };
  const std::vector<std::pair<std::string, std::string>> square{{"rows", "4096"}, {"columns", "4096"}};
  const std::vector<Pair> pairs = {
      {"matmul",
       {{"M", "4096"}, {"K", "4096"}, {"N", "4096"}},
       {.kind = "product", .rows = 4096, .columns = 4096, .inner = 4096},
       0.95,
       1.3},
      {"flash_attention", {{"seq_len", "4096"}}, attention("attention"), 0.9, 1.3},
      {"flash_attention_backward", {{"seq_len", "4096"}}, attention("attention_gradient"), 0.8, 1.15},
      {"rms_norm", square, of("rms_norm"), 1, 2.5},
      {"layer_norm", square, of("layer_norm"), 0.6, 1.1},
      {"softmax", square, of("softmax"), 1.1, 2.5},
      {"swiglu", {{"n", std::to_string(4096 * 4096)}}, of("swiglu"), 1, 1.5},
      {"adamw", {{"n", std::to_string(4096 * 4096)}}, of("adamw"), 3, 4},  // unfused, as published steps have it
  };
  for (const char* name : {"trn1", "trn2"}) {
    const ChipSpec chip = chip_named(name);
    const EngineRates one_core(chip.figures(), 1);
    for (const Pair& pair : pairs) {
      const double formula = operation_time(pair.shape, one_core).total, program = seconds_of_program(pair, chip);
      EXPECT_GT(formula, pair.low * program) << name << " " << pair.program << " " << formula / program;
      EXPECT_LT(formula, pair.high * program) << name << " " << pair.program << " " << formula / program;
    }
  }
}

}  // namespace
}  // namespace trellis::sim
