// The words of benchmarks: operations, types and sizes as nccl-tests, nccom-test and Trellis write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/reduce/reduce.h"
#include "schedule/collective.h"

namespace trellis::measure {

// Whether tables and words for types are those of nccl-tests or of nccom-test.
enum class BenchStyle : std::uint8_t { nccl, nccom };

struct BenchOp {
  schedule::Collective collective = schedule::Collective::all_reduce;
  std::string word;    // as the user typed it
  bool shift = false;  // sendrecv: every rank sends to the next one, as a permutation
};

// "all_reduce", "allr", "alltoall_perf". Throws invalid_argument with the word that was probably meant.
BenchOp bench_op(std::string_view word);
bool is_bench_op(std::string_view word);

// "64KB", "64K", "64KiB", "65536", in upper or lower case; K is 1024. Throws invalid_argument.
std::uint64_t parse_bytes(std::string_view text);
std::string bytes_text(std::uint64_t);  // "64 KiB"

inline constexpr std::uint64_t most_bytes = std::uint64_t{1} << 44;  // of one buffer: 16T

// "float", "bfloat16", "bf16", "fp8_e5m2", ... Throws invalid_argument. f8e4m3 of nccl-tests is our f8e4m3fn.
kernels::DType bench_type(std::string_view word, BenchStyle);
std::string_view type_word(kernels::DType, BenchStyle);

kernels::Reduction bench_reduction(std::string_view word);  // mulsum is scaled_sum
std::string_view reduction_word(kernels::Reduction, BenchStyle);

}  // namespace trellis::measure
