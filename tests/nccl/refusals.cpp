// What NCCL's API refuses, with the error that NCCL would use and the value at fault in the message.
#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

constexpr auto bad = ncclInvalidArgument;

// Calls of all functions that take a communicator, in which everything but the communicator is right.
std::vector<std::pair<const char*, std::function<ncclResult_t(ncclComm_t)>>> calls_on_a_communicator() {
  static float in[4], out[4];
  static int number;
  static std::uint64_t bytes;
  static void* pointer;
  static ncclComm_t child;
  static ncclWindow_t window;
  static ncclUniqueId id;
  static ncclResult_t state;
  static ncclRedOp_t op;
  static ncclWaitSignalDesc_t signal{1, 0, 0, 0};
  const auto f = ncclFloat;
  return {
      {"AllReduce", [=](auto c) { return ncclAllReduce(in, out, 1, f, ncclSum, c, nullptr); }},
      {"Reduce", [=](auto c) { return ncclReduce(in, out, 1, f, ncclSum, 0, c, nullptr); }},
      {"Broadcast", [=](auto c) { return ncclBroadcast(in, out, 1, f, 0, c, nullptr); }},
      {"Bcast", [=](auto c) { return ncclBcast(out, 1, f, 0, c, nullptr); }},
      {"ReduceScatter", [=](auto c) { return ncclReduceScatter(in, out, 1, f, ncclSum, c, nullptr); }},
      {"AllGather", [=](auto c) { return ncclAllGather(in, out, 1, f, c, nullptr); }},
      {"AlltoAll", [=](auto c) { return ncclAlltoAll(in, out, 1, f, c, nullptr); }},
      {"Gather", [=](auto c) { return ncclGather(in, out, 1, f, 0, c, nullptr); }},
      {"Scatter", [=](auto c) { return ncclScatter(in, out, 1, f, 0, c, nullptr); }},
      {"Send", [=](auto c) { return ncclSend(in, 1, f, 0, c, nullptr); }},
      {"Recv", [=](auto c) { return ncclRecv(out, 1, f, 0, c, nullptr); }},
      {"PutSignal", [=](auto c) { return ncclPutSignal(in, 1, f, 0, nullptr, 0, 0, 0, 0, c, nullptr); }},
      {"Signal", [=](auto c) { return ncclSignal(0, 0, 0, 0, c, nullptr); }},
      {"WaitSignal", [=](auto c) { return ncclWaitSignal(1, &signal, c, nullptr); }},
      {"Split", [=](auto c) { return ncclCommSplit(c, 0, 0, &child, nullptr); }},
      {"Shrink", [=](auto c) { return ncclCommShrink(c, nullptr, 0, &child, nullptr, 0); }},
      {"GetUniqueId", [=](auto c) { return ncclCommGetUniqueId(c, &id); }},
      {"GetAsyncError", [=](auto c) { return ncclCommGetAsyncError(c, &state); }},
      {"Count", [=](auto c) { return ncclCommCount(c, &number); }},
      {"CuDevice", [=](auto c) { return ncclCommCuDevice(c, &number); }},
      {"UserRank", [=](auto c) { return ncclCommUserRank(c, &number); }},
      {"Register", [=](auto c) { return ncclCommRegister(c, in, 4, &pointer); }},
      {"Deregister", [=](auto c) { return ncclCommDeregister(c, pointer); }},
      {"WindowRegister", [=](auto c) { return ncclCommWindowRegister(c, in, 4, &window, 0); }},
      {"WindowDeregister", [=](auto c) { return ncclCommWindowDeregister(c, window); }},
      {"WinGetUserPtr", [=](auto c) { return ncclWinGetUserPtr(c, window, &pointer); }},
      {"Suspend", [=](auto c) { return ncclCommSuspend(c, NCCL_SUSPEND_MEM); }},
      {"Resume", [=](auto c) { return ncclCommResume(c); }},
      {"MemStats", [=](auto c) { return ncclCommMemStats(c, ncclStatGpuMemTotal, &bytes); }},
      {"RedOpCreate", [=](auto c) { return ncclRedOpCreatePreMulSum(&op, in, f, ncclScalarHostImmediate, c); }},
      {"RedOpDestroy", [=](auto c) { return ncclRedOpDestroy(ncclNumOps, c); }},
  };
}

TEST(NcclRefuses, HandlesThatAreNone) {
  ncclComm_t gone = nullptr;
  ASSERT_TRUE(done(ncclCommInitAll(&gone, 1, nullptr)));
  ASSERT_TRUE(done(ncclCommDestroy(gone)));
  int elsewhere = 0;
  for (const auto& [name, call] : calls_on_a_communicator()) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(refused(call(nullptr), bad, "ncclComm_t is NULL"));
    EXPECT_TRUE(refused(call(gone), bad, "no ncclComm_t, or one that was destroyed"));
    EXPECT_TRUE(refused(call(reinterpret_cast<ncclComm_t>(&elsewhere)), bad, "no ncclComm_t"));
  }
  EXPECT_TRUE(refused(ncclCommDestroy(gone), bad, "destroyed"));
  EXPECT_TRUE(refused(ncclCommAbort(gone), bad, "destroyed"));
  EXPECT_TRUE(refused(ncclCommFinalize(gone), bad, "destroyed"));
  EXPECT_TRUE(refused(ncclCommRevoke(gone, NCCL_REVOKE_DEFAULT), bad, "destroyed"));
}

TEST(NcclRefuses, NullResults) {
  const Cliques c(1);
  ncclUniqueId id;
  ASSERT_TRUE(done(ncclGetUniqueId(&id)));
  float buffer[2];
  EXPECT_TRUE(refused(ncclGetUniqueId(nullptr), bad, "uniqueId is NULL"));
  EXPECT_TRUE(refused(ncclCommInitRank(nullptr, 1, id, 0), bad, "comm is NULL"));
  EXPECT_TRUE(refused(ncclCommInitAll(nullptr, 1, nullptr), bad, "comm is NULL"));
  EXPECT_TRUE(refused(ncclCommSplit(c[0], 0, 0, nullptr, nullptr), bad, "newcomm is NULL"));
  EXPECT_TRUE(refused(ncclCommShrink(c[0], nullptr, 0, nullptr, nullptr, 0), bad, "newcomm is NULL"));
  EXPECT_TRUE(refused(ncclCommGrow(c[0], 2, &id, -1, nullptr, nullptr), bad, "newcomm is NULL"));
  EXPECT_TRUE(refused(ncclCommGetUniqueId(c[0], nullptr), bad, "uniqueId is NULL"));
  EXPECT_TRUE(refused(ncclCommGetAsyncError(c[0], nullptr), bad, "asyncError is NULL"));
  EXPECT_TRUE(refused(ncclCommCount(c[0], nullptr), bad, "count is NULL"));
  EXPECT_TRUE(refused(ncclCommCuDevice(c[0], nullptr), bad, "device is NULL"));
  EXPECT_TRUE(refused(ncclCommUserRank(c[0], nullptr), bad, "rank is NULL"));
  EXPECT_TRUE(refused(ncclMemAlloc(nullptr, 8), bad, "ptr is NULL"));
  EXPECT_TRUE(refused(ncclCommRegister(c[0], buffer, 8, nullptr), bad, "handle is NULL"));
  EXPECT_TRUE(refused(ncclCommWindowRegister(c[0], buffer, 8, nullptr, 0), bad, "win is NULL"));
  EXPECT_TRUE(refused(ncclWinGetUserPtr(c[0], nullptr, nullptr), bad, "outUserPtr is NULL"));
  EXPECT_TRUE(refused(ncclWaitSignal(1, nullptr, c[0], nullptr), bad, "signalDescs is NULL"));
}

TEST(NcclRefuses, NumbersThatAreNone) {
  const Cliques c(1);
  float in[4] = {}, out[4] = {};
  EXPECT_TRUE(refused(ncclAllReduce(in, out, 1, ncclNumTypes, ncclSum, c[0], nullptr), bad, "datatype 12"));
  EXPECT_TRUE(refused(ncclAllReduce(in, out, 1, ncclFloat, ncclNumOps, c[0], nullptr), bad, "op 5"));
  EXPECT_TRUE(refused(ncclAllReduce(in, out, 1, ncclFloat, ncclMaxRedOp, c[0], nullptr), bad, "op 2147483647"));
  EXPECT_TRUE(refused(ncclAllReduce(nullptr, out, 1, ncclFloat, ncclSum, c[0], nullptr), bad,
                      "ncclAllReduce: sendbuff is NULL"));
  EXPECT_TRUE(
      refused(ncclAllReduce(in, out, SIZE_MAX, ncclFloat, ncclSum, c[0], nullptr), bad, "18446744073709551615"));
  EXPECT_TRUE(refused(ncclBroadcast(in, out, 1, ncclFloat, 3, c[0], nullptr), bad, "ncclBroadcast: root 3"));
  EXPECT_TRUE(refused(ncclReduce(in, out, 1, ncclFloat, ncclSum, -1, c[0], nullptr), bad, "ncclReduce: root -1"));
  EXPECT_TRUE(refused(ncclSend(in, 1, ncclFloat, 9, c[0], nullptr), bad, "ncclSend: peer 9"));
  EXPECT_TRUE(refused(ncclSend(in, 1, ncclNumTypes, 0, c[0], nullptr), bad, "datatype 12"));
  EXPECT_TRUE(refused(ncclRecv(out, 1, ncclFloat, -9, c[0], nullptr), bad, "ncclRecv: peer -9"));
  EXPECT_TRUE(refused(ncclCommInitAll(nullptr, 0, nullptr), bad, "comm is NULL"));
  ncclComm_t comm = nullptr;
  EXPECT_TRUE(refused(ncclCommInitAll(&comm, 0, nullptr), bad, "ndev 0"));
  const int devices[] = {-2};
  EXPECT_TRUE(refused(ncclCommInitAll(&comm, 1, devices), bad, "devlist[0] is -2"));
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  std::vector<ncclComm_t> many(static_cast<std::size_t>(count) + 1);
  const int beyond[] = {0, count};
  EXPECT_TRUE(refused(ncclCommInitAll(many.data(), 2, beyond), bad, "devlist[1] is " + std::to_string(count)));
  EXPECT_TRUE(refused(ncclCommInitAll(many.data(), count + 1, nullptr), bad, "ndev " + std::to_string(count + 1)));
  ncclUniqueId id = {};
  EXPECT_TRUE(refused(ncclCommInitRank(&comm, 0, id, 0), bad, "nranks 0"));
  EXPECT_TRUE(refused(ncclCommInitRank(&comm, 2, id, 2), bad, "rank 2 of nranks 2"));
  EXPECT_TRUE(refused(ncclCommInitRank(&comm, 1, id, 0), bad, "128 zeros"));
  EXPECT_TRUE(
      refused(ncclCommSplit(c[0], -5, 0, &comm, nullptr), bad, "color -5: expected 0 or more, or NCCL_SPLIT_NOCOLOR"));
  int excluded[] = {6};
  EXPECT_TRUE(refused(ncclCommShrink(c[0], excluded, 1, &comm, nullptr, 0), bad, "excludeRanksList[0] is 6"));
  EXPECT_TRUE(refused(ncclCommShrink(c[0], nullptr, 0, &comm, nullptr, 8), bad, "shrinkFlags 8"));
  EXPECT_TRUE(refused(ncclCommGrow(c[0], 1, nullptr, -1, &comm, nullptr), bad, "nRanks 1"));
  EXPECT_TRUE(refused(ncclCommGrow(nullptr, 2, nullptr, 1, &comm, nullptr), bad, "uniqueId is NULL"));
  EXPECT_EQ(comm, nullptr);
  ncclWaitSignalDesc_t signal{1, 4, 0, 0};
  EXPECT_TRUE(refused(ncclWaitSignal(0, &signal, c[0], nullptr), bad, "nDesc 0"));
  EXPECT_TRUE(refused(ncclWaitSignal(1, &signal, c[0], nullptr), bad, "peer 4"));
}

TEST(NcclRefuses, OneSidedOperations) {
  const Cliques c(1);
  float in[4] = {};
  ncclWaitSignalDesc_t signal{1, 0, 0, 0};
  EXPECT_TRUE(
      refused(ncclPutSignal(in, 1, ncclFloat, 0, nullptr, 0, 0, 0, 0, c[0], nullptr), ncclInvalidUsage, "one-sided"));
  EXPECT_TRUE(refused(ncclSignal(0, 0, 0, 0, c[0], nullptr), ncclInvalidUsage, "one-sided"));
  EXPECT_TRUE(refused(ncclWaitSignal(1, &signal, c[0], nullptr), ncclInvalidUsage, "one-sided"));
}

TEST(NcclRefuses, ConfigsThatCannotBe) {
  const auto with = [](auto&& change) {
    const Cliques c(1);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    change(config);
    ncclComm_t child = nullptr;
    const ncclResult_t result = ncclCommSplit(c[0], 0, 0, &child, &config);
    ncclCommDestroy(child);
    return result;
  };
  EXPECT_TRUE(done(with([](auto&) {})));
  EXPECT_TRUE(done(with([](auto& c) {
    c.cgaClusterSize = 2;
    c.minCTAs = 1;
    c.maxCTAs = 32;
    c.netName = "Socket";
    c.splitShare = 1;
    c.trafficClass = 3;
    c.commName = "mine";
    c.maxP2pPeers = -1;
    c.blocking = 1;
  })));
  EXPECT_TRUE(refused(with([](auto& c) { c.magic = 7; }), bad, "config.magic is 0x7"));
  EXPECT_TRUE(refused(with([](auto& c) { c.size = 8; }), bad, "config.size is 8"));
  EXPECT_TRUE(refused(with([](auto& c) { c.size = 1 << 20; }), bad, "config.size is 1048576"));
  EXPECT_TRUE(refused(with([](auto& c) { c.blocking = 2; }), bad, "config.blocking is 2"));
  EXPECT_TRUE(refused(with([](auto& c) { c.cgaClusterSize = 9; }), bad, "config.cgaClusterSize is 9"));
  EXPECT_TRUE(refused(with([](auto& c) { c.minCTAs = 0; }), bad, "config.minCTAs is 0"));
  EXPECT_TRUE(refused(with([](auto& c) { c.maxCTAs = -4; }), bad, "config.maxCTAs is -4"));
  EXPECT_TRUE(refused(with([](auto& c) { c.minCTAs = 8, c.maxCTAs = 4; }), bad, "minCTAs is 8, and maxCTAs 4"));
  EXPECT_TRUE(refused(with([](auto& c) { c.splitShare = 5; }), bad, "config.splitShare is 5"));
  EXPECT_TRUE(refused(with([](auto& c) { c.shrinkShare = -1; }), bad, "config.shrinkShare is -1"));
  EXPECT_TRUE(refused(with([](auto& c) { c.trafficClass = -1; }), bad, "config.trafficClass is -1"));
  EXPECT_TRUE(refused(with([](auto& c) { c.collnetEnable = 2; }), bad, "config.collnetEnable is 2"));
  EXPECT_TRUE(refused(with([](auto& c) { c.CTAPolicy = 3; }), bad, "config.CTAPolicy is 3"));
  EXPECT_TRUE(refused(with([](auto& c) { c.nvlsCTAs = 0; }), bad, "config.nvlsCTAs is 0"));
  EXPECT_TRUE(refused(with([](auto& c) { c.graphUsageMode = 3; }), bad, "config.graphUsageMode is 3"));
  EXPECT_TRUE(
      refused(with([](auto& c) { c.graphStreamOrdering = 0, c.graphUsageMode = 2; }), bad, "graphStreamOrdering is 0"));
}

TEST(NcclRefuses, FieldsThatAskForWhatIsNotHere) {
  const Cliques c(1);
  const auto split = [&](ncclConfig_t* config) {
    ncclComm_t child = nullptr;
    const ncclResult_t result = ncclCommSplit(c[0], 0, 0, &child, config);
    ncclCommDestroy(child);
    return result;
  };
  const auto with = [&](int ncclConfig_t::*field) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.*field = 1;
    return split(&config);
  };
  EXPECT_TRUE(refused(with(&ncclConfig_t::launchOrderImplicit), bad, "config.launchOrderImplicit is 1"));
  EXPECT_TRUE(refused(with(&ncclConfig_t::numRmaSig), bad, "config.numRmaSig is 1"));
  EXPECT_TRUE(refused(with(&ncclConfig_t::rmaEagerInit), bad, "config.rmaEagerInit is 1"));
  EXPECT_TRUE(refused(with(&ncclConfig_t::hostCftMode), bad, "config.hostCftMode is 1"));
  EXPECT_TRUE(refused(with(&ncclConfig_t::nvlsHostMode), bad, "config.nvlsHostMode is 1"));
  // A program of a later NCCL, where the struct has grown by four numbers and a pointer.
  struct Later {
    ncclConfig_t known;
    int more[4];
    const char* text;
  } later = {NCCL_CONFIG_INITIALIZER, {}, nullptr};
  later.known.size = sizeof later;
  later.known.version = NCCL_VERSION(2, 33, 0);
  for (int& field : later.more) field = NCCL_CONFIG_UNDEF_INT;
  EXPECT_TRUE(done(split(&later.known)));
  later.more[2] = 1;
  EXPECT_TRUE(refused(split(&later.known), bad, "a field at byte 128 is set to 1"));
  later.more[2] = NCCL_CONFIG_UNDEF_INT;
  later.text = "x";
  EXPECT_TRUE(refused(split(&later.known), bad, "a field at byte 136"));
}

// Programs of NCCL 2.14 have a struct that ends with `blocking`.
TEST(NcclRefuses, NoConfigOfAnOlderProgram) {
  struct Shorter {
    std::size_t size;
    unsigned int magic, version;
    int blocking;
    int padding;  // with anything in it
  } shorter = {sizeof(Shorter), NCCL_API_MAGIC, NCCL_VERSION(2, 14, 3), 1, 21942};
  const Cliques c(1);
  ncclComm_t child = nullptr;
  EXPECT_TRUE(done(ncclCommSplit(c[0], 0, 0, &child, reinterpret_cast<ncclConfig_t*>(&shorter))));
  EXPECT_TRUE(done(ncclCommDestroy(child)));
}

TEST(NcclRefuses, NothingOfAGroupWithAFailureIsDone) {
  const Cliques c(1);
  float in = 3, out = 0;
  ASSERT_TRUE(done(ncclGroupStart()));
  EXPECT_TRUE(done(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, c[0], nullptr)));
  EXPECT_TRUE(refused(ncclAllReduce(&in, &out, 1, ncclNumTypes, ncclSum, c[0], nullptr), bad, "datatype 12"));
  EXPECT_TRUE(refused(ncclGroupEnd(), bad, "datatype 12"));
  EXPECT_EQ(out, 0);
  EXPECT_TRUE(refused(ncclGroupEnd(), ncclInvalidUsage, "no group"));
}

TEST(NcclMemory, RegionsAndWindows) {
  const Cliques c(2);
  void* memory = nullptr;
  ASSERT_TRUE(done(ncclMemAlloc(&memory, 8192)));
  void* handle = nullptr;
  ncclWindow_t window = nullptr;
  void* pointer = nullptr;
  EXPECT_TRUE(done(ncclCommRegister(c[0], memory, 100, &handle)));
  EXPECT_TRUE(done(ncclCommWindowRegister(c[0], memory, 8192, &window, NCCL_WIN_COLL_SYMMETRIC)));
  EXPECT_TRUE(done(ncclWinGetUserPtr(c[0], window, &pointer)));
  EXPECT_EQ(pointer, memory);
  EXPECT_TRUE(refused(ncclCommDeregister(c[0], window), bad, "no registration"));
  EXPECT_TRUE(refused(ncclCommWindowDeregister(c[0], static_cast<ncclWindow_t>(handle)), bad, "no window"));
  EXPECT_TRUE(refused(ncclCommDeregister(c[1], handle), bad, "of this communicator"));
  EXPECT_TRUE(done(ncclCommDeregister(c[0], handle)));
  EXPECT_TRUE(refused(ncclCommDeregister(c[0], handle), bad, "deregistered"));
  EXPECT_TRUE(done(ncclCommWindowDeregister(c[0], window)));
  EXPECT_TRUE(refused(ncclCommRegister(c[0], memory, 0, &handle), bad, "size 0"));
  EXPECT_TRUE(refused(ncclCommRegister(c[0], nullptr, 8, &handle), bad, "buff is NULL"));
  EXPECT_TRUE(refused(ncclCommWindowRegister(c[0], memory, 8, &window, 64), bad, "winFlags 0x40"));
  for (int flag : {NCCL_WIN_GIN_ONLY, NCCL_WIN_CFT_COUNTED})
    EXPECT_TRUE(refused(ncclCommWindowRegister(c[0], memory, 8, &window, flag), ncclInvalidUsage, "no GIN and no CFT"));
  EXPECT_TRUE(refused(ncclCommWindowRegister(c[0], memory, 0, &window, 0), bad, "size 0"));
  EXPECT_TRUE(
      refused(ncclCommWindowRegister(c[0], static_cast<char*>(memory) + 8, 8, &window, 0), bad, "multiple of 4096"));
  EXPECT_TRUE(done(ncclMemFree(memory)));
  EXPECT_TRUE(refused(ncclMemFree(memory), bad, "was not given by ncclMemAlloc, or has been freed"));
  EXPECT_TRUE(refused(ncclMemAlloc(&memory, SIZE_MAX), ncclSystemError, "out of memory"));
}

}  // namespace
}  // namespace trellis::nccl
