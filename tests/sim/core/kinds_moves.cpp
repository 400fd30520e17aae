// Instructions that move elements without arithmetic: DMA, gathers, shuffles, selections.
#include <limits>

#include <cmath>

#include "kernels/reduce/reduce.h"
#include "tests/sim/core/bench.h"

namespace trellis::sim::core {
namespace {

float f32(double v) { return static_cast<float>(v); }

TEST(CoreDma, CopiesCutsAndCasts) {
  for (const DType to : {DType::bf16, DType::f32})
    for (const bool cut : {false, true}) {
      Bench b;
      const View x = b.add(holes(DType::bf16, 6, 2, 10, MemorySpace::hbm));
      const View z = b.add(cut ? plain(to, 12, 10) : holes(to, 6, 5, 4)), w = b.add(plain(to, 6, 20, MemorySpace::hbm));
      b.set("dma_copy", Engine::sync, {z, w}, {x});
      const auto xs = b.fill(x);
      b.run();
      EXPECT_EQ(b.read(z), xs);
      EXPECT_EQ(b.read(w), xs);
    }
}

TEST(CoreDma, Transposes) {
  Bench b;
  const View x = b.add(plain(DType::f32, 40, 130, MemorySpace::hbm));
  const View z = b.add(plain(DType::f32, 128, 40));
  View part = x;
  part.dim[0].count = 128;
  b.set("dma_transpose", Engine::scalar, {z}, {part});
  const auto xs = b.fill(x);
  b.run();
  const auto zs = b.read(z);
  for (std::size_t r = 0; r < 40; ++r)
    for (std::size_t c = 0; c < 128; ++c) EXPECT_EQ(zs[c * 40 + r], xs[r * 130 + c]);
}

TEST(CoreDma, AddsSourcesAsTheKernelDoes) {
  Bench b;
  std::vector<View> sources;
  std::vector<std::vector<std::uint16_t>> codes;
  for (int s = 0; s < 5; ++s)
    sources.push_back(b.add(plain(DType::bf16, 3, 70, s % 2 == 0 ? MemorySpace::hbm : MemorySpace::sbuf)));
  const View z = b.add(plain(DType::bf16, 3, 70));
  b.set("dma_compute", Engine::gpsimd, {z}, sources, {with(Key::scale, 0.2)});
  for (const View& v : sources) {
    const auto xs = b.fill(v);
    codes.emplace_back(xs.size());
    for (std::size_t i = 0; i < xs.size(); ++i) kernels::store(DType::bf16, &codes.back()[i], xs[i]);
  }
  b.run();
  std::vector<const void*> at;
  for (const auto& c : codes) at.push_back(c.data());
  std::vector<std::uint16_t> sum(210);
  kernels::reduce(kernels::Reduction::scaled_sum, DType::bf16, at, sum.data(), sum.size(), {.factor = 0.2});
  const auto zs = b.read(z);
  for (std::size_t i = 0; i < zs.size(); ++i) EXPECT_EQ(zs[i], kernels::load(DType::bf16, &sum[i]));
}

TEST(CoreDma, GathersAndScattersRows) {
  for (const std::string kind : {"dma_gather", "dma_scatter", "dma_gather_add", "dma_scatter_add"}) {
    const bool gathers = kind.find("gather") != kind.npos, adds = kind.ends_with("add");
    Bench b;
    const View table = b.add(plain(DType::f32, 50, 7, MemorySpace::hbm)), rows = b.add(plain(DType::f32, 9, 7));
    const View index = b.add(plain(DType::u32, 9, 1));
    b.set(kind, Engine::gpsimd, {gathers ? rows : table}, {gathers ? table : rows, index},
          {{Key::bounds, static_cast<double>(OutOfBoundsPolicy::skip)}});
    auto ts = b.fill(table), rs = b.fill(rows);
    std::vector<double> at;
    for (int r = 0; r < 9; ++r) at.push_back(r == 4 ? 50 : (r * 17 + 3) % 50);  // the fifth leads outside
    b.write(index, at);
    b.run();
    for (std::size_t r = 0; r < 9; ++r)
      for (std::size_t c = 0; c < 7 && r != 4; ++c) {
        double& t = ts[static_cast<std::size_t>(at[r]) * 7 + c];
        double& row = rs[r * 7 + c];
        if (gathers)
          row = adds ? f32(row) + f32(t) : t;
        else
          t = adds ? f32(t) + f32(row) : row;
      }
    EXPECT_EQ(b.read(table), ts);
    EXPECT_EQ(b.read(rows), rs);
    b.set(kind, Engine::gpsimd, {gathers ? rows : table}, {gathers ? table : rows, index});
    EXPECT_THROW(b.run(), std::invalid_argument);
  }
}

TEST(CoreGather, WithinPartitionsAndWithinSixteen) {
  Bench b;
  const View x = b.add(plain(DType::bf16, 32, 20)), index = b.add(plain(DType::u32, 32, 6));
  const View z = b.add(plain(DType::bf16, 32, 6)), shared = b.add(plain(DType::u16, 32, 2));
  const View w = b.add(plain(DType::bf16, 32, 60));
  b.set("nc_n_gather", Engine::gpsimd, {z}, {x, index});
  const auto xs = b.fill(x), is = b.fill(index, 20), ss = b.fill(shared, 19);
  b.run();
  const auto zs = b.read(z);
  for (std::size_t i = 0; i < zs.size(); ++i) EXPECT_EQ(zs[i], xs[i / 6 * 20 + static_cast<std::size_t>(is[i])]);
  b.set("local_gather", Engine::gpsimd, {w}, {x, shared}, {with(Key::step, 2), with(Key::count, 30)});
  b.run();
  const auto ws = b.read(w);
  for (std::size_t r = 0; r < 32; ++r)
    for (std::size_t i = 0; i < 30; ++i) {
      const auto from = static_cast<std::size_t>(ss[(r / 16 * 16 + i % 16) * 2 + i / 16]);
      for (std::size_t e = 0; e < 2; ++e) EXPECT_EQ(ws[r * 60 + i * 2 + e], xs[r * 20 + from + e]);
    }
}

TEST(CorePartitions, ShuffleReduceAndBroadcast) {
  Bench b;
  const View x = b.add(plain(DType::f32, 64, 5)), mask = b.add(plain(DType::i32, 1, 32));
  const View z = b.add(plain(DType::f32, 64, 5)), one = b.add(plain(DType::f32, 1, 5));
  b.set("nc_stream_shuffle", Engine::vector, {z}, {x, mask});
  const auto xs = b.fill(x), before = b.fill(z);
  std::vector<double> m(32);
  for (std::size_t i = 0; i < 32; ++i) m[i] = i == 7 ? 255 : static_cast<double>((i * 5 + 3) % 32);
  b.write(mask, m);
  b.run();
  auto zs = b.read(z);
  for (std::size_t r = 0; r < 64; ++r)
    for (std::size_t c = 0; c < 5; ++c)
      EXPECT_EQ(zs[r * 5 + c],
                r % 32 == 7 ? before[r * 5 + c] : xs[(r / 32 * 32 + static_cast<std::size_t>(m[r % 32])) * 5 + c]);
  b.set("tensor_partition_reduce", Engine::gpsimd, {one}, {x}, {with(AluOp::average)});
  b.run();
  const auto os = b.read(one);
  for (std::size_t c = 0; c < 5; ++c) {
    double sum = 0;
    for (std::size_t r = 0; r < 64; ++r) sum += xs[r * 5 + c] / 64;
    EXPECT_NEAR(os[c], sum, 1e-6);
  }
  b.set("partition_broadcast", Engine::gpsimd, {z}, {one});
  b.run();
  zs = b.read(z);
  for (std::size_t i = 0; i < zs.size(); ++i) EXPECT_EQ(zs[i], os[i % 5]);
}

TEST(CoreSelect, ByPredicateRangeAndPattern) {
  Bench b;
  const View x = b.add(plain(DType::f32, 4, 30)), yes = b.add(plain(DType::u8, 4, 30));
  const View other = b.add(plain(DType::f32, 4, 1)), bound = b.add(plain(DType::f32, 4, 1));
  const View z = b.add(plain(DType::f32, 4, 30)), most = b.add(plain(DType::f32, 4, 1));
  b.set("select_reduce", Engine::vector, {z, most}, {yes, x, other}, {with(Key::reverse, 1)});
  const auto xs = b.fill(x), ys = b.fill(yes, 2), os = b.fill(other), bs = b.fill(bound, 20);
  b.run();
  auto zs = b.read(z), ms = b.read(most);
  for (std::size_t r = 0; r < 4; ++r) {
    double largest = -INFINITY;
    for (std::size_t i = r * 30; i < (r + 1) * 30; ++i) {
      EXPECT_EQ(zs[i], ys[i] == 0 ? xs[i] : os[r]);
      largest = std::max(largest, zs[i]);
    }
    EXPECT_EQ(ms[r], largest);
  }
  const auto kept = b.fill(z);
  b.set("tensor_copy_predicated", Engine::vector, {z}, {yes, x});
  b.run();
  zs = b.read(z);
  for (std::size_t i = 0; i < zs.size(); ++i) EXPECT_EQ(zs[i], ys[i] != 0 ? xs[i] : kept[i]);
  b.set("range_select", Engine::vector, {z, most}, {x, other, bound},
        {with(AluOp::is_ge, Key::compare), with(AluOp::is_lt, Key::compare1), with(Key::start, 2)});
  b.run();
  zs = b.read(z), ms = b.read(most);
  for (std::size_t i = 0; i < zs.size(); ++i) {
    const double place = 2 + static_cast<double>(i % 30);
    const bool in = place >= os[i / 30] && place < bs[i / 30];
    EXPECT_EQ(zs[i], in ? xs[i] : -static_cast<double>(std::numeric_limits<float>::max()));
  }
  b.set("affine_select", Engine::gpsimd, {z}, {x},  // a causal mask: column at most row + 3
        {with(Key::value, -9), with(AluOp::is_ge, Key::compare), with(Key::start, 3), with(Key::rows, 1),
         with(Key::step, -1)});
  b.run();
  zs = b.read(z);
  for (std::size_t i = 0; i < zs.size(); ++i) EXPECT_EQ(zs[i], i % 30 <= i / 30 + 3 ? xs[i] : -9);
}

TEST(CoreDynamicCopy, MovesByWhatMemorySays) {
  Bench b;
  const View x = b.add(plain(DType::bf16, 3, 40)), z = b.add(plain(DType::bf16, 3, 40));
  const View offset = b.add(plain(DType::i32, 1, 1));
  View from = x, to = z;
  from.dim[0].count = to.dim[0].count = 8;
  const auto xs = b.fill(x);
  b.write(offset, {3});
  b.set("tensor_copy_dynamic_src", Engine::vector, {to}, {from, offset}, {with(Key::scale, 8)});
  b.run();
  b.set("tensor_copy_dynamic_dst", Engine::gpsimd, {to}, {from, offset}, {with(Key::scale, 10)});
  b.run();
  const auto zs = b.read(z);
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(zs[r * 40 + i], xs[r * 40 + 24 + i]);
      EXPECT_EQ(zs[r * 40 + 30 + i], xs[r * 40 + i]);
    }
  b.write(offset, {4});
  EXPECT_THROW(b.run(), std::invalid_argument);
  b.write(offset, {0});
  b.program.attributes[0].value = std::numeric_limits<double>::infinity();
  EXPECT_THROW(b.run(), std::invalid_argument) << "0 times that is no place";
  b.write(offset, {-1});  // of a reversed row the last element is the first in memory
  b.program.views[0].offset = 14;
  b.program.views[0].dim[0].stride = -1;
  b.program.attributes[0].value = 4;
  EXPECT_THROW(b.run(), std::invalid_argument);
}

TEST(CoreRegisters, LoadAndStore) {
  Bench b;
  const View x = b.add(plain(DType::i32, 1, 1)), z = b.add(plain(DType::i32, 1, 1, MemorySpace::hbm));
  b.write(x, {-77});
  b.set("register_load", Engine::sync, {}, {x}, {with(Key::target, 5)});
  b.run();
  EXPECT_EQ(b.registers[5], -77);
  b.set("register_store", Engine::sync, {z}, {}, {with(Key::source, 5)});
  b.run();
  EXPECT_EQ(b.read(z), std::vector<double>{-77});
}

}  // namespace
}  // namespace trellis::sim::core
