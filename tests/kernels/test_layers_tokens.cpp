// Kernels that work on tokens: rotary embedding, embedding lookup and its gradient.
#include <algorithm>
#include <stdexcept>

#include "kernels/layers/embedding.h"
#include "kernels/layers/rotary.h"
#include "tests/kernels/layers.h"

namespace trellis::kernels {
namespace {

struct Angles {
  std::vector<float> cosines, sines;
  std::size_t positions;

  Angles(std::size_t count, std::size_t turned, std::size_t first = 0)
      : cosines(count * turned / 2), sines(cosines), positions(count) {
    rotary_table(cosines.data(), sines.data(), first, count, turned);
  }
  RotaryTable table() const { return {cosines.data(), sines.data(), positions}; }
};

constexpr RotaryShape shape{.rows = 5, .heads = 3, .head_size = 10, .turned = 6, .stride = 37};
constexpr std::size_t elements = 4 * 37 + 30;

TEST(Rotary, TurnsPairsByPositionTimesFrequency) {
  const std::vector<std::int32_t> positions{7, 0, 3, 3, 9};
  const Angles angles(10, 6);
  for (const DType type : layer_types)
    for (const Pairing pairing : {Pairing::neighbours, Pairing::halves})
      for (const bool given : {false, true}) {
        const Array x(type, elements, 1);
        Array y = x;
        rotary(type, x.data(), y.data(), shape, angles.table(),
               {.pairing = pairing, .positions = given ? positions.data() : nullptr, .threads = 2});
        Array wanted = x;
        for (std::size_t row = 0; row < 5; ++row)
          for (std::size_t head = 0; head < 3; ++head)
            for (std::size_t i = 0; i < 3; ++i) {
              const double p = given ? positions[row] : static_cast<double>(row);
              const double angle = p * std::pow(10000.0, -2.0 * static_cast<double>(i) / 6);
              const std::size_t at = row * 37 + head * 10;
              const bool halves = pairing == Pairing::halves;
              const std::size_t first = at + (halves ? i : 2 * i), second = at + (halves ? i + 3 : 2 * i + 1);
              const double a = x[first], b = x[second], c = std::cos(angle), s = std::sin(angle);
              ASSERT_TRUE(close(y, first, a * c - b * s, 3 * u * (std::fabs(a) + std::fabs(b))));
              ASSERT_TRUE(close(y, second, b * c + a * s, 3 * u * (std::fabs(a) + std::fabs(b))));
              wanted.set(first, y[first]), wanted.set(second, y[second]);
            }
        EXPECT_EQ(y.bytes, wanted.bytes);  // and nothing else changed
      }
}

TEST(Rotary, BackwardIsTheTransposeAndWorksInPlace) {
  const Angles angles(5, 6, 100);
  for (const Pairing pairing : {Pairing::neighbours, Pairing::halves}) {
    const Array x(DType::f32, elements, 1), dy(DType::f32, elements, 2);
    Array y = x, dx = dy, back = dy;
    rotary(DType::f32, y.data(), y.data(), shape, angles.table(), {.pairing = pairing});
    rotary(DType::f32, dy.data(), dx.data(), shape, angles.table(), {.pairing = pairing, .backward = true});
    rotary(DType::f32, back.data(), back.data(), shape, angles.table(), {.pairing = pairing, .backward = true});
    EXPECT_EQ(dx.bytes, back.bytes);
    // The map is linear, so the gradient of dy . y is the one dx with dx . x = dy . y for every x. The gaps, which stay
    // as they are, add the same to both.
    EXPECT_NEAR(product(dy.values(), y.values()), product(dx.values(), x.values()), 1e-5);
    rotary(DType::f32, y.data(), y.data(), shape, angles.table(), {.pairing = pairing, .backward = true});
    for (std::size_t i = 0; i < elements; ++i) ASSERT_NEAR(y[i], x[i], 1e-6);
  }
}

TEST(Rotary, SaysWhatIsWrong) {
  const Angles angles(5, 6);
  std::vector<float> x(elements), y(elements);
  const auto with = [&](RotaryShape s, RotaryOptions o = {}, const void* from = nullptr, DType type = DType::f32) {
    rotary(type, from == nullptr ? x.data() : from, y.data(), s, angles.table(), o);
  };
  EXPECT_NO_THROW(with(shape));
  EXPECT_NO_THROW(with({.rows = 0, .heads = 1, .head_size = 2, .turned = 2, .stride = 2}));
  EXPECT_THROW(with({.rows = 5, .heads = 3, .head_size = 10, .turned = 5, .stride = 37}), std::invalid_argument);
  EXPECT_THROW(with({.rows = 5, .heads = 3, .head_size = 4, .turned = 6, .stride = 37}), std::invalid_argument);
  EXPECT_THROW(with({.rows = 5, .heads = 4, .head_size = 10, .turned = 6, .stride = 37}), std::invalid_argument);
  EXPECT_THROW(with({.rows = 6, .heads = 3, .head_size = 10, .turned = 6, .stride = 37}), std::invalid_argument);
  EXPECT_THROW(with(shape, {.threads = -1}), std::invalid_argument);
  EXPECT_THROW(with(shape, {}, y.data() + 1), std::invalid_argument);
  EXPECT_THROW(with(shape, {}, nullptr, DType::i8), std::invalid_argument);
  for (const std::int32_t bad : {-1, 5}) {
    const std::vector<std::int32_t> positions{0, 1, bad, 2, 3};
    try {
      with(shape, {.positions = positions.data()});
      FAIL();
    } catch (const std::invalid_argument& e) {
      EXPECT_NE(std::string(e.what()).find("of row 2"), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(rotary_table(y.data(), x.data(), 0, 2, 3), std::invalid_argument);
  EXPECT_THROW(rotary_table(y.data(), nullptr, 0, 2, 4), std::invalid_argument);
}

TEST(Embedding, CopiesRows) {
  const std::vector<std::int32_t> ids{3, 0, 3, 6, 5};
  for (const DType type : layer_types) {
    Array table(type, 7 * 5, 1), out(type, 5 * 5);
    table.set(16, NAN);
    embedding({type, 7, 5}, table.data(), ids.data(), out.data(), 5, 3);
    for (std::size_t r = 0; r < 5; ++r)
      EXPECT_TRUE(std::equal(out.bytes.begin() + static_cast<std::ptrdiff_t>(r * 5 * size_of(type)),
                             out.bytes.begin() + static_cast<std::ptrdiff_t>((r + 1) * 5 * size_of(type)),
                             table.bytes.begin() + static_cast<std::ptrdiff_t>(ids[r] * 5 * size_of(type))));
    // Two shards that add up to the whole.
    Array low(type, 25), high(type, 25);
    embedding({type, 4, 5, 0, 7}, table.data(), ids.data(), low.data(), 5);
    embedding({type, 3, 5, 4, 7}, table.bytes.data() + 20 * size_of(type), ids.data(), high.data(), 5);
    for (std::size_t i = 0; i < 25; ++i) {
      EXPECT_EQ((ids[i / 5] < 4 ? high : low)[i], 0);
      EXPECT_TRUE(std::isnan(out[i]) || (ids[i / 5] < 4 ? low : high)[i] == out[i]);
    }
  }
}

TEST(Embedding, GradientAddsRowsInOrder) {
  constexpr std::size_t rows = 400, entries = 9, width = 33;
  std::vector<std::int32_t> ids(rows);
  for (std::size_t r = 0; r < rows; ++r) ids[r] = static_cast<std::int32_t>(r * r % 8) - (r % 50 == 7 ? 2 : 0);
  for (std::int32_t& id : ids) id = id < 0 ? -1 : id;
  for (const DType type : layer_types)
    for (const DType from : layer_types)
      for (const bool accumulate : {false, true}) {
        const Array dy(from, rows * width, 4), before(type, entries * width, 5);
        Array one = before, four = before;
        const EmbeddingGradientOptions options{.dy = from, .accumulate = accumulate};
        embedding_gradient({type, entries, width}, dy.data(), ids.data(), one.data(), rows, options);
        EmbeddingGradientOptions parallel = options;
        parallel.threads = 4;
        embedding_gradient({type, entries, width}, dy.data(), ids.data(), four.data(), rows, parallel);
        EXPECT_EQ(one.bytes, four.bytes);
        for (std::size_t i = 0; i < entries * width; ++i) {
          float sum = accumulate ? static_cast<float>(before[i]) : 0;
          for (std::size_t r = 0; r < rows; ++r)
            if (ids[r] == static_cast<std::int32_t>(i / width)) sum += static_cast<float>(dy[r * width + i % width]);
          ASSERT_EQ(one[i], rounded(type, sum)) << i;
        }
      }
}

TEST(Embedding, SaysWhatIsWrong) {
  std::vector<float> table(10), out(10);
  std::vector<std::int32_t> ids{0, 5};
  try {
    embedding({DType::f32, 5, 2}, table.data(), ids.data(), out.data(), 2);
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(), "embedding: id 5 of row 1 is not below 5");
  }
  ids[1] = -1;
  EXPECT_THROW(embedding({DType::f32, 5, 2}, table.data(), ids.data(), out.data(), 2), std::invalid_argument);
  EXPECT_NO_THROW(embedding_gradient({DType::f32, 5, 2}, out.data(), ids.data(), table.data(), 2));
  ids[1] = -2;
  EXPECT_THROW(embedding_gradient({DType::f32, 5, 2}, out.data(), ids.data(), table.data(), 2), std::invalid_argument);
  ids[1] = 1;
  EXPECT_THROW(embedding({DType::f32, 5, 2, 1}, table.data(), ids.data(), out.data(), 2), std::invalid_argument);
  EXPECT_THROW(embedding({DType::f32, 5, 2, 3, 7}, table.data(), ids.data(), out.data(), 2), std::invalid_argument);
  EXPECT_THROW(embedding({DType::i32, 5, 2}, table.data(), ids.data(), out.data(), 2), std::invalid_argument);
  EXPECT_THROW(embedding({DType::f32, 5, 2}, nullptr, ids.data(), out.data(), 2), std::invalid_argument);
  EXPECT_THROW(embedding({DType::f32, 5, 2}, table.data(), ids.data(), table.data(), 2), std::invalid_argument);
  EXPECT_THROW(embedding({DType::f32, 5, 0}, table.data(), ids.data(), out.data(), 2), std::invalid_argument);
  EXPECT_NO_THROW(embedding({DType::f32, 0, 2}, nullptr, nullptr, nullptr, 0));
}

}  // namespace
}  // namespace trellis::kernels
