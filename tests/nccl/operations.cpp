// Every operation of NCCL's API does what NCCL documents.
#include <cstring>
#include <numeric>

#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

constexpr int ranks = 3;
constexpr std::size_t n = 4;
using Ints = std::vector<std::int32_t>;

Ints brought(int rank, std::size_t count) {
  Ints v(count);
  std::iota(v.begin(), v.end(), 100 * (rank + 1));
  return v;
}
Ints total(std::size_t count) {
  Ints v(count);
  for (int r = 0; r < ranks; ++r) {
    const Ints one = brought(r, count);
    for (std::size_t i = 0; i < count; ++i) v[i] += one[i];
  }
  return v;
}
Ints block(const Ints& v, int rank) {
  const auto begin = v.begin() + static_cast<std::ptrdiff_t>(n) * rank;
  return {begin, begin + static_cast<std::ptrdiff_t>(n)};
}

TEST(Nccl, Reductions) {
  const Cliques c(ranks);
  c.each([](int rank, ncclComm_t comm) {
    const Ints in = brought(rank, n * ranks);
    Ints out(n);
    const auto all_reduce = [&](ncclRedOp_t op) {
      EXPECT_TRUE(done(ncclAllReduce(in.data(), out.data(), n, ncclInt32, op, comm, nullptr)));
      return out;
    };
    EXPECT_EQ(all_reduce(ncclSum), total(n));
    EXPECT_EQ(all_reduce(ncclMax), brought(2, n));
    EXPECT_EQ(all_reduce(ncclMin), brought(0, n));
    EXPECT_EQ(all_reduce(ncclAvg), brought(1, n));
    EXPECT_EQ(all_reduce(ncclProd)[0], 100 * 200 * 300);
    EXPECT_TRUE(done(ncclReduceScatter(in.data(), out.data(), n, ncclInt32, ncclSum, comm, nullptr)));
    EXPECT_EQ(out, block(total(n * ranks), rank));
    EXPECT_TRUE(done(ncclReduce(in.data(), out.data(), n, ncclInt32, ncclSum, 1, comm, nullptr)));
    if (rank == 1) {
      EXPECT_EQ(out, total(n));
    }
    Ints same = brought(rank, n);
    EXPECT_TRUE(done(pncclAllReduce(same.data(), same.data(), n, ncclInt32, ncclSum, comm, nullptr)));
    EXPECT_EQ(same, total(n));
  });
}

TEST(Nccl, Moves) {
  const Cliques c(ranks);
  Ints all;
  for (int r = 0; r < ranks; ++r)
    for (std::int32_t each : brought(r, n)) all.push_back(each);
  c.each([&](int rank, ncclComm_t comm) {
    const Ints in = brought(rank, n * ranks);
    Ints one(n), each(n * ranks);
    EXPECT_TRUE(done(ncclBroadcast(in.data(), one.data(), n, ncclInt32, 2, comm, nullptr)));
    EXPECT_EQ(one, brought(2, n));
    one = brought(rank, n);
    EXPECT_TRUE(done(ncclBcast(one.data(), n, ncclInt32, 1, comm, nullptr)));
    EXPECT_EQ(one, brought(1, n));
    EXPECT_TRUE(done(ncclAllGather(in.data(), each.data(), n, ncclInt32, comm, nullptr)));
    EXPECT_EQ(each, all);
    each.assign(n * ranks, 0);
    EXPECT_TRUE(done(ncclGather(in.data(), each.data(), n, ncclInt32, 0, comm, nullptr)));
    if (rank == 0) {
      EXPECT_EQ(each, all);
    }
    EXPECT_TRUE(done(ncclScatter(in.data(), one.data(), n, ncclInt32, 1, comm, nullptr)));
    EXPECT_EQ(one, block(brought(1, n * ranks), rank));
    EXPECT_TRUE(done(ncclAlltoAll(in.data(), each.data(), n, ncclInt32, comm, nullptr)));
    for (int from = 0; from < ranks; ++from) EXPECT_EQ(block(each, from), block(brought(from, n * ranks), rank));
  });
}

TEST(Nccl, EveryTypeIsTheOneItsNameSays) {
  const Cliques c(2);
  c.each([](int, ncclComm_t comm) {
    const auto twice = [&]<class T>(ncclDataType_t type, T one, T two) {
      T out{};
      EXPECT_TRUE(done(ncclAllReduce(&one, &out, 1, type, ncclSum, comm, nullptr)));
      EXPECT_EQ(out, two) << "type " << type;
    };
    twice(ncclInt8, std::int8_t{-60}, std::int8_t{-120});
    twice(ncclUint8, std::uint8_t{100}, std::uint8_t{200});
    twice(ncclInt32, std::int32_t{-70000}, std::int32_t{-140000});
    twice(ncclUint32, 0x7000'0000U, 0xE000'0000U);
    twice(ncclInt64, std::int64_t{-1} << 40, std::int64_t{-1} << 41);
    twice(ncclUint64, std::uint64_t{1} << 62, std::uint64_t{1} << 63);
    twice(ncclFloat32, 1.25F, 2.5F);
    twice(ncclFloat64, 1e300, 2e300);
    twice(ncclFloat16, std::uint16_t{0x3C00}, std::uint16_t{0x4000});
    twice(ncclBfloat16, std::uint16_t{0x3F80}, std::uint16_t{0x4000});
    twice(ncclFloat8e4m3, std::uint8_t{0x76}, std::uint8_t{0x7E});  // 224 to 448, which e4m3 with infinities lacks
    twice(ncclFloat8e5m2, std::uint8_t{0x3C}, std::uint8_t{0x40});
  });
}

TEST(Nccl, SendAndReceive) {
  const Cliques c(ranks);
  c.each([](int rank, ncclComm_t comm) {
    const Ints in = brought(rank, n);
    std::vector<Ints> out(ranks, Ints(n));
    EXPECT_TRUE(done(ncclGroupStart()));
    for (int peer = 0; peer < ranks; ++peer) {
      EXPECT_TRUE(done(ncclSend(in.data(), n, ncclInt32, peer, comm, nullptr)));
      EXPECT_TRUE(done(ncclRecv(out[static_cast<std::size_t>(peer)].data(), n, ncclInt32, peer, comm, nullptr)));
    }
    EXPECT_TRUE(done(ncclGroupEnd()));
    for (int peer = 0; peer < ranks; ++peer) EXPECT_EQ(out[static_cast<std::size_t>(peer)], brought(peer, n));
  });
}

// NCCL's first example: one thread, several devices, a stream for each.
TEST(Nccl, OneThreadDrivesAllDevices) {
  const Cliques c(ranks);
  std::vector<cudaStream_t> streams(ranks);
  std::vector<float*> send(ranks), receive(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    ASSERT_EQ(cudaMalloc(&send[i], n * sizeof(float)), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&receive[i], n * sizeof(float)), cudaSuccess);
    for (std::size_t k = 0; k < n; ++k) send[i][k] = 1;
    ASSERT_EQ(cudaStreamCreate(&streams[i]), cudaSuccess);
  }
  ASSERT_TRUE(done(ncclGroupStart()));
  for (std::size_t i = 0; i < ranks; ++i)
    EXPECT_TRUE(done(ncclAllReduce(send[i], receive[i], n, ncclFloat, ncclSum, c.comms[i], streams[i])));
  ASSERT_TRUE(done(ncclGroupEnd()));
  for (std::size_t i = 0; i < ranks; ++i) {
    ASSERT_EQ(cudaStreamSynchronize(streams[i]), cudaSuccess);
    for (std::size_t k = 0; k < n; ++k) EXPECT_EQ(receive[i][k], ranks);
    EXPECT_EQ(cudaStreamDestroy(streams[i]), cudaSuccess);
    EXPECT_EQ(cudaFree(send[i]), cudaSuccess);
    EXPECT_EQ(cudaFree(receive[i]), cudaSuccess);
  }
}

TEST(Nccl, OperatorsThatScale) {
  const Cliques c(2);
  c.each([](int rank, ncclComm_t comm) {
    float scalar = static_cast<float>(rank) + 2;  // 2 and 3
    ncclRedOp_t now = ncclNumOps, later = ncclNumOps;
    ASSERT_TRUE(done(ncclRedOpCreatePreMulSum(&now, &scalar, ncclFloat, ncclScalarHostImmediate, comm)));
    ASSERT_TRUE(done(ncclRedOpCreatePreMulSum(&later, &scalar, ncclFloat, ncclScalarDevice, comm)));
    EXPECT_GE(now, ncclNumOps);
    const float in = 10;
    float out = 0;
    scalar = 7;
    EXPECT_TRUE(done(ncclAllReduce(&in, &out, 1, ncclFloat, now, comm, nullptr)));
    EXPECT_EQ(out, 50);
    EXPECT_TRUE(done(ncclAllReduce(&in, &out, 1, ncclFloat, later, comm, nullptr)));
    EXPECT_EQ(out, 140);
    const double wide = 1;
    double wide_out = 0;
    EXPECT_TRUE(refused(ncclAllReduce(&wide, &wide_out, 1, ncclDouble, now, comm, nullptr), ncclInvalidArgument,
                        "is for datatype 7"));
    EXPECT_TRUE(done(ncclRedOpDestroy(now, comm)));
    EXPECT_TRUE(refused(ncclRedOpDestroy(now, comm), ncclInvalidArgument, "op 5"));
    EXPECT_TRUE(refused(ncclAllReduce(&in, &out, 1, ncclFloat, now, comm, nullptr), ncclInvalidArgument, "op 5"));
    EXPECT_TRUE(refused(ncclRedOpDestroy(ncclSum, comm), ncclInvalidArgument, "op 0"));
    EXPECT_TRUE(refused(ncclRedOpCreatePreMulSum(nullptr, &scalar, ncclFloat, ncclScalarDevice, comm),
                        ncclInvalidArgument, "op is NULL"));
    EXPECT_TRUE(refused(ncclRedOpCreatePreMulSum(&now, nullptr, ncclFloat, ncclScalarDevice, comm), ncclInvalidArgument,
                        "scalar is NULL"));
    EXPECT_TRUE(refused(ncclRedOpCreatePreMulSum(&now, &scalar, ncclNumTypes, ncclScalarDevice, comm),
                        ncclInvalidArgument, "datatype 12"));
  });
}

TEST(Nccl, ASimulatedGroupDoesNothing) {
  const Cliques c(1);
  float in = 3, out = 0;
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  ASSERT_TRUE(done(ncclGroupStart()));
  EXPECT_TRUE(done(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, c[0], nullptr)));
  EXPECT_TRUE(done(ncclGroupSimulateEnd(&info)));
  EXPECT_EQ(out, 0);
  EXPECT_EQ(info.estimatedTime, NCCL_UNDEF_FLOAT);
  info.magic = 1;
  ASSERT_TRUE(done(ncclGroupStart()));
  EXPECT_TRUE(refused(ncclGroupSimulateEnd(&info), ncclInvalidArgument, "simInfo.magic is 0x1"));
  info.magic = NCCL_SIM_INFO_MAGIC;
  info.size = 8;
  EXPECT_TRUE(refused(ncclGroupSimulateEnd(&info), ncclInvalidArgument, "simInfo.size is 8"));
  EXPECT_TRUE(done(ncclGroupSimulateEnd(nullptr)));
  EXPECT_TRUE(refused(ncclGroupSimulateEnd(nullptr), ncclInvalidUsage, "no group"));
}

}  // namespace
}  // namespace trellis::nccl
