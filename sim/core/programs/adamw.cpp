#include "kernels/optimizers/adamw.h"

#include <cmath>

#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/rotating_tiles.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/programs/tiling.h"

// One AdamW step on moments in f32 and parameters in f32, or in bf16 with stochastic rounding. Does the operations of
// kernels/optimizers/adamw.h in the same order, so every bit equals the host's.
namespace trellis::sim::core {
namespace {

constexpr std::int64_t columns = 1024;
constexpr kernels::AdamWOptions options = {.step = 5, .random = {.seed = 11, .step = 5, .tensor = 2}};

// The constants of the update, each rounded to f32 where an instruction takes it.
struct Constants {
  double root = 1 / std::sqrt(1 - std::pow(options.beta2, static_cast<double>(options.step)));
  double rate = options.learning_rate / (1 - std::pow(options.beta1, static_cast<double>(options.step)));
  double before = 1 - options.learning_rate * options.weight_decay;
};

DType parameters_of(const Arguments& a) { return a.type("parameters"); }

std::vector<Attribute> last_step(double rate, DType type, const RowTile& p) {
  std::vector<Attribute> all = {alu(AluOp::multiply), number(Key::value, rate), alu(AluOp::subtract, Key::op1),
                                number(Key::reverse1, 1)};
  if (type == DType::f32) return all;
  const kernels::Random& r = options.random;
  for (const Attribute& more :
       {number(Key::rounding, static_cast<double>(kernels::Rounding::stochastic)),
        number(Key::seed, static_cast<double>(r.seed)), number(Key::step, static_cast<double>(r.step)),
        number(Key::tensor, static_cast<double>(r.tensor)), number(Key::first, static_cast<double>(p.first))})
    all.push_back(more);
  return all;
}

// kept = kept beta + (1 - beta) news
void decay(ProgramBuilder& b, const TensorOperand& kept, double beta, const TensorOperand& scratch,
           const TensorOperand& news) {
  tensor_scalar(b, scratch, news, AluOp::multiply, 1 - beta, Engine::scalar);
  b.add("scalar_tensor_tensor", Engine::vector, {kept}, {kept, scratch},
        {alu(AluOp::multiply), number(Key::value, beta), alu(AluOp::add, Key::op1)});
}

NeuronCoreProgram build(const Arguments& a, const ChipSpec& chip) {
  ProgramBuilder b("adamw", chip);
  const std::int64_t n = a.count("n");
  const DType type = parameters_of(a);
  const TensorOperand p0 = b.input("p", type, 1, n), g0 = b.input("g", DType::f32, 1, n),
                      m0 = b.input("m", DType::f32, 1, n), v0 = b.input("v", DType::f32, 1, n);
  const TensorOperand p1 = b.output("p_new", type, 1, n), m1 = b.output("m_new", DType::f32, 1, n),
                      v1 = b.output("v_new", DType::f32, 1, n);
  const auto tiles = [&](std::string_view name, DType t) { return RotatingTiles(b, name, t, 128, columns, 3); };
  RotatingTiles ps = tiles("p_tile", type), qs = tiles("q_tile", type), gs = tiles("g_tile", DType::f32),
                ms = tiles("m_tile", DType::f32), vs = tiles("v_tile", DType::f32), first = tiles("first", DType::f32),
                second = tiles("second", DType::f32), kept = tiles("kept", DType::f32);
  const Constants c;
  for (const RowTile& piece : pieces_of(n, columns)) {
    const auto next = [&](RotatingTiles& r) { return part_of_tile(r.next(), piece); };
    const TensorOperand p = next(ps), q = next(qs), g = next(gs), m = next(ms), v = next(vs), t = next(first),
                        w = next(second), k = next(kept);
    load(b, g, part_of(g0, piece));
    load(b, m, part_of(m0, piece));
    load(b, v, part_of(v0, piece), Engine::scalar);
    load(b, p, part_of(p0, piece), Engine::scalar);
    decay(b, m, options.beta1, t, g);
    activation(b, g, g, ActivationFunction::square);
    decay(b, v, options.beta2, w, g);
    tensor_scalar(b, k, p, AluOp::multiply, c.before, Engine::scalar);
    activation(b, w, v, ActivationFunction::sqrt);
    b.add("tensor_scalar", Engine::scalar, {w}, {w},
          {alu(AluOp::multiply), number(Key::value, c.root), alu(AluOp::add, Key::op1),
           number(Key::value1, options.epsilon)});
    tensor_tensor(b, t, m, AluOp::divide, w);
    b.add("scalar_tensor_tensor", Engine::vector, {q}, {t, k}, last_step(c.rate, type, piece));
    store(b, part_of(m1, piece), m);
    store(b, part_of(v1, piece), v);
    store(b, part_of(p1, piece), q);
  }
  return b.finish();
}

void fill(const Arguments& a, CoreMemory& memory, std::uint64_t seed) {
  fill_normal(memory, "p", parameters_of(a), seed);
  fill_normal(memory, "g", DType::f32, seed, 0.01);
  fill_normal(memory, "m", DType::f32, seed, 0.01);
  fill_normal(memory, "v", DType::f32, seed, 0.01);
  for (float& v : memory.hbm_as<float>("v")) v *= v;  // not negative, as a mean of squares
}

std::vector<Comparison> compare(const Arguments& a, CoreMemory& memory) {
  const auto n = static_cast<std::size_t>(a.count("n"));
  const DType type = parameters_of(a);
  const auto copy_of = [&](std::string_view name) {
    const std::span<std::byte> bytes = memory.hbm(name);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  std::vector<std::byte> p = copy_of("p"), m = copy_of("m"), v = copy_of("v");
  const kernels::WeightStorage keep =
      type == DType::f32 ? kernels::WeightStorage::f32 : kernels::WeightStorage::bf16_stochastic;
  kernels::adamw({.keep = keep, .values = p.data()}, {.values = memory.hbm("g").data()},
                 {.first = m.data(), .second = v.data()}, n, options);
  return {compare_bits("p_new", type, memory.hbm("p_new").data(), p.data(), n),
          compare_bits("m_new", DType::f32, memory.hbm("m_new").data(), m.data(), n),
          compare_bits("v_new", DType::f32, memory.hbm("v_new").data(), v.data(), n)};
}

const RegisteredProgram registered({.name = "adamw",
                                    .summary = "one AdamW step, moments in f32",
                                    .parameters = {{"n", "parameters", 1 << 22, {}},
                                                   {"parameters", "bf16: rounded stochastically", 0, {"bf16", "f32"}}},
                                    .build = build,
                                    .fill = fill,
                                    .compare = compare});

}  // namespace
}  // namespace trellis::sim::core
