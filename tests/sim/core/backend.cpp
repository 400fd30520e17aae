// The back end: dependencies of instructions, engines, order, rotating tiles, and its error when memory is full.
#include "sim/core/backend/backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "sim/core/backend/dependency_graph.h"
#include "sim/core/check/check.h"
#include "sim/core/check/race_detector.h"
#include "sim/core/program/instruction_kind.h"
#include "sim/core/program/operand_footprint.h"
#include "sim/core/run/core_memory.h"
#include "sim/core/run/run.h"
#include "tests/why.h"

namespace trellis::sim::core {
namespace {

// Builds an UnscheduledProgram, the input of the back end, from buffers and instructions.
struct Kernel {
  UnscheduledProgram draft;

  std::int32_t buffer(const std::string& name, MemorySpace space, std::int64_t bytes, std::int32_t site,
                      BufferRole role = BufferRole::internal) {
    draft.program.buffers.push_back({.name = name,
                                     .space = space,
                                     .type = DType::f32,
                                     .role = role,
                                     .partitions = space == MemorySpace::hbm ? 1 : 128,
                                     .bytes = bytes});
    draft.sites.push_back(site);
    draft.placed.push_back(false);
    return static_cast<std::int32_t>(draft.program.buffers.size()) - 1;
  }

  static View view(std::int32_t buffer, std::int64_t offset, std::int32_t columns, std::int64_t pitch = 0) {
    return {.buffer = buffer, .rows = 128, .offset = offset, .row_stride = pitch, .dim = {Dim{columns, 1}}};
  }

  void add(std::string_view kind, Engine engine, EngineSet others, const View& out, const View& in) {
    Instruction i{.kind = &kind_named(kind), .engine = engine, .outputs = 1};
    i.views = {static_cast<std::uint32_t>(draft.program.views.size()), 2};
    draft.program.views.push_back(out);
    draft.program.views.push_back(in);
    if (kind == "activation") {
      i.attributes = {static_cast<std::uint32_t>(draft.program.attributes.size()), 1};
      draft.program.attributes.push_back({Key::func, static_cast<double>(ActivationFunction::identity)});
    }
    draft.program.instructions.push_back(i);
    draft.engines.push_back(static_cast<EngineSet>(others | set_of(engine)));
    draft.queues.push_back(-1);
    draft.in_order.push_back(false);
  }
};

constexpr std::int32_t columns = 2048;

// Copies an input to the output by way of SBUF, one tile in each of `turns` turns. `anew`: each turn declares new tiles
// in SBUF.
Kernel doubled(int turns, bool anew = true) {
  Kernel k;
  const std::int64_t row = std::int64_t{turns} * columns * 4;
  const auto from = k.buffer("from", MemorySpace::hbm, 128 * row, 0, BufferRole::input);
  const auto to = k.buffer("to", MemorySpace::hbm, 128 * row, 1, BufferRole::output);
  std::int32_t x = -1, y = -1;
  for (int turn = 0; turn < turns; ++turn) {
    if (anew || turn == 0) {
      x = k.buffer("x", MemorySpace::sbuf, columns * 4, 2);
      y = k.buffer("y", MemorySpace::sbuf, columns * 4, 3);
    }
    const std::int64_t at = std::int64_t{turn} * columns * 4;
    k.add("dma_copy", Engine::sync, 0, Kernel::view(x, 0, columns), Kernel::view(from, at, columns, row));
    k.add("activation", Engine::scalar, 0, Kernel::view(y, 0, columns), Kernel::view(x, 0, columns));
    k.add("dma_copy", Engine::gpsimd, 0, Kernel::view(to, at, columns, row), Kernel::view(y, 0, columns));
  }
  return k;
}

Time time_of(const UnscheduledProgram& draft, const BackEndOptions& options, const ChipSpec& chip) {
  const BackEndResult a = assemble(draft, chip, options);
  check(a.program, chip);
  EXPECT_TRUE(races(a.program, chip).empty());
  return run(a.program, chip).time;
}

TEST(CoreBackEnd, FindsDependenciesThroughMemory) {
  const Kernel k = doubled(2, false);
  const auto graph = dependency_graph(k.draft, unordered_buffers(k.draft.program));
  const auto earlier = [&](std::uint32_t at) {
    std::vector<std::uint32_t> all(graph.earlier.begin() + graph.first[at],
                                   graph.earlier.begin() + graph.first[at + 1]);
    std::ranges::sort(all);
    return all;
  };
  EXPECT_EQ(earlier(0), (std::vector<std::uint32_t>{}));
  EXPECT_EQ(earlier(1), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(earlier(2), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(earlier(3), (std::vector<std::uint32_t>{0, 1}));     // fills the tile that 1 has read
  EXPECT_EQ(earlier(4), (std::vector<std::uint32_t>{1, 2, 3}));  // overwrites the tile that 2 stores
  const Kernel fresh = doubled(2);
  const auto apart = dependency_graph(fresh.draft, unordered_buffers(fresh.draft.program));
  EXPECT_EQ(apart.first[4] - apart.first[3], 0U);  // a tile declared anew waits for nothing
}

// Two stores that fill an output need no order. A third one that overlaps both must stay behind them.
TEST(CoreBackEnd, StoresThatOverlapStayInOrder) {
  Kernel k;
  const std::int64_t row = std::int64_t{2} * columns * 4;
  const auto x = k.buffer("x", MemorySpace::sbuf, row, 0),
             to = k.buffer("to", MemorySpace::hbm, 128 * row, 1, BufferRole::output);
  const auto store = [&](std::int64_t column, std::int32_t width) {
    k.add("dma_copy", Engine::sync, 0, Kernel::view(to, column * 4, width, row), Kernel::view(x, 0, width));
  };
  store(0, columns);
  store(columns, columns);
  EXPECT_TRUE(unordered_buffers(k.draft.program)[static_cast<std::size_t>(to)]);
  store(columns - 1, 2);
  const auto unordered = unordered_buffers(k.draft.program);
  EXPECT_FALSE(unordered[static_cast<std::size_t>(to)]);
  const auto graph = dependency_graph(k.draft, unordered);
  EXPECT_EQ(graph.first[2] - graph.first[1], 0U);
  EXPECT_EQ(graph.first[3] - graph.first[2], 2U);
}

TEST(CoreBackEnd, CopiesMovedByDataDependOnAllThatTheyMayTouch) {
  Kernel k;
  const auto x = k.buffer("x", MemorySpace::sbuf, 4 * 64, 0), y = k.buffer("y", MemorySpace::sbuf, 4 * 64, 1);
  const auto offset = k.buffer("offset", MemorySpace::sbuf, 4, 2);
  k.add("activation", Engine::scalar, 0, Kernel::view(x, 128, 8), Kernel::view(y, 0, 8));
  k.add("tensor_copy_dynamic_src", Engine::vector, 0, Kernel::view(y, 128, 8), Kernel::view(x, 0, 8));
  k.draft.program.views.push_back({.buffer = offset, .type = DType::i32, .dim = {Dim{1, 1}}});
  k.draft.program.instructions.back().views.count = 3;
  const auto graph = dependency_graph(k.draft, unordered_buffers(k.draft.program));
  EXPECT_EQ(graph.first[2] - graph.first[1], 1U);
}

// The bytes of a view with one dimension, one by one.
std::set<std::int64_t> bytes_of(const View& v) {
  std::set<std::int64_t> all;
  for (std::int64_t row = 0; row < v.rows; ++row)
    for (std::int64_t at = 0; at < v.dim[0].count; ++at)
      all.insert(v.offset + row * v.row_stride + at * v.dim[0].stride);
  return all;
}

TEST(CoreBackEnd, FindsEveryOverlapOfRandomStores) {
  std::mt19937 random(1);
  const auto below = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
  };
  int apart = 0, missed = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    NeuronCoreProgram p;
    p.buffers.push_back({.space = MemorySpace::hbm, .type = DType::u8, .bytes = 4096});
    std::vector<OperandFootprint> boxes;
    std::vector<std::set<std::int64_t>> bytes;
    std::set<std::int64_t> written;
    bool met = false;
    const bool of_one_stride = turn % 4 != 0;
    const std::int64_t direction = turn % 5 == 0 ? -1 : 1;  // -1: each row lies below the one before
    for (int i = 0; i < 4; ++i) {
      View v = {.buffer = 0,
                .type = DType::u8,
                .rows = static_cast<std::int32_t>(1 + below(4)),
                .offset = 60 + below(90),
                .row_stride = direction * (of_one_stride ? 16 : 12 + below(3)),
                .dim = {Dim{static_cast<std::int32_t>(1 + below(turn % 3 == 0 ? 20 : 6)), 1}}};
      if (below(3) == 0) v.dim[0].stride = -1;
      boxes.push_back(footprint_of(p, v));
      bytes.push_back(bytes_of(v));
      for (const std::int64_t byte : bytes.back()) met |= !written.insert(byte).second;
      for (std::size_t a = 0; a + 1 < boxes.size(); ++a) {
        const bool met_one =
            std::ranges::any_of(bytes.back(), [&](std::int64_t byte) { return bytes[a].contains(byte); });
        EXPECT_TRUE(!met_one || overlap(boxes[a], boxes.back()));
      }
    }
    bool pairs = false;
    for (std::size_t a = 0; a < boxes.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) pairs |= overlap(boxes[a], boxes[b]);
    ASSERT_EQ(any_overlap(boxes), pairs) << turn;
    missed += met && !pairs;
    apart += !pairs;
  }
  EXPECT_EQ(missed, 0);
  EXPECT_GT(apart, 1'000);
}

TEST(CoreBackEnd, TilesInRotationOverlapLoadsWithWork) {
  const ChipSpec chip = chip_named("trn2");
  const UnscheduledProgram draft = doubled(16).draft;
  const Time one = time_of(draft, {.copies = 1}, chip), two = time_of(draft, {.copies = 2}, chip),
             four = time_of(draft, {.copies = 4}, chip);
  EXPECT_GT(one, two * 3 / 2);
  EXPECT_LT(four, two * 21 / 20);
  EXPECT_GT(time_of(doubled(16, false).draft, {.copies = 4}, chip), two * 3 / 2);  // one tile cannot rotate
}

TEST(CoreBackEnd, RotationTakesTheSlotThatIsFreeLongest) {
  const ChipSpec chip = chip_named("trn2");
  const BackEndResult a = assemble(doubled(6).draft, chip, {.copies = 3});
  std::vector<std::int64_t> places;
  for (const CoreBuffer& b : a.program.buffers)
    if (b.name == "x") places.push_back(b.offset);
  EXPECT_EQ(places[0], places[3]);
  EXPECT_EQ(places[1], places[4]);
  EXPECT_NE(places[0], places[1]);
  EXPECT_NE(places[1], places[2]);
}

TEST(CoreBackEnd, ChoosesTheEngineThatIsFree) {
  const ChipSpec chip = chip_named("trn2");
  Kernel k = doubled(1);
  for (int turn = 0; turn < 8; ++turn) {
    const auto z = k.buffer("z", MemorySpace::sbuf, columns * 4, 9);
    k.add("tensor_copy", Engine::scalar, set_of(Engine::vector), Kernel::view(z, 0, columns),
          Kernel::view(2, 0, columns));
  }
  const BackEndResult a = assemble(k.draft, chip, {.window = 64, .copies = 8});
  const auto on = [&](Engine e) {
    return std::ranges::count_if(a.program.instructions,
                                 [&](const Instruction& i) { return i.kind->name == "tensor_copy" && i.engine == e; });
  };
  EXPECT_EQ(on(Engine::scalar) + on(Engine::vector), 8);
  EXPECT_GE(on(Engine::vector), 3);
  EXPECT_GE(on(Engine::scalar), 3);
}

TEST(CoreBackEnd, AWindowLetsIndependentWorkGoFirst) {
  const ChipSpec chip = chip_named("trn2");
  Kernel k = doubled(1);
  const auto z = k.buffer("z", MemorySpace::sbuf, columns * 4, 9);
  // The second instruction of the scalar engine waits for a store. A third one, later in the text, does not.
  k.add("activation", Engine::scalar, 0, Kernel::view(z, 0, columns), Kernel::view(3, 0, columns));
  k.draft.follows = {{3, 2}};
  const auto w = k.buffer("w", MemorySpace::sbuf, columns * 4, 10);
  k.add("activation", Engine::scalar, 0, Kernel::view(w, 0, columns), Kernel::view(2, 0, columns));
  EXPECT_EQ(assemble(k.draft, chip, {.window = 1}).order, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(assemble(k.draft, chip, {.window = 8}).order, (std::vector<std::uint32_t>{0, 1, 4, 2, 3}));
  k.draft.in_order.assign(5, true);
  EXPECT_EQ(assemble(k.draft, chip, {.window = 8}).order, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

TEST(CoreBackEnd, TensorKeepsTheOrderOfRegions) {
  const ChipSpec chip = chip_named("trn2");
  Kernel k;
  const auto from = k.buffer("from", MemorySpace::hbm, 128 * 512, 0, BufferRole::input);
  const auto x = k.buffer("x", MemorySpace::sbuf, 512, 1), y = k.buffer("y", MemorySpace::sbuf, 512, 2);
  const auto p = k.buffer("p", MemorySpace::psum, 512, 3), q = k.buffer("q", MemorySpace::psum, 512, 4);
  k.add("dma_copy", Engine::sync, 0, Kernel::view(x, 0, 128), Kernel::view(from, 0, 128, 512));
  k.add("nc_transpose", Engine::tensor, 0, Kernel::view(p, 0, 128), Kernel::view(x, 0, 128));
  k.add("activation", Engine::scalar, 0, Kernel::view(y, 0, 128), Kernel::view(p, 0, 128));
  k.add("nc_transpose", Engine::tensor, 0, Kernel::view(q, 0, 128),
        Kernel::view(k.buffer("z", MemorySpace::sbuf, 512, 5), 0, 128));
  k.add("activation", Engine::scalar, 0, Kernel::view(y, 0, 128),
        Kernel::view(k.buffer("w", MemorySpace::sbuf, 512, 6), 0, 128));
  k.draft.follows = {{4, 2}};
  k.draft.regions = {0, 0, 0, 1, 1};
  const auto tensor_order = [&](bool regions) {
    std::vector<std::uint32_t> order = assemble(k.draft, chip, {.window = 8, .regions = regions}).order;
    std::erase_if(order, [](std::uint32_t at) { return at != 1 && at != 3; });
    return order;
  };
  EXPECT_EQ(tensor_order(false), (std::vector<std::uint32_t>{3, 1}));
  EXPECT_EQ(tensor_order(true), (std::vector<std::uint32_t>{1, 3}));
}

TEST(CoreBackEnd, SaysWhoFillsMemory) {
  const ChipSpec chip = chip_named("trn2");
  Kernel k = doubled(1);
  const auto big = k.buffer("big", MemorySpace::sbuf, 224 * 1024, 5);
  k.add("activation", Engine::scalar, 0, Kernel::view(big, 0, columns), Kernel::view(3, 0, columns));
  const std::string text = why([&] { assemble(k.draft, chip); });
  EXPECT_NE(text.find("SBUF is full: big needs 229376 bytes a partition"), std::string::npos) << text;
  EXPECT_NE(text.find("most is held by"), std::string::npos) << text;
}

// A kernel that loads all tiles before it stores the first.
Kernel kept(int tiles, std::int32_t wide) {
  Kernel k;
  const std::int64_t row = std::int64_t{tiles} * wide * 4;
  const auto from = k.buffer("from", MemorySpace::hbm, 128 * row, 0, BufferRole::input);
  const auto to = k.buffer("to", MemorySpace::hbm, 128 * row, 1, BufferRole::output);
  for (int n = 0; n < tiles; ++n)
    k.add("dma_copy", Engine::sync, 0, Kernel::view(k.buffer("x", MemorySpace::sbuf, wide * 4, 2 + n), 0, wide),
          Kernel::view(from, std::int64_t{n} * wide * 4, wide, row));
  for (int n = 0; n < tiles; ++n)
    k.add("dma_copy", Engine::gpsimd, 0, Kernel::view(to, std::int64_t{n} * wide * 4, wide, row),
          Kernel::view(2 + n, 0, wide));
  return k;
}

TEST(CoreBackEnd, WhatDoesNotFitWaitsInHbm) {
  const ChipSpec chip = chip_named("trn2");
  constexpr int tiles = 4;
  constexpr std::int32_t wide = 20'000;  // 80,000 bytes of 229,376
  const UnscheduledProgram draft = kept(tiles, wide).draft;
  EXPECT_NE(why([&] { assemble(draft, chip); }).find("SBUF is full"), std::string::npos);
  const BackEndResult a = assemble(draft, chip, {.spill = true});
  check(a.program, chip);
  EXPECT_TRUE(races(a.program, chip).empty());
  EXPECT_EQ(a.written, 2U * tiles);
  EXPECT_EQ(a.spills.moves, static_cast<std::int64_t>(a.program.instructions.size()) - 2 * tiles);
  EXPECT_EQ(a.spills.moves, 4);  // two tiles go and come back
  EXPECT_EQ(a.spills.bytes, a.spills.moves * 128 * wide * 4);
  CoreMemory memory(a.program, chip);
  const auto from = memory.hbm_as<float>("from");
  for (std::size_t n = 0; n < from.size(); ++n) from[n] = static_cast<float>(n % 1'009);
  run(a.program, chip, {.memory = &memory});
  EXPECT_TRUE(std::ranges::equal(memory.hbm_as<float>("to"), from));
}

TEST(CoreBackEnd, SmallTilesShareABank) {
  const ChipSpec chip = chip_named("trn2");
  Kernel k = doubled(1);
  constexpr std::int32_t narrow = 128;
  for (int n = 0; n < 12; ++n) {  // of 512 bytes each, all needed at the end; there are eight banks
    const auto z = k.buffer("z", MemorySpace::psum, narrow * 4, 20 + n);
    k.add("activation", Engine::scalar, 0, Kernel::view(z, 0, narrow), Kernel::view(3, 0, narrow));
  }
  const auto first = static_cast<std::int32_t>(k.draft.program.buffers.size()) - 12;
  for (int n = 0; n < 12; ++n)
    k.add("activation", Engine::scalar, 0, Kernel::view(2, n * narrow * 4, narrow), Kernel::view(first + n, 0, narrow));
  const BackEndResult a = assemble(k.draft, chip);
  check(a.program, chip);
  EXPECT_TRUE(races(a.program, chip).empty());
  const auto across = [](const CoreBuffer& b) {
    return b.space == MemorySpace::psum && b.offset / 2048 != (b.offset + b.bytes - 1) / 2048;
  };
  EXPECT_TRUE(std::ranges::none_of(a.program.buffers, across));
}

TEST(CoreBackEnd, AnOrderAgainstTheTextIsKept) {
  const ChipSpec chip = chip_named("trn2");
  Kernel k = doubled(2);
  k.draft.after = {{0, 3}};  // the first load follows the second one
  for (const std::uint32_t window : {1U, 8U}) {
    const BackEndResult a = assemble(k.draft, chip, {.window = window});
    EXPECT_LT(std::ranges::find(a.order, 3U), std::ranges::find(a.order, 0U));
    EXPECT_EQ(a.order.size(), 6U);
  }
  k.draft.after = {{0, 2}};
  EXPECT_NE(why([&] { assemble(k.draft, chip); }).find("depend on each other in a circle"), std::string::npos);
}

TEST(CoreBackEnd, LongKernelsTakeLinearTime) {
  const ChipSpec chip = chip_named("trn2");
  const UnscheduledProgram draft = doubled(20'000).draft;
  const BackEndResult a = assemble(draft, chip, {.window = 256, .copies = 8});
  EXPECT_EQ(a.order.size(), 60'000U);
}

}  // namespace
}  // namespace trellis::sim::core
