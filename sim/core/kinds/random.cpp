// Kinds for random numbers of the engines' generators, one state a partition, and dropout.
#include <cstring>
#include <tuple>
#include <vector>

#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {
namespace {

const std::string not_the_hardwares =
    "the hardware's own sequence: its seeding is not published, and Vector's "
    "generator before NeuronCore-v4 is another";

// Uses the generators of a row's partition in turn.
class Draws {
 public:
  Draws(const BoundInstruction& call, CoreMemory& memory)
      : lanes_(memory.state(call.instruction).lanes),
        lane_(static_cast<std::size_t>(call.buffer(call.out()).partition + call.out().row)),
        generators_(call.instruction.engine == Engine::vector ? lane_generators : 1) {}
  std::uint32_t next(std::int64_t row) {
    PartitionState& lane = lanes_[lane_ + static_cast<std::size_t>(row)];
    return lane.random[turn_++ % generators_].next();
  }
  // In [0, 1), in steps of 2^-24.
  float uniform(std::int64_t row) { return static_cast<float>(next(row) >> 8) * 0x1p-24F; }
  void begin_row() { turn_ = 0; }

 private:
  std::vector<PartitionState>& lanes_;
  std::size_t lane_, generators_, turn_ = 0;
};

void check_rng(const BoundInstruction& call) {
  const DType type = call.out().type;
  if (kernels::is_float(type) || kernels::size_of(type) > 4)
    refuse(call, "out is {}; expected an integer of at most 32 bits", name(type));
}

void rng(const BoundInstruction& call, CoreMemory& memory) {
  const View& out = call.out();
  Draws draws(call, memory);
  const std::size_t size = kernels::size_of(out.type);
  std::vector<std::byte> row(static_cast<std::size_t>(out.elements()) * size);
  for (std::int64_t r = 0; r < out.rows; ++r) {
    draws.begin_row();
    for (std::size_t i = 0; i < row.size(); i += size) {
      const std::uint32_t word = draws.next(r);
      std::memcpy(&row[i], &word, size);
    }
    memory.write_bytes(out, r, row.data());
  }
}

// Inputs: a column for each of value (the least) and value1 (the most) that is not an attribute.
void check_rand2(const BoundInstruction& call) {
  const std::size_t columns = !call.has(Key::value) + !call.has(Key::value1);
  if (call.inputs.size() != columns)
    refuse(call, "{} columns; expected {}: value and value1, or columns", call.inputs.size(), columns);
  for (const View& v : call.inputs) expect_column(call, "bound", v);
}

void rand2(const BoundInstruction& call, CoreMemory& memory) {
  std::size_t next = 0;
  ScalarOperand least(memory, call.has(Key::value) ? nullptr : &call.in(next++), call.number(Key::value));
  ScalarOperand most(memory, call.has(Key::value1) ? nullptr : &call.in(next++), call.number(Key::value1));
  Draws draws(call, memory);
  OutputRows out(call, memory, call.out());
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    const float low = least.at(r), range = most.at(r) - low;
    draws.begin_row();
    for (std::size_t i = 0; i < out.elements(); ++i) out.row()[i] = low + draws.uniform(r) * range;
    out.store(r);
  }
}

// Inputs: data, and a column of probabilities unless rate is given.
void check_dropout(const BoundInstruction& call) {
  if (call.in().type != call.out().type)
    refuse(call, "data is {} and out {}; expected one type", name(call.in().type), name(call.out().type));
  if (call.inputs.size() == 1 && !call.has(Key::rate)) refuse(call, "expected rate or a column of probabilities");
  if (call.inputs.size() == 2) expect_column(call, "rate", call.in(1));
  const double rate = call.number(Key::rate);
  if (rate < 0 || rate > 1) refuse(call, "rate is {}; expected 0 to 1", rate);
}

void dropout(const BoundInstruction& call, CoreMemory& memory) {
  const View& out = call.out();
  ScalarOperand rate(memory, call.inputs.size() == 2 ? &call.in(1) : nullptr, call.number(Key::rate));
  Draws draws(call, memory);
  const std::size_t size = kernels::size_of(out.type);
  std::vector<std::byte> row(static_cast<std::size_t>(out.elements()) * size);
  for (std::int64_t r = 0; r < out.rows; ++r) {
    memory.read_bytes(call.in(), r, row.data());
    const float p = rate.at(r);
    draws.begin_row();
    for (std::size_t i = 0; i < row.size(); i += size)
      if (draws.uniform(r) < p) std::memset(&row[i], 0, size);
    memory.write_bytes(out, r, row.data());
  }
}

void check_seed(const BoundInstruction& call) {
  expect_rows(call, "seed", call.in(), 1);
  expect_elements(call, "seed", call.in(), 1);
  if (kernels::size_of(call.in().type) != 4) refuse(call, "seed is {}; expected 32 bits", name(call.in().type));
}

void seed(const BoundInstruction& call, CoreMemory& memory) {
  std::uint32_t word = 0;
  memory.read_bytes(call.in(), 0, reinterpret_cast<std::byte*>(&word));
  memory.state(call.instruction).seed(word);
}

std::int64_t state_words(const BoundInstruction& call) { return call.instruction.engine == Engine::vector ? 24 : 6; }

void check_state(const BoundInstruction& call) {
  const View& v = call.outputs.empty() ? call.in() : call.out();
  if (v.type != DType::u32) refuse(call, "the states are {}; expected u32", name(v.type));
  expect_elements(call, "states", v, state_words(call));
}

void check_state_on(const BoundInstruction& call, const ChipSpec& chip) {
  if (call.instruction.engine == Engine::vector && chip.generation < 4)
    refuse(call, "the Vector engine's states are read and written from NeuronCore-v4 on");
}

constexpr std::size_t words_each = std::tuple_size_v<decltype(Xorwow::words)>;

// Visits the state of a row's partition, word by word.
template <class Visit>
void each_word(const BoundInstruction& call, CoreMemory& memory, const View& v, std::int64_t row, Visit visit) {
  PartitionState& lane =
      memory.state(call.instruction).lanes[static_cast<std::size_t>(call.buffer(v).partition + v.row + row)];
  for (std::size_t w = 0; w < static_cast<std::size_t>(state_words(call)); ++w)
    visit(w, lane.random[w / words_each].words[w % words_each]);
}

void set_state(const BoundInstruction& call, CoreMemory& memory) {
  const View& from = call.in();
  BitRows bits(memory, from);
  for (std::int64_t r = 0; r < from.rows; ++r) {
    const std::uint64_t* words = bits.row(r);
    each_word(call, memory, from, r,
              [&](std::size_t w, std::uint32_t& word) { word = static_cast<std::uint32_t>(words[w]); });
  }
}

void get_state(const BoundInstruction& call, CoreMemory& memory) {
  const View& to = call.out();
  BitRows bits(memory, to);
  std::vector<std::uint64_t> words(bits.elements());
  for (std::int64_t r = 0; r < to.rows; ++r) {
    each_word(call, memory, to, r, [&](std::size_t w, std::uint32_t& word) { words[w] = word; });
    bits.store(r, words.data());
  }
}

const RegisteredInstruction kinds_of_random[] = {
    RegisteredInstruction({.name = "rng",
                           .summary = "out = random bits, the lowest of 32 for each element",
                           .engines = {Engine::vector, Engine::gpsimd},
                           .outputs = {{"out"}},
                           .check = check_rng,
                           .run = rng,
                           .not_yet = not_the_hardwares}),
    RegisteredInstruction({.name = "rand2",
                           .summary = "out = uniform from value (or a column) to value1 (or a column)",
                           .engines = {Engine::vector},
                           .outputs = {{"out"}},
                           .inputs = {{"least", true}, {"most", true}},
                           .keys = with_rounding({{Key::value}, {Key::value1}}),
                           .generation = 4,
                           .check = check_rand2,
                           .run = rand2,
                           .not_yet = not_the_hardwares}),
    RegisteredInstruction({.name = "dropout",
                           .summary = "out = data, or 0 with probability rate (or a column)",
                           .engines = {Engine::vector},
                           .outputs = {{"out"}},
                           .inputs = {{"data"}, {"rate", true}},
                           .keys = {{Key::rate}},
                           .shape = ShapeRule::elementwise,
                           .check = check_dropout,
                           .run = dropout,
                           .not_yet = not_the_hardwares}),
    RegisteredInstruction({.name = "set_rng_seed",
                           .summary = "every partition's generator begins anew from one number",
                           .engines = {Engine::vector},
                           .inputs = {{"seed"}},
                           .check = check_seed,
                           .run = seed,
                           .not_yet = not_the_hardwares}),
    RegisteredInstruction({.name = "rand_set_state",
                           .summary = "the generators' states = source, 6 words a partition (24 of Vector)",
                           .engines = {Engine::gpsimd, Engine::vector},
                           .inputs = {{"states", false, in_sbuf}},
                           .generation = 3,
                           .check = check_state,
                           .check_on = check_state_on,
                           .run = set_state}),
    RegisteredInstruction({.name = "rand_get_state",
                           .summary = "out = the generators' states, 6 words a partition (24 of Vector)",
                           .engines = {Engine::gpsimd, Engine::vector},
                           .outputs = {{"out"}},
                           .generation = 3,
                           .check = check_state,
                           .check_on = check_state_on,
                           .run = get_state}),
};

}  // namespace
}  // namespace trellis::sim::core
