#include "measure/bench_names.h"

#include <gtest/gtest.h>

#include "tests/why.h"

namespace trellis::measure {
namespace {

using kernels::DType;
using schedule::Collective;

TEST(BenchWords, Sizes) {
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("8"), 8u);
  EXPECT_EQ(parse_bytes("8b"), 8u);
  for (const char* text : {"64K", "64k", "64KB", "64kb", "64KiB"}) EXPECT_EQ(parse_bytes(text), 65536u) << text;
  EXPECT_EQ(parse_bytes("3M"), 3u << 20);
  EXPECT_EQ(parse_bytes("2gb"), 2ull << 30);
  EXPECT_EQ(parse_bytes("1T"), 1ull << 40);
  for (const char* bad : {"", "K", "-8", "8x", "8 K", "1.5M", "8kk", "99999999999999999999", "9999999999G"})
    EXPECT_THROW(parse_bytes(bad), std::invalid_argument) << bad;
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(2ull << 30), "2 GiB");
}

TEST(BenchWords, EveryCollectiveHasItsOwnName) {
  for (const Collective c : schedule::collectives()) {
    EXPECT_EQ(bench_op(schedule::name(c)).collective, c);
    EXPECT_EQ(bench_op(std::string(schedule::name(c)) + "_perf").collective, c);
  }
}

TEST(BenchWords, OperationsOfTheOtherTools) {
  EXPECT_EQ(bench_op("allr").collective, Collective::all_reduce);
  EXPECT_EQ(bench_op("redsct").collective, Collective::reduce_scatter);
  EXPECT_EQ(bench_op("allgv").collective, Collective::all_gather_v);
  EXPECT_EQ(bench_op("alltoallv_perf").collective, Collective::all_to_all_v);
  EXPECT_EQ(bench_op("sendrecv_perf").collective, Collective::permute);
  EXPECT_TRUE(bench_op("sendrecv").shift);
  EXPECT_FALSE(bench_op("permute").shift);
  EXPECT_EQ(why([] { bench_op("al_reduce"); }), "no operation is called 'al_reduce'; did you mean 'all_reduce'?");
  EXPECT_EQ(why([] { bench_op("all_reduce_prf"); }),
            "no operation is called 'all_reduce_prf'; did you mean 'all_reduce_perf'?");
  EXPECT_EQ(why([] { bench_op("alltoal_perf"); }),
            "no operation is called 'alltoal_perf'; did you mean 'alltoall_perf'?");
  EXPECT_NE(why([] { bench_op("hypercube_perf"); }).find("all_gather"), std::string::npos);
}

TEST(BenchWords, TypesAndOperators) {
  EXPECT_EQ(bench_type("float", BenchStyle::nccom), DType::f32);
  EXPECT_EQ(bench_type("half", BenchStyle::nccom), DType::f16);
  EXPECT_EQ(bench_type("bfloat16", BenchStyle::nccom), DType::bf16);
  EXPECT_EQ(bench_type("fp8", BenchStyle::nccom), DType::f8e4m3);
  EXPECT_EQ(bench_type("fp8_e4m3", BenchStyle::nccom), DType::f8e4m3fn);
  EXPECT_EQ(bench_type("f8e4m3", BenchStyle::nccom), DType::f8e4m3);
  EXPECT_EQ(bench_type("f8e4m3", BenchStyle::nccl), DType::f8e4m3fn);
  const std::string refused = why([] { bench_type("flaot", BenchStyle::nccom); });
  EXPECT_EQ(refused.rfind("no type is called 'flaot': expected one of bf16, bfloat16, ", 0), 0u) << refused;
  EXPECT_NE(refused.find(", uint8; did you mean 'float'?"), std::string::npos) << refused;
  for (const DType type : kernels::dtypes()) {
    EXPECT_EQ(bench_type(kernels::name(type), BenchStyle::nccom), type);
    for (const BenchStyle style : {BenchStyle::nccl, BenchStyle::nccom}) EXPECT_LE(type_word(type, style).size(), 8u);
  }
  EXPECT_EQ(type_word(DType::bf16, BenchStyle::nccl), "bfloat16");
  EXPECT_EQ(type_word(DType::bf16, BenchStyle::nccom), "bf16");
  EXPECT_EQ(bench_reduction("mulsum"), kernels::Reduction::scaled_sum);
  EXPECT_EQ(reduction_word(kernels::Reduction::scaled_sum, BenchStyle::nccl), "mulsum");
  EXPECT_EQ(why([] { bench_reduction("summ"); }),
            "no operator is called 'summ': expected one of mulsum, sum, prod, min, max, avg, scaled_sum; did you mean "
            "'sum'?");
}

// A printed word can be typed again, and means the same.
TEST(BenchWords, PrintedTypesAreTypes) {
  for (const DType type : kernels::dtypes())
    for (const BenchStyle style : {BenchStyle::nccl, BenchStyle::nccom})
      EXPECT_EQ(bench_type(type_word(type, style), style), type) << type_word(type, style);
}

}  // namespace
}  // namespace trellis::measure
