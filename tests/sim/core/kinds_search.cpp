// Instructions that find the largest elements of rows, places and segments; and random numbers.
#include <algorithm>
#include <cmath>

#include "tests/sim/core/bench.h"

namespace trellis::sim::core {
namespace {

TEST(CoreTop8, LargestPlacesAndReplacement) {
  Bench b;
  const View x = b.add(holes(DType::f32, 5, 3, 11)), most = b.add(plain(DType::f32, 5, 8));
  const View place = b.add(plain(DType::u16, 5, 8)), z = b.add(plain(DType::f32, 5, 33));
  b.set("max8", Engine::vector, {most}, {x});
  const auto xs = b.fill(x);
  b.run();
  const auto ms = b.read(most);
  b.set("nc_find_index8", Engine::vector, {place}, {x, most});
  b.run();
  const auto ps = b.read(place);
  b.set("nc_match_replace8", Engine::vector, {z}, {x, most}, {with(Key::value, -100)});
  b.run();
  const auto zs = b.read(z);
  for (std::size_t r = 0; r < 5; ++r) {
    std::vector<double> row(&xs[r * 33], &xs[r * 33] + 33);
    std::ranges::sort(row, std::greater<>());
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(ms[r * 8 + i], row[i]);
      EXPECT_EQ(xs[r * 33 + static_cast<std::size_t>(ps[r * 8 + i])], row[i]);
    }
    for (std::size_t i = r * 33; i < (r + 1) * 33; ++i) EXPECT_EQ(zs[i], xs[i] >= row[7] ? -100 : xs[i]);
  }
}

// Equal values are matched with different ones of the equal elements: from the first on by nc_find_index8, from the
// last on by nc_match_replace8.
TEST(CoreTop8, EqualValuesTakeTheirTurns) {
  Bench b;
  const View x = b.add(plain(DType::f32, 1, 11)), values = b.add(plain(DType::f32, 1, 8));
  const View place = b.add(plain(DType::u32, 1, 8)), z = b.add(plain(DType::f32, 1, 11));
  b.write(x, {1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8});
  b.write(values, {3, 8, 8, 8, 8, 8, 8, 8});
  b.set("nc_match_replace8", Engine::vector, {z, place}, {x, values}, {with(Key::value, 0)});
  b.run();
  EXPECT_EQ(b.read(place), (std::vector<double>{2, 10, 9, 8, 7, 6, 5, 4}));
  EXPECT_EQ(b.read(z), (std::vector<double>{1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0}));
  b.write(values, {8, 8, 5, 1, 8, 8, 8, 2});
  b.set("nc_find_index8", Engine::vector, {place}, {x, values});
  b.run();
  EXPECT_EQ(b.read(place), (std::vector<double>{4, 5, 4294967295.0, 0, 6, 7, 8, 1}));
}

TEST(CoreTopK, OfSixteenPartitions) {
  Bench b;
  const View x = b.add(plain(DType::bf16, 32, 3)), values = b.add(plain(DType::bf16, 32, 5));
  const View places = b.add(plain(DType::u32, 32, 5));
  b.set("topk", Engine::gpsimd, {values, places}, {x}, {with(Key::count, 42)});
  const auto xs = b.fill(x);
  b.run();
  const auto vs = b.read(values), ps = b.read(places);
  for (std::size_t r = 0; r < 32; ++r) {
    std::vector<double> all;
    for (std::size_t i = 0; i < 42; ++i) all.push_back(xs[(r / 16 * 16 + i % 16) * 3 + i / 16]);
    for (std::size_t k = 0; k < 5; ++k) EXPECT_EQ(vs[r * 5 + k], all[static_cast<std::size_t>(ps[r * 5 + k])]);
    std::ranges::sort(all);
    for (std::size_t k = 0; k < 5; ++k) EXPECT_EQ(vs[r * 5 + k], all[37 + k]);
  }
}

TEST(CoreNonzero, IsTheDocumentedExample) {
  Bench b;
  const View x = b.add(plain(DType::f32, 1, 8)), z = b.add(plain(DType::i32, 1, 9));
  b.write(x, {0, 1, 1, 0, 0, 1, 0, 0});
  b.set("nonzero_with_count", Engine::gpsimd, {z}, {x}, {with(Key::start, 16)});
  b.run();
  EXPECT_EQ(b.read(z), (std::vector<double>{17, 18, 21, -1, -1, -1, -1, -1, 3}));
}

TEST(CoreSequenceBounds, OfSegmentsAndPadding) {
  Bench b;
  const View x = b.add(plain(DType::i32, 1, 7)), z = b.add(plain(DType::i32, 1, 14));
  b.write(x, {4, 4, 4, 2, 2, 0, 0});
  b.set("sequence_bounds", Engine::gpsimd, {z}, {x});
  b.run();
  EXPECT_EQ(b.read(z), (std::vector<double>{0, 0, 0, 3, 3, 7, 7, 3, 3, 3, 5, 5, -1, -1}));
}

TEST(CoreRandom, StatesAreSavedAndRestored) {
  Bench b("trn3");
  const View state = b.add(plain(DType::u32, 128, 24)), z = b.add(plain(DType::u32, 128, 20));
  b.set("rand_get_state", Engine::vector, {state}, {});
  b.run();
  b.set("rng", Engine::vector, {z}, {});
  b.run();
  const auto first = b.read(z);
  b.run();
  EXPECT_NE(b.read(z), first);
  b.set("rand_set_state", Engine::vector, {}, {state});
  b.run();
  b.set("rng", Engine::vector, {z}, {});
  b.run();
  EXPECT_EQ(b.read(z), first);
  auto sorted = first;
  std::ranges::sort(sorted);
  EXPECT_LT(std::ranges::unique(sorted).size(), 3U);  // hardly any of 2,560 random 32-bit words are equal
}

TEST(CoreRandom, SeedsRepeat) {
  Bench b;
  const View seed = b.add(plain(DType::u32, 1, 1)), z = b.add(plain(DType::i32, 8, 20));
  std::vector<double> before;
  for (const double s : {1.0, 2.0, 1.0}) {
    b.write(seed, {s});
    b.set("set_rng_seed", Engine::vector, {}, {seed});
    b.run();
    b.set("rng", Engine::vector, {z}, {});
    b.run();
    if (s == 1 && !before.empty())
      EXPECT_EQ(b.read(z), before);
    else if (s == 2)
      EXPECT_NE(b.read(z), before);
    else
      before = b.read(z);
  }
}

TEST(CoreRandom, UniformAndDropout) {
  Bench b("trn3");
  const View z = b.add(plain(DType::f32, 128, 400)), rate = b.add(plain(DType::f32, 128, 1));
  b.set("rand2", Engine::vector, {z}, {}, {with(Key::value, -1), with(Key::value1, 3)});
  b.run();
  const auto zs = b.read(z);
  double sum = 0;
  for (const double v : zs) {
    EXPECT_TRUE(v >= -1 && v <= 3);
    sum += v;
  }
  EXPECT_NEAR(sum / 51200, 1, 6 * 4 / std::sqrt(12 * 51200));  // six deviations
  b.write(rate, std::vector<double>(128, 0.25));
  b.set("dropout", Engine::vector, {z}, {z, rate});
  b.run();
  const auto kept = b.read(z);
  double dropped = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_TRUE(kept[i] == zs[i] || kept[i] == 0);
    dropped += kept[i] == 0;
  }
  EXPECT_NEAR(dropped / 51200, 0.25, 6 * std::sqrt(0.25 * 0.75 / 51200));
}

}  // namespace
}  // namespace trellis::sim::core
