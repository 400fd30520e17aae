#include "measure/bench_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include "schedule/collective_traits.h"
#include "text/nearest.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::measure {
namespace {

using kernels::DType;
using kernels::Reduction;
using schedule::Collective;

// The only operation that is not named after a collective: every rank sends to the next one.
constexpr std::string_view shift_word = "sendrecv";

struct TypeWord {
  std::string_view word;
  DType type;
};

// The first word of a type is the one that is printed.
constexpr std::array<TypeWord, 18> nccl_types{{{"int8", DType::i8},
                                               {"char", DType::i8},
                                               {"uint8", DType::u8},
                                               {"int16", DType::i16},
                                               {"uint16", DType::u16},
                                               {"int32", DType::i32},
                                               {"int", DType::i32},
                                               {"uint32", DType::u32},
                                               {"int64", DType::i64},
                                               {"uint64", DType::u64},
                                               {"half", DType::f16},
                                               {"float16", DType::f16},
                                               {"float", DType::f32},
                                               {"float32", DType::f32},
                                               {"double", DType::f64},
                                               {"bfloat16", DType::bf16},
                                               {"f8e4m3", DType::f8e4m3fn},
                                               {"f8e5m2", DType::f8e5m2}}};
constexpr std::array<TypeWord, 8> more_types{{{"fp8_e4m3", DType::f8e4m3fn},
                                              {"fp8_e5m2", DType::f8e5m2},
                                              {"fp8", DType::f8e4m3},
                                              {"fp16", DType::f16},
                                              {"bf16", DType::bf16},
                                              {"fp32", DType::f32},
                                              {"fp64", DType::f64},
                                              {"float64", DType::f64}}};

[[noreturn]] void unknown(std::string_view what, std::string_view word, const std::vector<std::string>& known) {
  text::refuse("no {} is called '{}': expected one of {}{}", what, word, fmt::join(known, ", "),
               text::did_you_mean(word, known));
}

std::vector<std::string> known_ops() {
  std::vector<std::string> known;
  for (const Collective c : schedule::collectives()) known.emplace_back(schedule::name(c));
  for (const schedule::CollectiveTraits& t : schedule::all_traits())
    for (const std::string_view word : text::words(t.words)) known.emplace_back(word);
  known.emplace_back(shift_word);
  return known;
}

bool find_op(std::string_view word, BenchOp& op) {
  std::string_view plain = word;
  if (plain.ends_with("_perf")) plain.remove_suffix(5);
  for (const Collective c : schedule::collectives())
    if (schedule::name(c) == plain) return op = {c, std::string(word)}, true;
  if (plain == shift_word) return op = {Collective::permute, std::string(word), true}, true;
  const schedule::CollectiveTraits* const found = schedule::traits_by_word(plain);
  if (found != nullptr) op = {found->collective, std::string(word)};
  return found != nullptr;
}

}  // namespace

bool is_bench_op(std::string_view word) {
  BenchOp op;
  return find_op(word, op);
}

BenchOp bench_op(std::string_view word) {
  BenchOp op;
  if (find_op(word, op)) return op;
  if (word == "hypercube" || word == "hypercube_perf")
    throw std::invalid_argument(
        "hypercube is an all_gather over its own pattern of messages: `trellis bench all_gather --algorithm "
        "halving_doubling` is that");
  const std::vector<std::string> known = known_ops();
  std::vector<std::string> perf;
  for (const std::string& one : known) perf.push_back(one + "_perf");
  perf.insert(perf.end(), known.begin(), known.end());
  if (const std::string near = text::did_you_mean(word, perf);
      !near.empty())  // then the long list of known words is left out
    text::refuse("no operation is called '{}'{}", word, near);
  unknown("operation", word, known);
}

std::uint64_t parse_bytes(std::string_view text) {
  std::string_view rest = text;
  const auto number = text::take_number<std::uint64_t>(rest);
  const std::string suffix = text::lower(rest);
  constexpr std::array<std::pair<char, int>, 6> scales{
      {{'k', 10}, {'m', 20}, {'g', 30}, {'t', 40}, {'p', 50}, {'e', 60}}};
  int shift = suffix.empty() || suffix == "b" ? 0 : -1;
  for (const auto& [letter, power] : scales)
    if (suffix == std::string{letter} || suffix == std::string{letter, 'b'} || suffix == std::string{letter} + "ib")
      shift = power;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool beyond = !number && digits == text.size() && digits > 0;  // more than 64 bits hold
  if (beyond || (number && shift >= 0 && *number > (std::uint64_t{1} << 60 >> shift)))
    text::refuse("'{}' is too large a size: expected at most 1 EiB", text);
  if (!number || shift < 0) text::refuse("'{}' is no size: expected one like 8, 64KB, 1M or 2GiB", text);
  return *number << shift;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  auto value = static_cast<double>(bytes);
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{:.4g} {}", value, units[unit]);
}

DType bench_type(std::string_view word, BenchStyle style) {
  for (const TypeWord& w : nccl_types)
    if (w.word == word && (style == BenchStyle::nccl || !word.starts_with("f8"))) return w.type;
  for (const TypeWord& w : more_types)
    if (w.word == word) return w.type;
  for (const DType type : kernels::dtypes())
    if (kernels::name(type) == word) return type;
  std::vector<std::string> known;
  for (const TypeWord& w : nccl_types) known.emplace_back(w.word);
  for (const TypeWord& w : more_types) known.emplace_back(w.word);
  for (const DType type : kernels::dtypes()) known.emplace_back(kernels::name(type));
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  unknown("type", word, known);
}

std::string_view type_word(DType type, BenchStyle style) {
  if (style == BenchStyle::nccl)
    for (const TypeWord& w : nccl_types)
      if (w.type == type) return w.word;
  switch (type) {
    case DType::f8e4m3:
      return "fp8";
    case DType::f16:
      return "fp16";
    case DType::bf16:
      return "bf16";
    case DType::f32:
      return "fp32";
    case DType::f64:
      return "fp64";
    default:
      break;
  }
  for (const TypeWord& w : nccl_types)
    if (w.type == type && !kernels::is_float(type)) return w.word;
  return kernels::name(type);
}

Reduction bench_reduction(std::string_view word) {
  if (word == "mulsum") return Reduction::scaled_sum;
  std::vector<std::string> known = {"mulsum"};
  for (std::size_t i = 0; i < kernels::reduction_count; ++i) {
    const auto op = static_cast<Reduction>(i);
    if (kernels::name(op) == word) return op;
    known.emplace_back(kernels::name(op));
  }
  unknown("operator", word, known);
}

std::string_view reduction_word(Reduction op, BenchStyle style) {
  return op == Reduction::scaled_sum && style == BenchStyle::nccl ? "mulsum" : kernels::name(op);
}

}  // namespace trellis::measure
