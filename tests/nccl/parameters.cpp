// The parameter API of NCCL, over the variables that this library knows.
#include <cstring>

#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

constexpr auto bad = ncclInvalidArgument;

struct Variable {
  Variable(const char* n, const char* value) : name(n) { setenv(n, value, 1); }
  ~Variable() { unsetenv(name); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  const char* name;
};

TEST(NcclParam, EveryKeyHasAValue) {
  const char** keys = nullptr;
  int count = 0;
  ASSERT_TRUE(done(ncclParamGetAllParameterKeys(&keys, &count)));
  EXPECT_EQ(count, 11);
  for (int i = 0; i < count; ++i) {
    const char* value = nullptr;
    int length = -1;
    EXPECT_TRUE(done(ncclParamGetParameter(keys[i], &value, &length)));
    EXPECT_EQ(length, static_cast<int>(std::strlen(value)));
    ncclParamHandle_t handle = nullptr;
    EXPECT_TRUE(done(ncclParamBind(&handle, keys[i])));
    const char* same = nullptr;
    EXPECT_TRUE(done(ncclParamGetStr(handle, &same)));
    EXPECT_STREQ(same, value);
  }
  testing::internal::CaptureStderr();
  ncclParamDumpAll();
  const std::string said = testing::internal::GetCapturedStderr();
  for (int i = 0; i < count; ++i) EXPECT_NE(said.find(std::string(keys[i]) + "="), std::string::npos) << said;
}

TEST(NcclParam, NumbersAreReadAsTheTypeAskedFor) {
  const Variable seed("TRELLIS_SEED", "300");
  ncclParamHandle_t handle = nullptr;
  ASSERT_TRUE(done(ncclParamBind(&handle, "TRELLIS_SEED")));
  std::int16_t i16 = 0;
  std::int32_t i32 = 0;
  std::int64_t i64 = 0;
  std::uint16_t u16 = 0;
  std::uint32_t u32 = 0;
  std::uint64_t u64 = 0;
  EXPECT_TRUE(done(ncclParamGetI16(handle, &i16)));
  EXPECT_TRUE(done(ncclParamGetI32(handle, &i32)));
  EXPECT_TRUE(done(ncclParamGetI64(handle, &i64)));
  EXPECT_TRUE(done(ncclParamGetU16(handle, &u16)));
  EXPECT_TRUE(done(ncclParamGetU32(handle, &u32)));
  EXPECT_TRUE(done(ncclParamGetU64(handle, &u64)));
  for (const std::uint64_t value :
       {std::uint64_t(i16), std::uint64_t(i32), std::uint64_t(i64), std::uint64_t{u16}, std::uint64_t{u32}, u64})
    EXPECT_EQ(value, 300u);
  std::int8_t i8 = 5;
  std::uint8_t u8 = 5;
  EXPECT_TRUE(refused(ncclParamGetI8(handle, &i8), bad, "TRELLIS_SEED=300: no integer of signed 8 bits"));
  EXPECT_TRUE(refused(ncclParamGetU8(handle, &u8), bad, "unsigned 8 bits"));
  EXPECT_EQ(i8, 5);
  EXPECT_TRUE(refused(ncclParamGetI32(handle, nullptr), bad, "out is NULL"));
  EXPECT_TRUE(refused(ncclParamGetI32(nullptr, &i32), bad, "no handle"));
  ASSERT_TRUE(done(ncclParamBind(&handle, "TRELLIS_ROUNDING")));
  EXPECT_TRUE(refused(ncclParamGetI64(handle, &i64), bad, "TRELLIS_ROUNDING=nearest"));
}

TEST(NcclParam, BytesThatDoNotFitAreRefused) {
  const Variable rounding("TRELLIS_ROUNDING", "stochastic");
  ncclParamHandle_t handle = nullptr;
  ASSERT_TRUE(done(ncclParamBind(&handle, "TRELLIS_ROUNDING")));
  char bytes[16] = {};
  int length = 0;
  EXPECT_TRUE(done(ncclParamGet(handle, bytes, sizeof bytes, &length)));
  EXPECT_EQ(std::string(bytes, static_cast<std::size_t>(length)), "stochastic");
  EXPECT_TRUE(refused(ncclParamGet(handle, bytes, 4, &length), bad, "maxLen 4"));
  EXPECT_EQ(length, 10);
  EXPECT_TRUE(refused(ncclParamGet(handle, nullptr, 4, &length), bad, "out is NULL"));
  EXPECT_TRUE(refused(ncclParamGet(handle, bytes, 4, nullptr), bad, "len is NULL"));
}

TEST(NcclParam, KeysThatAreNone) {
  ncclParamHandle_t handle = nullptr;
  const char* value = nullptr;
  const char** keys = nullptr;
  int length = 0;
  EXPECT_TRUE(refused(ncclParamBind(&handle, "NCCL_DEBUG"), bad, "key 'NCCL_DEBUG'"));
  EXPECT_EQ(handle, nullptr);
  EXPECT_TRUE(refused(ncclParamBind(&handle, nullptr), bad, "key is NULL"));
  EXPECT_TRUE(refused(ncclParamBind(nullptr, "TRELLIS_SEED"), bad, "out is NULL"));
  EXPECT_TRUE(refused(ncclParamGetParameter("x", &value, &length), bad, "key 'x'"));
  EXPECT_TRUE(refused(ncclParamGetParameter("TRELLIS_SEED", nullptr, &length), bad, "value is NULL"));
  EXPECT_TRUE(refused(ncclParamGetParameter("TRELLIS_SEED", &value, nullptr), bad, "valueLen is NULL"));
  EXPECT_TRUE(refused(ncclParamGetAllParameterKeys(nullptr, &length), bad, "table is NULL"));
  EXPECT_TRUE(refused(ncclParamGetAllParameterKeys(&keys, nullptr), bad, "tableLen is NULL"));
  const Variable seed("TRELLIS_SEED", "many");
  EXPECT_TRUE(refused(ncclParamGetParameter("TRELLIS_SEED", &value, &length), bad, "TRELLIS_SEED=many"));
}

}  // namespace
}  // namespace trellis::nccl
