// Each rule is broken once, and its message read.
#include <functional>

#include "tests/sim/core/bench.h"
#include "tests/why.h"

namespace trellis::sim::core {
namespace {

const auto f32 = DType::f32, bf16 = DType::bf16;

// A good program: z = x + y, tiles of 64 partitions x 100.
Bench sum(std::string_view chip = "trn2") {
  Bench b(chip);
  const View x = b.add(plain(f32, 64, 100)), y = b.add(plain(f32, 64, 100)), z = b.add(plain(f32, 64, 100));
  b.set("tensor_tensor", Engine::vector, {z}, {x, y}, {with(AluOp::add)});
  return b;
}

// A good product: 128 x 512 in a bank of its own.
Bench product(std::string_view chip = "trn2") {
  Bench b(chip);
  const View s = b.add(plain(bf16, 128, 128)), x = b.add(plain(bf16, 128, 512));
  const View p = b.add(plain(f32, 128, 512, MemorySpace::psum));
  b.set("nc_matmul", Engine::tensor, {p}, {s, x});
  return b;
}

Bench transfer() {
  Bench b;
  const View x = b.add(plain(f32, 64, 100, MemorySpace::hbm)), z = b.add(plain(f32, 64, 100));
  b.set("dma_copy", Engine::sync, {z}, {x});
  return b;
}

std::string message(const Bench& b) {
  return why([&] { check(b.program, b.chip); });
}

void expect_told(const Bench& b, std::initializer_list<std::string_view> parts) {
  const std::string text = message(b);
  for (const std::string_view part : parts) EXPECT_NE(text.find(part), text.npos) << "'" << part << "' in: " << text;
}

Instruction& only(Bench& b) { return b.program.instructions[0]; }

TEST(CoreCheck, GoodProgramsPass) {
  EXPECT_EQ(message(sum()), "");
  EXPECT_EQ(message(product()), "");
  EXPECT_EQ(message(product("trn3")), "");
  EXPECT_EQ(message(transfer()), "");
}

TEST(CoreCheck, NamesInstructionRuleAndOperand) {
  Bench b = sum();
  only(b).line = 17;
  b.program.views[1].rows = 65;
  expect_told(b, {"bench: instruction 0 (tensor_tensor, line 17): ", "input 0 (a): ", "outside of its buffer",
                  "partitions 0 to 64 of b0, which has 64"});
}

struct Fault {
  std::string_view told;
  std::function<Bench()> make;
};

// A good program with a change.
#define SUM(...)     \
  [] {               \
    Bench b = sum(); \
    __VA_ARGS__;     \
    return b;        \
  }
#define PRODUCT(...)     \
  [] {                   \
    Bench b = product(); \
    __VA_ARGS__;         \
    return b;            \
  }
#define TRANSFER(...)     \
  [] {                    \
    Bench b = transfer(); \
    __VA_ARGS__;          \
    return b;             \
  }

const Fault faults[] = {
    {"engine: tensor; expected vector, gpsimd", SUM(only(b).engine = Engine::tensor)},
    {"core: 1; the program has 1", SUM(only(b).core = 1)},
    {"cores: 3; a logical core of trn2 has 2", SUM(b.program.cores = 3)},
    {"operands: 1 inputs; expected a, b", SUM(only(b).views.count = 2)},
    {"operands: 2 outputs; expected out", SUM(only(b).outputs = 2)},
    {"output 0 (out): buffer: number 3 of 3", SUM(b.program.views[0].buffer = 3)},
    {"output 0 (out): dimensions: 0; expected 1 to 4", SUM(b.program.views[0].dims = 0)},
    {"partition count: 0", SUM(b.program.views[0].rows = 0)},
    {"input 1 (b): count: 0 of dimension 0", SUM(b.program.views[2].dim[0].count = 0)},
    {"input 1 (b): stride: 40000 of dimension 0; expected 16 bits", SUM(b.program.views[2].dim[0].stride = 40'000)},
    {"count: 70000 of dimension 0; expected 16 bits", SUM(b.program.views[2].dim[0].count = 70'000)},
    {"type: f64; engines compute on at most 32 bits", SUM(b.program.views[1].type = DType::f64)},
    {"type: f8e4m3fn; trn2 has", SUM(b.program.views[1].type = DType::f8e4m3fn)},
    {"alignment: byte 2 for f32; expected a multiple of its 4 bytes", SUM(b.program.views[1].offset = 2)},
    {"alignment: byte 2 for f32", SUM(b.program.buffers[0].offset = 2)},
    {"alignment: register 3 times 6 bytes for f32; expected a multiple of its 4 bytes",
     SUM(b.program.views[1].index = 3; b.program.views[1].index_scale = 6)},
    {"input 0 (a): outside of its buffer: bytes 4 to 403 of b0, which has 400", SUM(b.program.views[1].offset = 4)},
    {"outside of its buffer: bytes -8 to", SUM(b.program.views[1].offset = -8)},
    {"outside of its buffer: bytes", SUM(b.program.views[1].dim[0].stride = -1)},
    {"partition start: 64 partitions from 32 on; expected a start at a multiple of 64",
     SUM(b.program.buffers[0].partition = 32)},
    {"partition start: 20 partitions from 16 on; expected a start at a multiple of 32", SUM(for (View& v
                                                                                                 : b.program.views) {
       v.rows = 20;
       v.row = 16;
     })},
    {"input 0 (a): shape: 64 x 99; expected 64 x 100", SUM(b.program.views[1].dim[0].count = 99)},
    {"input 1 (b): shape: 32 x 100; expected 64 x 100", SUM(b.program.views[2].rows = 32)},
    {"attribute op: missing", SUM(only(b).attributes.count = 0)},
    {"attribute func: unknown here; expected op", SUM(b.program.attributes[0].key = Key::func)},
    {"attribute op: word number 99", SUM(b.program.attributes[0].value = 99)},
    {"attribute op: 0.5; expected a whole number", SUM(b.program.attributes[0].value = 0.5)},
    {"attribute op: not a number", SUM(b.program.attributes[0].value = NAN)},
    {"attribute op: given twice",
     SUM(b.program.attributes.push_back(b.program.attributes[0]); only(b).attributes.count = 2)},
    {"op is bitwise_and, which is of bits", SUM(b.program.attributes[0] = with(AluOp::bitwise_and))},
    {"op is abs, which takes one operand", SUM(b.program.attributes[0] = with(AluOp::abs))},
    {"DMA ring: 0, of an instruction that is no DMA", SUM(only(b).queue = 0)},
    {"SBUF overflow: bytes 229000 to 229399 of 229376", SUM(b.program.buffers[1].offset = 229'000)},
    {"partitions: 64 from 100 on; there are 128", SUM(b.program.buffers[1].partition = 100)},
    {"buffer b1: core: 4", SUM(b.program.buffers[1].core = 4)},
    {"buffer b1: 0 bytes", SUM(b.program.buffers[1].bytes = 0)},
    {"core: b1 lies on core 1; the instruction runs on 0", SUM(b.program.cores = 2; b.program.buffers[1].core = 1)},
    {"semaphores: 257; 1 cores have 256", SUM(b.program.semaphores.resize(257))},
    {"semaphore: 0; the program has 0", SUM(b.program.waits = {{0, 1}}; only(b).waits = {0, 1})},
    {"semaphore: a wait for -1",
     SUM(b.program.semaphores = {"s"}; b.program.waits = {{0, -1}}; only(b).waits = {0, 1})},
    {"register: the index of a wait is 64",
     SUM(b.program.semaphores = {"s"}; b.program.waits = {{0, 1, 64}}; only(b).waits = {0, 1})},
    {"semaphore: s raised by -1",
     SUM(b.program.semaphores = {"s"}; b.program.signals = {{0, -1}}; only(b).signals = {0, 1})},
    {"register: the index of an operand is 70", SUM(b.program.views[0].index = 70)},
    {"generation: trn2 is NeuronCore-v3; exponential needs v4",
     SUM(only(b).kind = &kind_named("exponential"); only(b).attributes.count = 0; only(b).views.count = 2)},
    {"output 0 (product): space: b0 lies in sbuf; expected psum", PRODUCT(b.program.views[0].buffer = 0)},
    {"output 0 (product): PSUM bank: bytes 1024 to 3071 of a partition cross from bank 0 into 1",
     PRODUCT(b.program.buffers[2].offset = 1024)},
    {"PSUM overflow", PRODUCT(b.program.buffers[2].offset = 16'000)},
    {"moving has 64 rows; expected 128", PRODUCT(b.program.views[2].rows = 64)},
    {"product has 512 elements a row; expected 500", PRODUCT(b.program.views[2].dim[0].count = 500)},
    {"product has 128 rows; expected 100", PRODUCT(b.program.views[1].dim[0].count = 100)},
    {"stationary is bf16 and moving f32; f32 and tf32 go only with each other",
     PRODUCT(b.program.views[2].type = f32; b.program.buffers[1].bytes *= 2)},
    {"product is f16; expected f32", PRODUCT(b.program.views[0].type = DType::f16)},
    {"stationary is 128 x 128; the part of the array 64 x 128",
     PRODUCT(b.program.attributes = {with(Key::tile_rows, 64)}; only(b).attributes = {0, 1})},
    {"a part of the array of 64 rows at 32; expected 32, 64 or 128",
     PRODUCT(
         (b.program.attributes = {with(Key::tile_rows, 64), with(Key::tile_row, 32)}, only(b).attributes = {0, 2}))},
    {"mode double_row is of f8 types, not bf16",
     PRODUCT(b.program.attributes = {with(Key::mode, 1)}; only(b).attributes = {0, 1})},
    {"DMA ring: 16; expected 0 to 15", TRANSFER(only(b).queue = 16)},
    {"DMA ring: -1; expected 0 to 15", TRANSFER(only(b).queue = -1)},
    {"engine: vector; expected sync, scalar, gpsimd", TRANSFER(only(b).engine = Engine::vector)},
    {"source has 6300 elements in all and out 6400", TRANSFER(b.program.views[1].rows = 63)},
    {"input 0 (source): outside of its buffer", TRANSFER(b.program.views[1].row_stride = 404)},
    {"output 0 (out): role: b0 is an input of the program",
     TRANSFER(b.program.views[0] = b.program.views[1]; b.program.buffers[0].role = BufferRole::input)},
    {"input 0 (source): outside of its buffer: bytes 0 to 1.8446744073709552e+19 of b0, which has 25600",
     TRANSFER(b.program.views[1].rows = (1 << 20) + 1; b.program.views[1].row_stride = std::int64_t{1} << 44)},
    {"input 0 (source): outside of its buffer: bytes 0 to ",
     TRANSFER(b.program.views[1].dims = 2; b.program.views[1].dim = {Dim{most_in_dim, most_in_dim}})},
    {"input 0 (source): outside of its buffer: 1108307720798608 bytes from the first to the last, of b0, ",
     TRANSFER(b.program.views[1].index = 3; b.program.views[1].row_stride = std::int64_t{1} << 44)},
    {"input 0 (source): elements: 1.1805916207174113e+21 in all; expected at most ",
     TRANSFER(b.program.views[1].dims = 4; b.program.views[1].dim.fill(Dim{1 << 16, 0}))},
    {"output 0 (out): outside of its buffer: partitions 2147483647 to 2147483710 of b1, which has 64",
     TRANSFER(b.program.views[0].row = INT32_MAX)},
    {"partitions: 64 from 2147483647 on; there are 128", SUM(b.program.buffers[1].partition = INT32_MAX)},
    {"SBUF overflow", SUM(b.program.buffers[1].offset = INT64_MAX)},
    {"attribute ns: -1; expected at least 0",
     SUM(only(b).kind = &kind_named("builtin_custom_op"); only(b).engine = Engine::gpsimd;
         b.program.attributes[0] = with(Key::duration, -1))},
    {"HBM overflow", TRANSFER(b.program.buffers[0].bytes = std::int64_t{1} << 40)},
};

TEST(CoreCheck, EveryRuleIsToldWhenItIsBroken) {
  for (const Fault& f : faults) expect_told(f.make(), {f.told});
}

TEST(CoreCheck, LimitsOfFreeSizeAndMovingRows) {
  Bench b("trn3");
  const View s = b.add(plain(bf16, 128, 128)), x = b.add(plain(bf16, 128, 4097));
  const View p = b.add(plain(f32, 128, 4097, MemorySpace::psum));
  b.program.buffers[2].bytes = 4096 * 4;
  b.set("nc_matmul", Engine::tensor, {p}, {s, x});
  b.program.views[0].dim[0] = {4097, 0};
  expect_told(b, {"output 0 (product): free size: 4097 elements a partition; expected at most 4096 in psum"});
  Bench c;
  const View y = c.add({bf16, 4, {{2, 0}, {40'000, 1}}});
  c.set("tensor_copy", Engine::vector, {y}, {y});
  expect_told(c, {"free size: 80000 elements a partition; expected at most 65536 in sbuf"});
  Bench d;
  const View t = d.add(plain(bf16, 128, 128)), u = d.add(plain(bf16, 128, 600));
  View q = d.add(plain(f32, 128, 512, MemorySpace::psum));
  q.dims = 2;
  q.dim = {Dim{100, 1}, Dim{6, 50}};
  d.set("nc_matmul", Engine::tensor, {q}, {t, u});
  expect_told(d, {"moving has 600 columns; expected at most 512"});
}

TEST(CoreCheck, GenerationsDiffer) {
  Bench b;
  const View states = b.add(plain(DType::u32, 128, 24));
  b.set("rand_get_state", Engine::vector, {states}, {});
  expect_told(b, {"the Vector engine's states are read and written from NeuronCore-v4 on"});
  Bench c("trn1");
  const View s = c.add({DType::f8e4m3, 16, {{2, 6}, {6, 1}}}), x = c.add({DType::f8e5m2, 16, {{2, 10}, {10, 1}}});
  const View p = c.add(plain(f32, 6, 10, MemorySpace::psum));
  c.set("nc_matmul", Engine::tensor, {p}, {s, x}, {with(Key::mode, 1)});
  expect_told(c, {"mode double_row is NeuronCore-v3's and later"});
}

// An instruction kind to test on 128 rows. Outputs and inputs: how many elements a row of each has.
struct Rows {
  std::string_view kind;
  Engine engine;
  std::vector<std::int32_t> outputs, inputs;
  std::vector<Attribute> attributes;
};

const Rows kinds_of_rows[] = {
    {"activation_reduce", Engine::scalar, {8, 1}, {8, 1, 1}, {with(ActivationFunction::exp)}},
    {"activate2",
     Engine::scalar,
     {8, 1},
     {8, 1, 1},
     {with(ActivationFunction::exp), with(AluOp::multiply), with(AluOp::add, Key::op1)}},
    {"exponential", Engine::vector, {8, 1}, {8, 1}, {}},
    {"scalar_tensor_tensor", Engine::vector, {8}, {8, 8, 1}, {with(AluOp::add), with(AluOp::add, Key::op1)}},
    {"tensor_scalar", Engine::vector, {8}, {8, 1, 1}, {with(AluOp::add), with(AluOp::add, Key::op1)}},
    {"tensor_scalar_cumulative", Engine::vector, {8}, {8, 1}, {with(AluOp::add), with(AluOp::add, Key::op1)}},
    {"tensor_scalar_reduce", Engine::vector, {8, 1}, {8, 1}, {with(AluOp::add)}},
    {"tensor_tensor_scan", Engine::vector, {8}, {8, 8, 1}, {with(AluOp::add), with(AluOp::add, Key::op1)}},
};

void expect_rows_told(Bench& b) {
  ASSERT_EQ(message(b), "");
  for (View& v : b.program.views) {
    --v.rows;
    const std::string text = message(b);
    EXPECT_TRUE(text.find(" rows; expected ") != text.npos || text.find("shape: ") != text.npos)
        << only(b).kind->name << " with operand " << &v - b.program.views.data() << " short of a row: '" << text << "'";
    ++v.rows;
  }
}

// If an operand had one row fewer than the output, or an output one row fewer than the data, the instruction would
// access memory outside it. The check must refuse that.
TEST(CoreCheck, OperandsHaveTheOutputsRows) {
  for (const Rows& kind : kinds_of_rows) {
    Bench b("trn3");
    std::vector<View> outputs, inputs;
    for (const std::int32_t n : kind.outputs) outputs.push_back(b.add(plain(f32, 128, n)));
    for (const std::int32_t n : kind.inputs) inputs.push_back(b.add(plain(f32, 128, n)));
    b.set(kind.kind, kind.engine, outputs, inputs, kind.attributes);
    expect_rows_told(b);
  }
  for (const std::int32_t n : {1, 8}) {
    Bench b;
    const View out = b.add(plain(f32, 128, 8)), most = b.add(plain(f32, 128, 1));
    const View yes = b.add(plain(DType::u8, 128, 8)), x = b.add(plain(f32, 128, 8)), y = b.add(plain(f32, 128, n));
    b.set("select", Engine::vector, {out}, {yes, x, y});
    expect_rows_told(b);
    b.set("select_reduce", Engine::vector, {out, most}, {yes, x, y});
    expect_rows_told(b);
  }
}

TEST(CoreCheck, ActivationReduceHasAsManyElementsAsItsData) {
  Bench b;
  const View x = b.add(plain(bf16, 128, 8)), z = b.add(plain(bf16, 128, 512)), sums = b.add(plain(f32, 128, 1));
  b.set("activation_reduce", Engine::scalar, {z, sums}, {x}, {with(ActivationFunction::exp)});
  expect_told(b, {"data has 8 elements a row; expected 512"});
}

TEST(CoreCheck, GpSimdDoesNotReachPsum) {
  Bench b;
  const View p = b.add(plain(f32, 8, 8, MemorySpace::psum)), z = b.add(plain(f32, 8, 8));
  b.set("tensor_copy", Engine::gpsimd, {z}, {p});
  expect_told(b, {"input 0 (source): space: b0 lies in psum, which the gpsimd engine does not reach"});
}

TEST(CoreCheck, ARingIsFedByOneEngine) {
  Bench b = transfer();
  const View x = b.program.views[1], z = b.program.views[0];
  b.append("dma_copy", Engine::gpsimd, {z}, {x});
  expect_told(b, {"instruction 1 (dma_copy): DMA ring: 0 is fed by sync and gpsimd; expected one engine"});
  b.program.instructions[1].queue = 3;
  EXPECT_EQ(message(b), "");
}

TEST(CoreCheck, LoopsAreBalanced) {
  Bench b;
  b.set("end_loop", Engine::vector, {}, {});
  expect_told(b, {"instruction 0 (end_loop): loop: an end_loop of vector without a loop"});
  b.set("loop", Engine::vector, {}, {}, {with(Key::target, 1), with(Key::count, 3)});
  expect_told(b, {"instruction 0 (loop): loop: no end_loop for it"});
  b.set("loop", Engine::vector, {}, {}, {with(Key::target, 1), with(Key::count, 0)});
  expect_told(b, {"count is 0; expected at least 1"});
  b.set("loop", Engine::vector, {}, {}, {with(Key::target, 64), with(Key::count, 2)});
  expect_told(b, {"register: to is 64; expected 0 to 63"});
}

// An instruction with operands of random shapes and types is either refused or accesses only its operands' memory when
// it runs, whatever its kind's own check covers.
TEST(CoreCheck, RandomOperandsAreRefusedOrRun) {
  std::mt19937 random(11);
  std::size_t ran = 0;
  for (int turn = 0; turn < 4000; ++turn) {
    Bench b("trn3");
    auto kind = kinds().begin();
    std::advance(kind, random() % kinds().size());
    const InstructionKind& k = kind->second;
    std::vector<View> outputs, inputs;
    const std::int32_t rows[] = {1, 16, 32, 64}, columns[] = {1, 8, 32};
    const std::int32_t r = rows[random() % 4], c = columns[random() % 3];
    const auto some = [&](const OperandRule& rule) {
      const auto type = static_cast<DType>(random() % kernels::dtype_count);
      const MemorySpace space = rule.spaces == in_psum ? MemorySpace::psum : static_cast<MemorySpace>(random() % 3);
      return b.add(plain(random() % 4 == 0 ? f32 : type, random() % 3 == 0 ? 1 : r, random() % 4 == 0 ? 1 : c, space));
    };
    for (const OperandRule& rule : k.outputs)
      if (!rule.optional || random() % 2 == 0) outputs.push_back(some(rule));
    for (const OperandRule& rule : k.inputs)
      if (!rule.optional || random() % 2 == 0) inputs.push_back(some(rule));
    std::vector<Attribute> keys;
    for (const KeyRule& key : k.keys)
      if (key.required || random() % 3 == 0) keys.push_back({key.key, static_cast<double>(random() % 8)});
    b.set(k.name, k.engines[random() % k.engines.size()], outputs, inputs, keys);
    if (message(b) != "" || k.run == nullptr) continue;
    for (const View& v : inputs) b.fill(v, 4);
    try {
      b.run();
      EXPECT_GT(b.program.instructions[0].kind->dma ? 1 : b.cost().latency, 0);
      ++ran;
    } catch (const std::invalid_argument&) {  // an index that leads nowhere
    }
  }
  EXPECT_GT(ran, 50U);
}

}  // namespace
}  // namespace trellis::sim::core
