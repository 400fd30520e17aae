#include "sim/core/arithmetic/alu_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/layers/rows.h"
#include "text/refuse.h"

namespace trellis::sim::core {
namespace {

template <class T, class Op>
void loops(const T* __restrict a, bool a_spread, const T* __restrict b, bool b_spread, T* __restrict out, std::size_t n,
           Op op) {
  if (a_spread && b_spread)
    std::fill_n(out, n, static_cast<T>(op(*a, *b)));
  else if (b_spread)
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(op(a[i], *b));
  else if (a_spread)
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(op(*a, b[i]));
  else
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(op(a[i], b[i]));
}

[[noreturn]] void no_meaning(AluOp op) { text::refuse("{} has no meaning here", name(op)); }

// The remainder with the divisor's sign.
float modulo(float x, float y) {
  const float r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

// Calls then() with a comparison or logical op as a function of two floats that gives 1 or 0.
template <class Then>
void with_truth(AluOp op, Then then) {
  const auto truth = [](bool b) { return b ? 1.0F : 0.0F; };
  switch (op) {
    case AluOp::is_equal:
      return then([=](float x, float y) { return truth(x == y); });
    case AluOp::not_equal:
      return then([=](float x, float y) { return truth(x != y); });
    case AluOp::is_gt:
      return then([=](float x, float y) { return truth(x > y); });
    case AluOp::is_ge:
      return then([=](float x, float y) { return truth(x >= y); });
    case AluOp::is_lt:
      return then([=](float x, float y) { return truth(x < y); });
    case AluOp::is_le:
      return then([=](float x, float y) { return truth(x <= y); });
    case AluOp::logical_and:
      return then([=](float x, float y) { return truth(x != 0 && y != 0); });
    case AluOp::logical_or:
      return then([=](float x, float y) { return truth(x != 0 || y != 0); });
    case AluOp::logical_xor:
      return then([=](float x, float y) { return truth((x != 0) != (y != 0)); });
    case AluOp::logical_not:
      return then([=](float x, float) { return truth(x == 0); });
    default:
      no_meaning(op);
  }
}

// Calls then() with the op as a function of two floats.
template <class Then>
void with_function(AluOp op, Then then) {
  switch (op) {
    case AluOp::add:
      return then([](float x, float y) { return x + y; });
    case AluOp::subtract:
      return then([](float x, float y) { return x - y; });
    case AluOp::multiply:
      return then([](float x, float y) { return x * y; });
    case AluOp::divide:
      return then([](float x, float y) { return x / y; });
    case AluOp::max:
      return then([](float x, float y) { return y > x ? y : x; });
    case AluOp::min:
      return then([](float x, float y) { return y < x ? y : x; });
    case AluOp::pow:
      return then([](float x, float y) { return std::pow(x, y); });
    case AluOp::mod:
      return then(modulo);
    case AluOp::rsqrt:
      return then([](float x, float) { return 1 / std::sqrt(x); });
    case AluOp::abs_max:
      return then([](float x, float y) { return std::fabs(x) > std::fabs(y) ? std::fabs(x) : std::fabs(y); });
    case AluOp::abs_min:
      return then([](float x, float y) { return std::fabs(x) < std::fabs(y) ? std::fabs(x) : std::fabs(y); });
    case AluOp::average:
      return then([](float x, float y) { return (x + y) * 0.5F; });
    case AluOp::abs:
      return then([](float x, float) { return std::fabs(x); });
    case AluOp::square:
      return then([](float x, float) { return x * x; });
    case AluOp::relu:
      return then([](float x, float) { return x > 0 ? x : 0.0F; });
    case AluOp::reciprocal:
      return then([](float x, float) { return 1 / x; });
    case AluOp::bypass:
      return then([](float x, float) { return x; });
    default:
      return with_truth(op, then);
  }
}

// Sign-extends the lowest `bits` bits of a.
std::int64_t with_sign(std::uint64_t a, int bits) { return static_cast<std::int64_t>(a << (64 - bits)) >> (64 - bits); }

}  // namespace

void arithmetic(AluOp op, FloatRowOperand a, FloatRowOperand b, float* out, std::size_t n) {
  if (is_unary(op)) b = {a.at, true};
  with_function(op, [&](auto f) { loops(a.at, a.spread, b.at, b.spread, out, n, f); });
}

float reduced(AluOp op, const float* a, std::size_t n, SumOrder order) {
  if (op == AluOp::subtract || order == SumOrder::sequential) {
    const std::size_t first = op == AluOp::subtract && n > 0 ? 1 : 0;
    float state = first == 1 ? a[0] : neutral(op);
    with_function(op, [&](auto f) {
      for (std::size_t i = first; i < n; ++i) state = f(state, a[i]);
    });
    return state;
  }
  constexpr std::size_t width = kernels::row_sums;
  std::array<float, width> states;
  states.fill(neutral(op));
  with_function(op, [&](auto f) {
    std::size_t i = 0;
    for (; i + width <= n; i += width)
      for (std::size_t j = 0; j < width; ++j) states[j] = f(states[j], a[i + j]);
    for (std::size_t j = 0; i + j < n; ++j) states[j] = f(states[j], a[i + j]);
    for (std::size_t half = width / 2; half > 0; half /= 2)
      for (std::size_t j = 0; j < half; ++j) states[j] = f(states[j], states[j + half]);
  });
  return states[0];
}

float neutral(AluOp op) {
  switch (op) {
    case AluOp::multiply:
    case AluOp::logical_and:
      return 1;
    case AluOp::max:
      return -std::numeric_limits<float>::infinity();
    case AluOp::min:
    case AluOp::abs_min:
      return std::numeric_limits<float>::infinity();
    default:
      return 0;
  }
}

void bitwise(AluOp op, BitRowOperand a, BitRowOperand b, int bits, std::uint64_t* out, std::size_t n) {
  using Word = std::uint64_t;
  const Word mask = bits == 64 ? ~Word{0} : (Word{1} << bits) - 1;
  const auto run = [&](auto f) {
    loops(a.at, a.spread, b.at, b.spread, out, n, [=](Word x, Word y) { return f(x, y) & mask; });
  };
  if (is_unary(op)) b = {a.at, true};
  switch (op) {
    case AluOp::bitwise_and:
      return run([](Word x, Word y) { return x & y; });
    case AluOp::bitwise_or:
      return run([](Word x, Word y) { return x | y; });
    case AluOp::bitwise_xor:
      return run([](Word x, Word y) { return x ^ y; });
    case AluOp::bitwise_not:
      return run([](Word x, Word) { return ~x; });
    case AluOp::shift_left:
      return run([=](Word x, Word y) { return y >= static_cast<Word>(bits) ? 0 : x << y; });
    case AluOp::shift_right:
      return run([=](Word x, Word y) { return y >= static_cast<Word>(bits) ? 0 : x >> y; });
    case AluOp::arith_shift_right:
      return run([=](Word x, Word y) {
        return static_cast<Word>(with_sign(x, bits) >> std::min(y, static_cast<Word>(bits - 1)));
      });
    case AluOp::bypass:
      return run([](Word x, Word) { return x; });
    default:
      no_meaning(op);
  }
}

}  // namespace trellis::sim::core
