#include "tests/sim/core/bench.h"

namespace trellis::sim::core {
namespace {

// The reader comes first in the text and waits for the writer.
TEST(CoreUnwritten, FollowsSemaphores) {
  Bench b;
  b.program.semaphores = {"ready"};
  const View x = b.add(plain(DType::f32, 4, 10, MemorySpace::hbm)), y = b.add(plain(DType::f32, 4, 10));
  const View z = b.add(plain(DType::f32, 4, 10));
  b.program.buffers[0].role = BufferRole::input;
  b.append("tensor_copy", Engine::vector, {z}, {y}, {}, {{0, 1}});
  b.append("dma_copy", Engine::sync, {y}, {x}, {}, {}, {{0, 1}});
  EXPECT_EQ(unwritten_reads(b.program), std::vector<std::string>{});
  b.program.buffers[0].role = BufferRole::internal;
  EXPECT_EQ(unwritten_reads(b.program),
            std::vector<std::string>{"instruction 1 (dma_copy) reads byte 0 of b0, which nothing has written"});
}

TEST(CoreUnwritten, SeesSingleElementsAndPartitions) {
  Bench b;
  const View x = b.add(plain(DType::bf16, 8, 20)), z = b.add(plain(DType::bf16, 8, 20));
  View part = x, most = x;
  part.dim[0] = {10, 2};  // every other element
  most.rows = 7;
  b.append("memset", Engine::vector, {most}, {}, {with(Key::value, 0)});
  b.append("tensor_copy", Engine::vector, {z}, {x});
  EXPECT_EQ(unwritten_reads(b.program),
            std::vector<std::string>{
                "instruction 1 (tensor_copy) reads byte 0 of b0 in its partition 7, which nothing has written"});
  Bench c;
  c.program.buffers = b.program.buffers;
  c.append("memset", Engine::vector, {part}, {}, {with(Key::value, 0)});
  c.append("tensor_copy", Engine::vector, {part}, {part});
  c.append("tensor_copy", Engine::vector, {z}, {x});
  EXPECT_EQ(unwritten_reads(c.program),
            std::vector<std::string>{
                "instruction 2 (tensor_copy) reads byte 2 of b0 in its partition 0, which nothing has written"});
}

TEST(CoreUnwritten, ProductsThatAddRead) {
  Bench b;
  const View s = b.add(plain(DType::bf16, 16, 8)), x = b.add(plain(DType::bf16, 16, 9));
  const View p = b.add(plain(DType::f32, 8, 9, MemorySpace::psum));
  b.append("memset", Engine::vector, {s}, {}, {with(Key::value, 1)});
  b.append("memset", Engine::vector, {x}, {}, {with(Key::value, 1)});
  b.append("nc_matmul", Engine::tensor, {p}, {s, x}, {with(Key::accumulate, 1)});
  b.program.semaphores = {"set"};
  b.program.signals = {{0, 1}};
  b.program.waits = {{0, 1}};
  b.program.instructions[1].signals = {0, 1};
  b.program.instructions[2].waits = {0, 1};
  EXPECT_EQ(unwritten_reads(b.program),
            std::vector<std::string>{
                "instruction 2 (nc_matmul) reads byte 0 of b2 in its partition 0, which nothing has written"});
}

// A loop's four iterations write four parts of a row; a fifth part is read, too.
TEST(CoreUnwritten, FollowsLoopsAndRegisters) {
  Bench b;
  const View x = b.add(plain(DType::f32, 4, 50)), z = b.add(plain(DType::f32, 4, 10));
  View part = x;
  part.dim[0].count = 10;
  part.index = 3;
  part.index_scale = 40;
  b.append("loop", Engine::vector, {}, {}, {with(Key::target, 3), with(Key::count, 4)});
  b.append("memset", Engine::vector, {part}, {}, {with(Key::value, 1)});
  b.append("tensor_copy", Engine::vector, {z}, {part});
  b.append("end_loop", Engine::vector, {}, {});
  EXPECT_EQ(unwritten_reads(b.program), std::vector<std::string>{});
  b.append("register_add", Engine::vector, {}, {}, {with(Key::target, 3), with(Key::value, 1)});
  b.append("tensor_copy", Engine::vector, {z}, {part});
  EXPECT_EQ(unwritten_reads(b.program),
            std::vector<std::string>{
                "instruction 5 (tensor_copy) reads byte 160 of b0 in its partition 0, which nothing has written"});
}

TEST(CoreUnwritten, TellsWhereARegisterLeadsOutOfABuffer) {
  Bench b;
  const View x = b.add(plain(DType::f32, 1, 64, MemorySpace::hbm)),
             z = b.add(plain(DType::f32, 1, 16, MemorySpace::hbm));
  b.program.buffers[0].role = BufferRole::input;
  View part = x;
  part.dim[0].count = 16;
  part.index = 3;
  part.index_scale = 60;
  b.append("loop", Engine::sync, {}, {}, {with(Key::target, 3), with(Key::count, 5)});
  b.append("dma_copy", Engine::sync, {z}, {part});
  b.append("end_loop", Engine::sync, {}, {});
  EXPECT_EQ(unwritten_reads(b.program),
            std::vector<std::string>{"instruction 1 (dma_copy): register 3 = 4 leads to bytes 240 to 303 of b0, which "
                                     "has 256"});
}

TEST(CoreUnwritten, ALoadReadsWhereItsRegisterLedBefore) {
  Bench b;
  const View list = b.add(plain(DType::i32, 1, 8));
  View third = list, chosen = list;
  third.offset = 8;
  third.dim[0].count = chosen.dim[0].count = 1;
  chosen.index = 0;
  chosen.index_scale = 4;
  b.append("memset", Engine::vector, {third}, {}, {with(Key::value, 1)});
  b.append("register_move", Engine::vector, {}, {}, {with(Key::target, 0), with(Key::value, 2)});
  b.append("register_load", Engine::vector, {}, {chosen}, {with(Key::target, 0)});
  EXPECT_EQ(unwritten_reads(b.program), std::vector<std::string>{});
}

// The register is loaded from memory, whose contents the check does not know.
TEST(CoreUnwritten, WhereALoadedRegisterLeadsIsNotKnown) {
  for (const bool loaded : {true, false}) {
    Bench b;
    const View number = b.add(plain(DType::i32, 1, 1)), table = b.add(plain(DType::f32, 1, 64, MemorySpace::hbm));
    const View z = b.add(plain(DType::f32, 1, 16, MemorySpace::hbm));
    View row = table;
    row.dim[0].count = 16;
    row.index = 3;
    row.index_scale = 64;
    b.append("memset", Engine::sync, {number}, {}, {with(Key::value, 1)});
    if (loaded)
      b.append("register_load", Engine::sync, {}, {number}, {with(Key::target, 3)});
    else
      b.append("register_move", Engine::sync, {}, {}, {with(Key::target, 3), with(Key::value, 0)});
    b.append("register_add", Engine::sync, {}, {}, {with(Key::target, 3), with(Key::value, -1)});
    b.append("dma_copy", Engine::sync, {z}, {row});
    b.append("dma_copy", Engine::sync, {row}, {z});
    b.append("dma_copy", Engine::sync, {z}, {table});
    EXPECT_EQ(unwritten_reads(b.program).empty(), loaded);
  }
}

// Data choose the rows of a table, so a gather may read a table that is only partly written. Rows that are scattered,
// or added to, are read as a whole.
TEST(CoreUnwritten, OnlyTablesAreReadInPart) {
  for (const bool adds : {false, true})
    for (const bool gathers : {false, true}) {
      Bench b;
      const View table = b.add(plain(DType::f32, 16, 4, MemorySpace::hbm)), rows = b.add(plain(DType::f32, 8, 4));
      const View index = b.add(plain(DType::i32, 8, 1));
      b.append("memset", Engine::gpsimd, {index}, {}, {with(Key::value, 1)});
      const std::string kind = std::string(gathers ? "dma_gather" : "dma_scatter") + (adds ? "_add" : "");
      b.append(kind, Engine::gpsimd, {gathers ? rows : table}, {gathers ? table : rows, index});
      const std::string told = "instruction 1 (" + kind +
                               ") reads byte 0 of b1 in its partition 0, which nothing has "
                               "written";
      EXPECT_EQ(unwritten_reads(b.program), gathers && !adds ? std::vector<std::string>{} : std::vector{told}) << kind;
    }
  Bench b;
  const View x = b.add(plain(DType::f32, 8, 4)), z = b.add(plain(DType::f32, 8, 4));
  const View offset = b.add(plain(DType::i32, 1, 1));
  b.append("memset", Engine::gpsimd, {offset}, {}, {with(Key::value, 0)});
  b.append("tensor_copy_dynamic_dst", Engine::gpsimd, {z}, {x, offset});
  EXPECT_EQ(unwritten_reads(b.program).size(), 1U);
}

}  // namespace
}  // namespace trellis::sim::core
