#include <cmath>

#include "tests/sim/core/bench.h"

namespace trellis::sim::core {
namespace {

float f32(double v) { return static_cast<float>(v); }

// An operation by its definition, in f32.
float alu(AluOp op, float x, float y) {
  switch (op) {
    case AluOp::add:
      return x + y;
    case AluOp::subtract:
      return x - y;
    case AluOp::multiply:
      return x * y;
    case AluOp::divide:
      return x / y;
    case AluOp::max:
      return std::max(x, y);
    case AluOp::min:
      return std::min(x, y);
    case AluOp::pow:
      return std::pow(x, y);
    case AluOp::mod:
      return std::fmod(std::fmod(x, y) + y, y);
    case AluOp::rsqrt:
      return 1 / std::sqrt(x);
    case AluOp::abs_max:
      return std::max(std::fabs(x), std::fabs(y));
    case AluOp::abs_min:
      return std::min(std::fabs(x), std::fabs(y));
    case AluOp::is_equal:
      return x == y;
    case AluOp::not_equal:
      return x != y;
    case AluOp::is_gt:
      return x > y;
    case AluOp::is_ge:
      return x >= y;
    case AluOp::is_lt:
      return x < y;
    case AluOp::is_le:
      return x <= y;
    case AluOp::logical_and:
      return x != 0 && y != 0;
    case AluOp::logical_or:
      return x != 0 || y != 0;
    case AluOp::logical_xor:
      return (x != 0) != (y != 0);
    case AluOp::logical_not:
      return x == 0;
    case AluOp::abs:
      return std::fabs(x);
    case AluOp::square:
      return x * x;
    case AluOp::relu:
      return std::max(x, 0.0F);
    case AluOp::reciprocal:
      return 1 / x;
    default:
      return x;
  }
}

constexpr AluOp binary[] = {AluOp::add,        AluOp::subtract,   AluOp::multiply, AluOp::divide,   AluOp::max,
                            AluOp::min,        AluOp::abs_max,    AluOp::abs_min,  AluOp::is_equal, AluOp::not_equal,
                            AluOp::is_gt,      AluOp::is_ge,      AluOp::is_lt,    AluOp::is_le,    AluOp::logical_and,
                            AluOp::logical_or, AluOp::logical_xor};
constexpr AluOp unary[] = {AluOp::rsqrt, AluOp::logical_not, AluOp::abs,   AluOp::square,
                           AluOp::relu,  AluOp::reciprocal,  AluOp::bypass};

void expect_same(double have, double want) {
  if (std::isnan(want))
    EXPECT_TRUE(std::isnan(have)) << have;
  else
    EXPECT_EQ(have, want);
}

TEST(CoreTensorTensor, IsTheOperationInF32) {
  for (const AluOp op : binary)
    for (const std::int32_t columns : {1, 7, 33}) {
      Bench b;
      const View x = b.add(holes(DType::bf16, 5, 3, columns)), y = b.add(plain(DType::f32, 5, 3 * columns));
      const View z = b.add(holes(DType::f16, 5, columns, 3));
      b.set("tensor_tensor", Engine::vector, {z}, {x, y}, {with(op)});
      const auto xs = b.fill(x), ys = b.fill(y);
      b.run();
      const auto zs = b.read(z);
      for (std::size_t i = 0; i < zs.size(); ++i)
        expect_same(zs[i], stored(DType::f16, alu(op, f32(xs[i]), f32(ys[i]))));
    }
}

TEST(CoreTensorTensor, SpreadsAColumn) {
  Bench b;
  const View x = b.add(plain(DType::f32, 4, 9)), y = b.add(plain(DType::f32, 4, 1)), z = b.add(plain(DType::f32, 4, 9));
  b.set("tensor_tensor", Engine::vector, {z}, {x, y}, {with(AluOp::subtract)});
  const auto xs = b.fill(x), ys = b.fill(y);
  b.run();
  const auto zs = b.read(z);
  for (std::size_t i = 0; i < zs.size(); ++i) EXPECT_EQ(zs[i], f32(xs[i]) - f32(ys[i / 9]));
}

TEST(CoreTensorTensor, WorksOnBitsOfIntegers) {
  const auto expected = [](AluOp op, std::uint32_t x, std::uint32_t y) -> std::uint32_t {
    switch (op) {
      case AluOp::bitwise_and:
        return x & y;
      case AluOp::bitwise_or:
        return x | y;
      case AluOp::bitwise_xor:
        return x ^ y;
      case AluOp::shift_left:
        return x << y;
      default:
        return x >> y;
    }
  };
  for (const AluOp op :
       {AluOp::bitwise_and, AluOp::bitwise_or, AluOp::bitwise_xor, AluOp::shift_left, AluOp::shift_right}) {
    Bench b;
    const View x = b.add(plain(DType::u32, 3, 11)), y = b.add(plain(DType::u32, 3, 11));
    const View z = b.add(plain(DType::u32, 3, 11));
    b.set("tensor_tensor", Engine::vector, {z}, {x, y}, {with(op)});
    const auto xs = b.fill(x, 4294967295.0), ys = b.fill(y, 31);
    b.run();
    const auto zs = b.read(z);
    for (std::size_t i = 0; i < zs.size(); ++i)
      EXPECT_EQ(zs[i], expected(op, static_cast<std::uint32_t>(xs[i]), static_cast<std::uint32_t>(ys[i])));
  }
}

TEST(CoreTensorScalar, TakesNumbersAndColumnsInTurn) {
  for (const AluOp op : binary)
    for (const bool reverse : {false, true}) {
      Bench b;
      const View x = b.add(plain(DType::bf16, 6, 13)), column = b.add(plain(DType::f32, 6, 1));
      const View z = b.add(holes(DType::f32, 6, 1, 13));
      b.set("tensor_scalar", Engine::vector, {z}, {x, column},
            {with(op), with(Key::value, 0.75), with(Key::reverse, reverse), with(AluOp::subtract, Key::op1)});
      const auto xs = b.fill(x), cs = b.fill(column);
      b.run();
      const auto zs = b.read(z);
      for (std::size_t i = 0; i < zs.size(); ++i) {
        const float first = reverse ? alu(op, 0.75F, f32(xs[i])) : alu(op, f32(xs[i]), 0.75F);
        expect_same(zs[i], first - f32(cs[i / 13]));
      }
    }
}

TEST(CoreTensorScalar, ShiftsAndMasksEveryBit) {
  Bench b;
  const View x = b.add(plain(DType::u32, 3, 10)), c = b.add(plain(DType::u32, 3, 1)),
             z = b.add(plain(DType::u32, 3, 10));
  b.set("tensor_scalar", Engine::vector, {z}, {x, c},
        {with(AluOp::shift_right), with(Key::value, 3), with(AluOp::bitwise_xor, Key::op1)});
  const auto xs = b.fill(x, 4294967295.0), cs = b.fill(c, 4294967295.0);
  b.run();
  const auto zs = b.read(z);
  for (std::size_t i = 0; i < zs.size(); ++i)
    EXPECT_EQ(zs[i], (static_cast<std::uint32_t>(xs[i]) >> 3) ^ static_cast<std::uint32_t>(cs[i / 10]));
}

TEST(CoreTensorScalar, KnowsOperationsOfOneOperand) {
  for (const AluOp op : unary) {
    Bench b;
    const View x = b.add(plain(DType::f32, 2, 21)), z = b.add(plain(DType::f32, 2, 21));
    b.set("tensor_scalar", Engine::gpsimd, {z}, {x}, {with(op)});
    const auto xs = b.fill(x);
    b.run();
    const auto zs = b.read(z);
    for (std::size_t i = 0; i < zs.size(); ++i) expect_same(zs[i], alu(op, f32(xs[i]), 0));
  }
}

TEST(CoreTensorScalar, PowersAndRemainders) {
  for (const AluOp op : {AluOp::pow, AluOp::mod}) {
    Bench b;
    const View x = b.add(plain(DType::f32, 2, 40)), z = b.add(plain(DType::f32, 2, 40));
    b.set("tensor_scalar", Engine::vector, {z}, {x}, {with(op), with(Key::value, 3)});
    const auto xs = b.fill(x);
    b.run();
    const auto zs = b.read(z);
    for (std::size_t i = 0; i < zs.size(); ++i) EXPECT_NEAR(zs[i], alu(op, f32(xs[i]), 3), 1e-6);
  }
}

TEST(CoreScalarTensorTensor, IsOneStepAfterTheOther) {
  for (const bool column : {false, true}) {
    Bench b;
    const View x = b.add(plain(DType::f32, 3, 17)), y = b.add(plain(DType::f32, 3, 17));
    const View c = b.add(plain(DType::f32, 3, 1)), z = b.add(plain(DType::f32, 3, 17));
    std::vector<View> in = {x, y};
    std::vector<Attribute> keys = {with(AluOp::multiply), with(AluOp::subtract, Key::op1), with(Key::reverse1, 1)};
    if (column)
      in.push_back(c);
    else
      keys.push_back(with(Key::value, 0.1));
    b.set("scalar_tensor_tensor", Engine::vector, {z}, in, keys);
    const auto xs = b.fill(x), ys = b.fill(y), cs = b.fill(c);
    b.run();
    const auto zs = b.read(z);
    for (std::size_t i = 0; i < zs.size(); ++i) {
      const float product = f32(xs[i]) * (column ? f32(cs[i / 17]) : 0.1F);
      EXPECT_EQ(zs[i], f32(ys[i]) - product);
    }
  }
}

// An instruction that rounds a part of a matrix stochastically gives the bits that the cast kernel gives for the whole.
TEST(CoreRounding, StochasticIsThatOfTheKernel) {
  constexpr std::int32_t rows = 6, columns = 50;
  constexpr std::size_t first = 1000, pitch = 300;
  for (const DType type : {DType::bf16, DType::f16}) {
    Bench b;
    const View x = b.add(plain(DType::f32, rows, columns)), z = b.add(plain(type, rows, columns));
    b.set("tensor_copy", Engine::vector, {z}, {x},
          {{Key::rounding, static_cast<double>(kernels::Rounding::stochastic)},
           with(Key::seed, 5),
           with(Key::step, 9),
           with(Key::tensor, 3),
           with(Key::first, first - 40),
           with(Key::pitch, pitch),
           with(Key::index, 2),
           with(Key::stride, 10)});
    b.registers[2] = 4;
    const auto xs = b.fill(x);
    b.run();
    std::vector<float> all(first + pitch * rows);
    for (std::size_t i = 0; i < xs.size(); ++i) all[first + i / columns * pitch + i % columns] = f32(xs[i]);
    std::vector<std::uint16_t> cast(all.size());
    kernels::cast(DType::f32, all.data(), type, cast.data(), all.size(),
                  {.rounding = kernels::Rounding::stochastic, .random = {.seed = 5, .step = 9, .tensor = 3}});
    const auto zs = b.read(z);
    for (std::size_t i = 0; i < zs.size(); ++i)
      EXPECT_EQ(zs[i], kernels::load(type, &cast[first + i / columns * pitch + i % columns])) << i;
  }
}

TEST(CoreTensorCopy, KeepsBitsOfOneType) {
  Bench b;
  const View x = b.add(holes(DType::u32, 4, 3, 5)), z = b.add(plain(DType::u32, 4, 15));
  b.set("tensor_copy", Engine::gpsimd, {z}, {x});
  const auto xs = b.fill(x, 4294967295.0);
  b.run();
  EXPECT_EQ(b.read(z), xs);
}

TEST(CoreMemset, FillsWhatTheViewTouchesAndNoMore) {
  Bench b;
  View z = b.add(holes(DType::bf16, 3, 2, 4));
  View whole = b.add(plain(DType::bf16, 3, 1));
  whole = z;
  whole.dims = 1;
  whole.offset = 0;
  whole.dim[0] = {static_cast<std::int32_t>(b.program.buffers[0].bytes / 2), 1};
  b.set("memset", Engine::vector, {z}, {}, {with(Key::value, 2.5)});
  b.run();
  for (const double v : b.read(z)) EXPECT_EQ(v, 2.5);
  double sum = 0;
  for (const double v : b.read(whole)) sum += v;
  EXPECT_EQ(sum, 2.5 * 3 * 8);
}

TEST(CoreIota, CountsByDimension) {
  Bench b;
  const View z = b.add({DType::i32, 3, {{2, 12}, {4, 1}}});
  b.set("iota", Engine::gpsimd, {z}, {},
        {with(Key::start, 100), with(Key::rows, 1000), with(Key::step, 2), with(Key::step1, -7)});
  b.run();
  const auto zs = b.read(z);
  for (int r = 0; r < 3; ++r)
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(zs[static_cast<std::size_t>(r * 8 + i)], 100 + 1000 * r - 7 * (i / 4) + 2 * (i % 4));
}

}  // namespace
}  // namespace trellis::sim::core
