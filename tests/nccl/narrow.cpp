// CUDA's narrow floats on the host have the bits of the library's own, and its rounding.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "ccl/api/cuda/cuda_bf16.h"
#include "ccl/api/cuda/cuda_fp16.h"
#include "ccl/api/cuda/cuda_fp8.h"
#include "ccl/api/trellis.h"

namespace {

template <class T>
T of_pattern(unsigned pattern) {
  T value;
  value.pattern = static_cast<decltype(value.pattern)>(pattern);
  return value;
}

double loaded(trellis_type type, const void* place) {
  double value = 0;
  EXPECT_EQ(trellis_type_load(type, place, &value), TRELLIS_OK);
  return value;
}

// Checks that every bit pattern has the library's value, and that the value gives the pattern back.
template <class T>
void hold_against(trellis_type type) {
  for (unsigned pattern = 0; pattern < 1U << 8 * sizeof(T); ++pattern) {
    const T value = of_pattern<T>(pattern);
    const double meant = loaded(type, &value);
    if (std::isnan(meant)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(value))) << pattern;
      continue;
    }
    ASSERT_EQ(static_cast<float>(value), meant) << pattern;
    if (!std::isinf(meant)) {
      ASSERT_EQ(T(static_cast<float>(value)).pattern, pattern);
    }
  }
}

TEST(CudaNarrow, PatternsMeanWhatTheLibraryTakesThemFor) {
  hold_against<__half>(TRELLIS_F16);
  hold_against<__nv_bfloat16>(TRELLIS_BF16);
  hold_against<__nv_fp8_e4m3>(TRELLIS_F8E4M3FN);
  hold_against<__nv_fp8_e5m2>(TRELLIS_F8E5M2);
}

TEST(CudaNarrow, RoundToTheNearestWithTiesToEven) {
  EXPECT_EQ(__float2half(1 + 0x1p-11F).pattern, 0x3C00);
  EXPECT_EQ(__float2half(1 + 3 * 0x1p-11F).pattern, 0x3C02);
  EXPECT_EQ(__double2half(1 + 0x1p-11 + 0x1p-40).pattern, 0x3C01);  // rounded once, not to float first
  EXPECT_EQ(__float2half(65519.9F).pattern, 0x7BFF);
  EXPECT_EQ(__float2half(65520.F).pattern, 0x7C00);
  EXPECT_EQ(__float2half(0x1p-25F).pattern, 0);
  EXPECT_EQ(__float2half(0x1.8p-25F).pattern, 1);
  EXPECT_EQ(__float2half(-0.0F).pattern, 0x8000);
  EXPECT_EQ(__ull2half_rn(70000).pattern, 0x7C00);
  EXPECT_EQ(__float2bfloat16(1 + 0x1p-8F).pattern, 0x3F80);
  EXPECT_EQ(__float2bfloat16(0x1.FFp127F).pattern, 0x7F80);
  EXPECT_EQ(float(__nv_fp8_e4m3(1e6)), 448);
  EXPECT_EQ(float(__nv_fp8_e5m2(-INFINITY)), -57344);
  EXPECT_TRUE(std::isnan(float(__nv_fp8_e4m3(NAN))));
}

TEST(CudaNarrow, HaveOperators) {
  const __half a(1.5F), b(-2);
  EXPECT_EQ(float(a * b), -3);
  EXPECT_EQ(float(__hadd(a, b)), -0.5F);
  EXPECT_EQ(float(__hmax(a, b)), 1.5F);
  EXPECT_TRUE(b < a && a != b);
  __nv_bfloat16 sum = 0;
  for (int i = 0; i < 4; ++i) sum += __nv_bfloat16(0.25F);
  EXPECT_EQ(float(sum), 1);
  EXPECT_EQ(__half_as_ushort(__ushort_as_half(0x1234)), 0x1234);
}

}  // namespace
