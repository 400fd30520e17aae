#include "tests/sim/core/bench.h"

namespace trellis::sim::core {
namespace {

// Appends an instruction to what the bench has.
void append(Bench& b, std::string_view kind, Engine engine, std::vector<View> outputs, std::vector<View> inputs,
            std::vector<Attribute> keys = {}, std::vector<WaitFor> waits = {}, std::vector<Signal> signals = {}) {
  Program& p = b.program;
  Instruction i;
  i.kind = &kind_named(kind);
  i.engine = engine;
  i.queue = i.kind->dma ? std::int16_t{0} : std::int16_t{-1};
  i.views = {static_cast<std::uint32_t>(p.views.size()), static_cast<std::uint32_t>(outputs.size() + inputs.size())};
  i.outputs = static_cast<std::uint32_t>(outputs.size());
  i.attributes = {static_cast<std::uint32_t>(p.attributes.size()), static_cast<std::uint32_t>(keys.size())};
  i.waits = {static_cast<std::uint32_t>(p.waits.size()), static_cast<std::uint32_t>(waits.size())};
  i.signals = {static_cast<std::uint32_t>(p.signals.size()), static_cast<std::uint32_t>(signals.size())};
  p.views.insert(p.views.end(), outputs.begin(), outputs.end());
  p.views.insert(p.views.end(), inputs.begin(), inputs.end());
  p.attributes.insert(p.attributes.end(), keys.begin(), keys.end());
  p.waits.insert(p.waits.end(), waits.begin(), waits.end());
  p.signals.insert(p.signals.end(), signals.begin(), signals.end());
  p.instructions.push_back(i);
}

// The reader comes first in the text and waits for the writer.
TEST(CoreUnwritten, FollowsSemaphores) {
  Bench b;
  b.program.semaphores = {"ready"};
  const View x = b.add(plain(DType::f32, 4, 10, Space::hbm)), y = b.add(plain(DType::f32, 4, 10));
  const View z = b.add(plain(DType::f32, 4, 10));
  b.program.buffers[0].role = Role::input;
  append(b, "tensor_copy", Engine::vector, {z}, {y}, {}, {{0, 1}});
  append(b, "dma_copy", Engine::sync, {y}, {x}, {}, {}, {{0, 1}});
  EXPECT_EQ(unwritten_reads(b.program), std::vector<std::string>{});
  b.program.buffers[0].role = Role::internal;
  EXPECT_EQ(unwritten_reads(b.program),
            std::vector<std::string>{"instruction 1 (dma_copy) reads byte 0 of b0, which nothing has written"});
}

TEST(CoreUnwritten, SeesSingleElementsAndPartitions) {
  Bench b;
  const View x = b.add(plain(DType::bf16, 8, 20)), z = b.add(plain(DType::bf16, 8, 20));
  View part = x, most = x;
  part.dim[0] = {10, 2};  // every other element
  most.rows = 7;
  append(b, "memset", Engine::vector, {most}, {}, {with(Key::value, 0)});
  append(b, "tensor_copy", Engine::vector, {z}, {x});
  EXPECT_EQ(unwritten_reads(b.program),
            std::vector<std::string>{
                "instruction 1 (tensor_copy) reads byte 0 of b0 in its partition 7, which nothing has written"});
  Bench c;
  c.program.buffers = b.program.buffers;
  append(c, "memset", Engine::vector, {part}, {}, {with(Key::value, 0)});
  append(c, "tensor_copy", Engine::vector, {part}, {part});
  append(c, "tensor_copy", Engine::vector, {z}, {x});
  EXPECT_EQ(unwritten_reads(c.program),
            std::vector<std::string>{
                "instruction 2 (tensor_copy) reads byte 2 of b0 in its partition 0, which nothing has written"});
}

TEST(CoreUnwritten, ProductsThatAddRead) {
  Bench b;
  const View s = b.add(plain(DType::bf16, 16, 8)), x = b.add(plain(DType::bf16, 16, 9));
  const View p = b.add(plain(DType::f32, 8, 9, Space::psum));
  append(b, "memset", Engine::vector, {s}, {}, {with(Key::value, 1)});
  append(b, "memset", Engine::vector, {x}, {}, {with(Key::value, 1)});
  append(b, "nc_matmul", Engine::tensor, {p}, {s, x}, {with(Key::accumulate, 1)});
  b.program.semaphores = {"set"};
  b.program.signals = {{0, 1}};
  b.program.waits = {{0, 1}};
  b.program.instructions[1].signals = {0, 1};
  b.program.instructions[2].waits = {0, 1};
  EXPECT_EQ(unwritten_reads(b.program),
            std::vector<std::string>{
                "instruction 2 (nc_matmul) reads byte 0 of b2 in its partition 0, which nothing has written"});
}

// Four turns write four parts of a row; a fifth is read.
TEST(CoreUnwritten, FollowsLoopsAndRegisters) {
  Bench b;
  const View x = b.add(plain(DType::f32, 4, 50)), z = b.add(plain(DType::f32, 4, 10));
  View part = x;
  part.dim[0].count = 10;
  part.index = 3;
  part.index_scale = 40;
  append(b, "loop", Engine::vector, {}, {}, {with(Key::target, 3), with(Key::count, 4)});
  append(b, "memset", Engine::vector, {part}, {}, {with(Key::value, 1)});
  append(b, "tensor_copy", Engine::vector, {z}, {part});
  append(b, "end_loop", Engine::vector, {}, {});
  EXPECT_EQ(unwritten_reads(b.program), std::vector<std::string>{});
  append(b, "register_add", Engine::vector, {}, {}, {with(Key::target, 3), with(Key::value, 1)});
  append(b, "tensor_copy", Engine::vector, {z}, {part});
  EXPECT_EQ(unwritten_reads(b.program),
            std::vector<std::string>{
                "instruction 5 (tensor_copy) reads byte 160 of b0 in its partition 0, which nothing has written"});
}

}  // namespace
}  // namespace trellis::sim::core
