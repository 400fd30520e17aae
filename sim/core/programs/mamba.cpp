#include <tuple>

#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/reference_comparison.h"
#include "sim/core/programs/rotating_tiles.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/programs/tiling.h"
#include "text/refuse.h"

// The fused Mamba scan by the stages of the public tutorial, in f32. For every state, h[t] = e^(delta[t] A) h[t - 1] +
// delta[t] u[t] B[t]; y[t] is the sum of C[t] h[t] over the states. Channels are along the partitions. v1 has the
// states outermost and loads delta and u again for each. v2 has the channels outermost and keeps both, and their
// product. v3 also cuts the sequence into tiles of 512 and passes h from one to the next.
//
// A product with ones spreads B and C over the partitions and leaves them in PSUM. If a row of them exceeds a PSUM
// bank, Scalar copies it to SBUF, and Vector then takes two cycles an element instead of one. If v2's tiles do not fit,
// delta, the product and the sums stay in HBM and are loaded again for each state.
namespace trellis::sim::core {
namespace {

constexpr std::int64_t lanes = 128, bank = 512;

struct Sizes {
  std::int64_t batch, length, channels, states;
  int stage;

  std::int64_t tile() const { return stage == 3 ? std::min(length, bank) : length; }
  std::int64_t blocks() const { return channels / lanes; }
};

Sizes sizes_of(const Arguments& a) {
  const Sizes s{a.count("batch"), a.count("seq_len"), a.count("channels"), a.count("state"), a.word("stage")[1] - '0'};
  if (s.channels % lanes != 0) text::refuse("mamba: channels={}; expected a multiple of 128", s.channels);
  return s;
}

struct Tables {
  TensorOperand delta, u, a, b, c, y, product;
};

Tables declare(ProgramBuilder& b, const Sizes& s) {
  const std::int64_t rows = s.batch * s.channels, states = s.batch * s.states;
  return {.delta = b.input("delta", DType::f32, rows, s.length),
          .u = b.input("u", DType::f32, rows, s.length),
          .a = b.input("A", DType::f32, s.channels, s.states),
          .b = b.input("B", DType::f32, states, s.length),
          .c = b.input("C", DType::f32, states, s.length),
          .y = b.output("y", DType::f32, rows, s.length)};
}

// How many tiles of each kind there are.
struct Counts {
  int work = 1;  // for values that each step computes anew
  int kept = 1;  // for delta, delta u and the sums, which all states use
  bool spills = false;
};

Counts counts_of(const ChipSpec& chip, const Sizes& s) {
  const std::int64_t rest = 16 * 1024, work = 4 * 4 * s.tile(), kept = 3 * 4 * s.length;
  const std::int64_t free = static_cast<std::int64_t>(chip.memory.sbuf_bytes) - rest;
  if (s.stage == 1)
    return {.work = sets_that_fit(chip, work, rest + s.blocks() * 4 * s.length + 2 * kept, 2), .kept = 3};
  if (work + kept > free) {
    const auto left = static_cast<int>((free - work) / (4 * s.length));
    return {.work = 1, .kept = std::clamp(left, 1, 3), .spills = true};
  }
  const int sets = sets_that_fit(chip, work, rest + kept, 2);
  return {.work = sets, .kept = sets_that_fit(chip, kept, rest + sets * work, 2)};
}

// One state of 128 channels over one tile of the sequence.
struct Step {
  std::int64_t batch, block, state, first, count;
  bool begins_tiles;  // the first step of its channels
  bool ends_tiles;    // the last step of its channels
  TensorOperand delta = {}, product = {}, sum = {};
  TensorOperand decay = {}, input = {}, path = {}, part = {};
};

std::vector<Step> steps_of(const Sizes& s) {
  std::vector<Step> steps;
  const auto chunks = [&](std::int64_t batch, std::int64_t block, std::int64_t state) {
    each_block(s.length, s.tile(), [&](std::int64_t first, std::int64_t count) {
      steps.push_back({batch, block, state, first, count, state == 0 && first == 0,
                       state + 1 == s.states && first + count == s.length});
    });
  };
  for (std::int64_t batch = 0; batch < s.batch; ++batch)
    if (s.stage == 1)
      for (std::int64_t state = 0; state < s.states; ++state)
        for (std::int64_t block = 0; block < s.blocks(); ++block) chunks(batch, block, state);
    else
      for (std::int64_t block = 0; block < s.blocks(); ++block)
        for (std::int64_t state = 0; state < s.states; ++state) chunks(batch, block, state);
  return steps;
}

class Kernel {
 public:
  Kernel(ProgramBuilder& b, const Sizes& s)
      : b_(b),
        s_(s),
        counts_(counts_of(b.chip(), s)),
        t_(declare(b, s)),
        ones_(b.tile("ones", DType::f32, 1, lanes)),
        rows_(b, "row", DType::f32, 1, std::min(s.tile(), bank), 6),
        columns_(b, "column", DType::f32, lanes, 1, 8),
        spread_(b, "spread", DType::f32, lanes, bank, 6, MemorySpace::psum),
        decays_(b, "decay", DType::f32, lanes, s.tile(), counts_.work),
        inputs_(b, "input", DType::f32, lanes, s.tile(), counts_.work),
        paths_(b, "path", DType::f32, lanes, s.tile(), counts_.work),
        parts_(b, "part", DType::f32, lanes, s.tile(), counts_.work),
        kept_(b, "kept", DType::f32, lanes, s.length, counts_.spills ? counts_.kept : 2 * counts_.kept),
        sums_(b, "sum", DType::f32, lanes, counts_.spills ? 1 : s.length,
              s.stage == 1 ? static_cast<int>(s.blocks()) : counts_.kept) {
    if (counts_.spills) t_.product = b.scratch("product", DType::f32, s.batch * s.channels, s.length);
    core::fill(b, ones_, 1);
  }

  // With two tiles of each kind a step begins before the one before it ends, so Vector seldom waits for its own
  // results.
  void run() {
    std::vector<Step> steps = steps_of(s_);
    const bool deep = counts_.work > 1;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!deep || i == 0) begin(steps, i);
      scan(steps[i]);
      if (deep && i + 1 < steps.size()) begin(steps, i + 1);
      weigh(steps[i]);
      if (deep && i > 0) add(steps[i - 1]);
      if (!deep || i + 1 == steps.size()) add(steps[i]);
    }
  }

 private:
  std::int64_t row_of(const Step& p) const { return p.batch * s_.channels + p.block * lanes; }
  TensorOperand table(const TensorOperand& whole, const Step& p) const { return whole.row_range(row_of(p), lanes); }

  void begin(std::vector<Step>&, std::size_t at);
  void load_tiles(Step&);
  TensorOperand spread(const TensorOperand& table, const Step&, const TensorOperand& to);
  void scan(Step&);
  void weigh(Step&);
  void add(Step&);

  ProgramBuilder& b_;
  const Sizes s_;
  const Counts counts_;
  Tables t_;
  TensorOperand ones_;
  RotatingTiles rows_, columns_, spread_, decays_, inputs_, paths_, parts_, kept_, sums_;
  TensorOperand carry_;  // the last h of the step before, from which v3 continues in the next tile
};

// Loads delta and computes delta u, which all states use. If tiles spill, it only stores delta u in HBM.
void Kernel::load_tiles(Step& p) {
  if (counts_.spills) {
    const TensorOperand product = kept_.next();
    const TensorOperand &delta = decays_.next(), &u = inputs_.next();
    load(b_, delta, table(t_.delta, p));
    load(b_, u, table(t_.u, p));
    tensor_tensor(b_, product, delta, AluOp::multiply, u);
    store(b_, table(t_.product, p), product);
    return;
  }
  p.delta = kept_.next();
  p.product = kept_.next();
  load(b_, p.delta, table(t_.delta, p));
  load(b_, p.product, table(t_.u, p));
  tensor_tensor(b_, p.product, p.delta, AluOp::multiply, p.product);
}

void Kernel::begin(std::vector<Step>& steps, std::size_t at) {
  Step& p = steps[at];
  const auto cut = [&](const TensorOperand& o) { return o.column_range(p.first, p.count); };
  if (p.begins_tiles || s_.stage == 1)
    load_tiles(p);
  else if (!counts_.spills)
    std::tie(p.delta, p.product, p.sum) = std::tie(steps[at - 1].delta, steps[at - 1].product, steps[at - 1].sum);
  // In v1 there is a sum tile for each block, and each state goes through all blocks: next() is this block's tile.
  if (!counts_.spills && (s_.stage == 1 || p.begins_tiles)) p.sum = sums_.next();
  const TensorOperand& a = columns_.next();
  load(b_, a, block_of(t_.a, p.block * lanes, lanes, p.state, 1));
  p.decay = decays_.next().column_range(0, p.count);
  TensorOperand delta = p.decay, product;
  if (counts_.spills) {
    product = kept_.next();
    load(b_, delta, table(t_.delta, p));
    load(b_, product, table(t_.product, p));
  } else {
    delta = cut(p.delta);
    product = cut(p.product);
  }
  b_.add("activation", Engine::scalar, {p.decay}, {delta, a}, {func(ActivationFunction::exp), number(Key::bias, 0)});
  p.input = inputs_.next().column_range(0, p.count);
  tensor_tensor(b_, p.input, product, AluOp::multiply, spread(t_.b, p, p.input));
}

// The row of a state on every partition: in PSUM, or in `to` if it is longer than a bank.
TensorOperand Kernel::spread(const TensorOperand& table, const Step& p, const TensorOperand& to) {
  const TensorOperand row = table.row_range(p.batch * s_.states + p.state, 1).column_range(p.first, p.count);
  TensorOperand last;
  each_block(p.count, bank, [&](std::int64_t first, std::int64_t count) {
    const TensorOperand piece = rows_.next().column_range(0, count);
    load(b_, piece, row.column_range(first, count));
    last = spread_.next().column_range(0, count);
    matmul(b_, last, ones_, piece, false);
    if (p.count > bank) copy(b_, to.column_range(first, count), last, Engine::scalar);
  });
  return p.count > bank ? to : last;
}

void Kernel::scan(Step& p) {
  p.path = paths_.next().column_range(0, p.count);
  std::vector<TensorOperand> inputs = {p.decay, p.input};
  std::vector<Attribute> attributes = {alu(AluOp::multiply), alu(AluOp::add, Key::op1)};
  if (p.first == 0)
    attributes.push_back(number(Key::value, 0));
  else
    inputs.push_back(carry_);
  b_.add("tensor_tensor_scan", Engine::vector, {p.path}, inputs, attributes);
  if (p.first + p.count == s_.length) return;
  carry_ = columns_.next();
  copy(b_, carry_, p.path.column_range(p.count - 1, 1), Engine::scalar);
}

void Kernel::weigh(Step& p) {
  p.part = parts_.next().column_range(0, p.count);
  tensor_tensor(b_, p.part, p.path, AluOp::multiply, spread(t_.c, p, p.part));
}

void Kernel::add(Step& p) {
  const TensorOperand y = table(t_.y, p);
  if (counts_.spills) {
    TensorOperand sum = p.part;
    if (p.state > 0) {
      sum = kept_.next();
      load(b_, sum, y);
      tensor_tensor(b_, sum, sum, AluOp::add, p.part);
    }
    return store(b_, y, sum);
  }
  if (p.begins_tiles) core::fill(b_, p.sum, 0);
  const TensorOperand sum = p.sum.column_range(p.first, p.count);
  tensor_tensor(b_, sum, sum, AluOp::add, p.part);
  if (p.ends_tiles) store(b_, y, p.sum);
}

NeuronCoreProgram build(const Arguments& a, const ChipSpec& chip) {
  ProgramBuilder b("mamba", chip);
  Kernel(b, sizes_of(a)).run();
  return b.finish();
}

// delta is positive and A negative, as in the model.
void fill(const Arguments&, CoreMemory& memory, std::uint64_t seed) {
  for (const std::string_view name : {"u", "B", "C"}) fill_normal(memory, name, DType::f32, seed);
  fill_normal(memory, "delta", DType::f32, seed, 0.5);
  fill_normal(memory, "A", DType::f32, seed);
  for (float& v : memory.hbm_as<float>("delta")) v = std::abs(v);
  for (float& v : memory.hbm_as<float>("A")) v = -std::abs(v);
}

// Compares with a reference in f64 and a bound of the f32 error: a power is off by the rounding of its exponent and 2
// units; delta u B by 2; a step of the scan by its 2 operations and the error of the steps before times the power; a
// sum by its additions.
std::vector<Comparison> compare(const Arguments& a, CoreMemory& memory) {
  const Sizes s = sizes_of(a);
  const auto at = [&](std::string_view name) { return numbers_of(memory, name, DType::f32); };
  const std::vector<double> delta = at("delta"), u = at("u"), decay = at("A"), b = at("B"), c = at("C");
  std::vector<BoundedReference> y(delta.size());
  const auto length = static_cast<std::size_t>(s.length), channels = static_cast<std::size_t>(s.channels),
             states = static_cast<std::size_t>(s.states);
  for (std::size_t row = 0; row < y.size() / length; ++row)
    for (std::size_t state = 0; state < states; ++state) {
      double h = 0, off = 0;
      for (std::size_t t = 0; t < length; ++t) {
        const std::size_t i = row * length + t, j = (row / channels * states + state) * length + t;
        const double exponent = delta[i] * decay[row % channels * states + state], power = std::exp(exponent);
        const double old = power * h, input = delta[i] * u[i] * b[j];
        off = power * off + unit_f32 * ((std::abs(exponent) + 4) * std::abs(old) + 2 * std::abs(input));
        h = old + input;
        off += 2 * unit_f32 * (std::abs(h) + off);
        y[i].value += c[j] * h;
        y[i].bound += std::abs(c[j]) * (off + unit_f32 * std::abs(h) * static_cast<double>(states + 2));
      }
    }
  return {compare_bounded("y", DType::f32, memory.hbm("y").data(), y)};
}

const RegisteredProgram registered({.name = "mamba",
                                    .summary = "the fused Mamba scan, by the stages of the public tutorial",
                                    .parameters = {{"batch", "sequences", 1, {}},
                                                   {"seq_len", "of each", 512, {}},
                                                   {"channels", "a multiple of 128", 256, {}},
                                                   {"state", "states of a channel", 16, {}},
                                                   {"stage", "what is kept on chip", 2, {"v1", "v2", "v3"}}},
                                    .build = build,
                                    .fill = fill,
                                    .compare = compare});

}  // namespace
}  // namespace trellis::sim::core
