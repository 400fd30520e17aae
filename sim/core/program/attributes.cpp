#include "sim/core/program/attributes.h"

#include <cstddef>

namespace trellis::sim::core {
namespace {

constexpr std::string_view key_names[] = {
    "op",        "op1",    "func",  "scale",  "bias",  "value",  "value1",     "reverse",  "reverse1", "accumulate",
    "transpose", "start",  "step",  "rows",   "cmp",   "mode",   "seed",       "tensor",   "first",    "rate",
    "count",     "to",     "from",  "sem",    "axis",  "round",  "peer",       "eps",      "queue",    "pitch",
    "index",     "stride", "step1", "step2",  "step3", "reduce", "reduce_cmd", "tile_row", "tile_col", "tile_rows",
    "tile_cols", "oob",    "ns",    "negate", "cmp1",  "begin",  "end"};
static_assert(std::size(key_names) == key_count);

constexpr std::string_view alu_names[] = {"add",
                                          "subtract",
                                          "multiply",
                                          "divide",
                                          "max",
                                          "min",
                                          "pow",
                                          "mod",
                                          "rsqrt",
                                          "abs_max",
                                          "abs_min",
                                          "average",
                                          "is_equal",
                                          "not_equal",
                                          "is_gt",
                                          "is_ge",
                                          "is_lt",
                                          "is_le",
                                          "logical_and",
                                          "logical_or",
                                          "logical_xor",
                                          "logical_not",
                                          "bitwise_and",
                                          "bitwise_or",
                                          "bitwise_xor",
                                          "bitwise_not",
                                          "shift_left",
                                          "shift_right",
                                          "arith_shift_right",
                                          "abs",
                                          "square",
                                          "relu",
                                          "reciprocal",
                                          "bypass"};
static_assert(std::size(alu_names) == static_cast<std::size_t>(AluOp::bypass) + 1);

constexpr std::string_view function_names[] = {"copy",
                                               "identity",
                                               "square",
                                               "sqrt",
                                               "rsqrt",
                                               "exp",
                                               "log",
                                               "reciprocal",
                                               "relu",
                                               "lrelu",
                                               "prelu",
                                               "sigmoid",
                                               "tanh",
                                               "softplus",
                                               "silu",
                                               "silu_dx",
                                               "gelu",
                                               "gelu_dx",
                                               "gelu_apprx_tanh",
                                               "gelu_apprx_sigmoid",
                                               "gelu_apprx_sigmoid_dx",
                                               "mish",
                                               "erf",
                                               "erf_dx",
                                               "sin",
                                               "arctan",
                                               "abs",
                                               "sign",
                                               "is_finite",
                                               "tanh_dx",
                                               "sigmoid_dx",
                                               "abs_reciprocal_sqrt",
                                               "ln1p"};
static_assert(std::size(function_names) == static_cast<std::size_t>(ActivationFunction::ln1p) + 1);

constexpr std::string_view rounding_names[] = {"nearest", "truncate", "stochastic"};  // kernels::Rounding

constexpr std::string_view mode_names[] = {"none", "double_row"};
constexpr std::string_view command_names[] = {"idle", "reset", "reduce", "reset_reduce", "load_reduce"};
constexpr std::string_view bounds_names[] = {"error", "skip"};

}  // namespace

std::string_view name(Key k) { return key_names[static_cast<std::size_t>(k)]; }
std::string_view name(AluOp op) { return alu_names[static_cast<std::size_t>(op)]; }
std::string_view name(ActivationFunction f) { return function_names[static_cast<std::size_t>(f)]; }

std::span<const std::string_view> words_of(Key key) {
  switch (key) {
    case Key::op:
    case Key::op1:
    case Key::reduce:
    case Key::compare:
    case Key::compare1:
      return alu_names;
    case Key::func:
      return function_names;
    case Key::rounding:
      return rounding_names;
    case Key::mode:
      return mode_names;
    case Key::reduce_command:
      return command_names;
    case Key::bounds:
      return bounds_names;
    default:
      return {};
  }
}

}  // namespace trellis::sim::core
