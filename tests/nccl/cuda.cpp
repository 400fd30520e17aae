// The calls of CUDA's runtime that programs of NCCL use, on the host.
#include <atomic>
#include <string>

#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

struct Stream {
  explicit Stream(unsigned flags = cudaStreamDefault) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
  }
  ~Stream() { EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t stream = nullptr;
};

// Keeps a stream busy until the gate is opened.
struct Gate {
  static void wait(void* gate) {
    while (!static_cast<Gate*>(gate)->open) std::this_thread::yield();
  }
  std::atomic<bool> open = false;
};

TEST(Cuda, DevicesAreOfAThread) {
  int count = 0, device = -1;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  ASSERT_GE(count, 2);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  std::jthread([&] {
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0);
  }).join();
  ASSERT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 1);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(count), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  cudaDeviceProp prop;
  EXPECT_EQ(cudaGetDeviceProperties(&prop, 1), cudaSuccess);
  EXPECT_STREQ(prop.name, "host 1");
  EXPECT_EQ(cudaGetDeviceProperties(&prop, count), cudaErrorInvalidDevice);
  int value = -1;
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
  EXPECT_EQ(value, prop.multiProcessorCount);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(17), 0), cudaErrorInvalidValue);
  std::size_t free = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(total, prop.totalGlobalMem);
  EXPECT_EQ(cudaRuntimeGetVersion(&value), cudaSuccess);
  EXPECT_EQ(value, CUDART_VERSION);
  EXPECT_EQ(cudaDriverGetVersion(&value), cudaSuccess);
  for (cudaError_t nowhere : {cudaGetDeviceCount(nullptr), cudaGetDevice(nullptr), cudaGetDeviceProperties(nullptr, 0),
                              cudaMemGetInfo(nullptr, &total), cudaRuntimeGetVersion(nullptr)})
    EXPECT_EQ(nowhere, cudaErrorInvalidValue);
}

TEST(Cuda, MemoryIsFilledAndCopied) {
  int *a = nullptr, *b = nullptr, host[4] = {1, 2, 3, 4};
  ASSERT_EQ(cudaMalloc(&a, sizeof host), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&b), sizeof host, cudaHostAllocMapped), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemset(b, 0xFF, sizeof host), cudaSuccess);
  EXPECT_EQ(b[3], -1);
  EXPECT_EQ(cudaMemcpy(b, a, sizeof host, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(b[3], 4);
  EXPECT_EQ(cudaMemcpy(b, a, 1, static_cast<cudaMemcpyKind>(7)), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy(nullptr, a, 1, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(nullptr, 0, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(b), cudaErrorInvalidValue) << "it is from cudaHostAlloc";
  EXPECT_EQ(cudaFreeHost(a), cudaErrorInvalidValue) << "it is from cudaMalloc";
  EXPECT_EQ(cudaFree(a), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(b), cudaSuccess);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&a, SIZE_MAX), cudaErrorMemoryAllocation);
  cudaGetLastError();
}

TEST(Cuda, TheDefaultStreamWaitsForTheDevicesOthers) {
  int from = 5, between = 0, to = 0;
  const Stream blocking, apart(cudaStreamNonBlocking);
  Gate gate, never;
  ASSERT_EQ(cudaLaunchHostFunc(apart.stream, Gate::wait, &never), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(blocking.stream, Gate::wait, &gate), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(&between, &from, sizeof from, cudaMemcpyDefault, blocking.stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(blocking.stream), cudaErrorNotReady);
  std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open = true;
  });
  EXPECT_EQ(cudaMemcpy(&to, &between, sizeof to, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(to, 5);
  EXPECT_EQ(cudaStreamQuery(apart.stream), cudaErrorNotReady);
  never.open = true;
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(apart.stream), cudaSuccess);
}

TEST(Cuda, TheOthersWaitForTheDefaultStream) {
  int from = 5, to = 0, meanwhile = 0;
  const Stream blocking, apart(cudaStreamNonBlocking);
  Gate gate;
  ASSERT_EQ(cudaLaunchHostFunc(cudaStreamLegacy, Gate::wait, &gate), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(&to, &from, sizeof from, cudaMemcpyDefault, blocking.stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(&meanwhile, &from, sizeof from, cudaMemcpyDefault, apart.stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(apart.stream), cudaSuccess);
  EXPECT_EQ(meanwhile, 5);
  EXPECT_EQ(cudaStreamQuery(blocking.stream), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  EXPECT_EQ(to, 0);
  gate.open = true;
  EXPECT_EQ(cudaStreamSynchronize(blocking.stream), cudaSuccess);
  EXPECT_EQ(to, 5);
}

TEST(Cuda, AnEventOnTheDefaultStreamStandsForTheOthersWorkToo) {
  const Stream blocking;
  Gate gate;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(blocking.stream, Gate::wait, &gate), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);  // returns at once
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  gate.open = true;
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(blocking.stream), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(Cuda, DevicesHaveDefaultStreamsOfTheirOwn) {
  Gate gate;
  ASSERT_EQ(cudaLaunchHostFunc(nullptr, Gate::wait, &gate), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  gate.open = true;
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
}

TEST(Cuda, AThreadsOwnStreamIsOrderedByTheDefaultOne) {
  Gate gate;
  int from = 7, to = 0;
  ASSERT_EQ(cudaLaunchHostFunc(cudaStreamPerThread, Gate::wait, &gate), cudaSuccess);
  std::jthread([] { EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaSuccess); }).join();
  EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    from = 8;
    gate.open = true;
  });
  EXPECT_EQ(cudaMemcpy(&to, &from, sizeof to, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(to, 8);
  EXPECT_EQ(cudaStreamDestroy(cudaStreamPerThread), cudaErrorInvalidResourceHandle);
}

TEST(Cuda, ACollectiveOnTheDefaultStreamWaitsForTheDevicesOthers) {
  const Cliques c(2);
  float in[2] = {}, out[2] = {};
  cudaStream_t streams[2] = {};
  Gate gate;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cudaSetDevice(i), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&streams[i]), cudaSuccess);
    ASSERT_EQ(cudaLaunchHostFunc(streams[i], Gate::wait, &gate), cudaSuccess);
    ASSERT_EQ(cudaLaunchHostFunc(
                  streams[i], [](void* place) { *static_cast<float*>(place) = 5; }, &in[i]),
              cudaSuccess);
  }
  std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open = true;
  });
  ASSERT_TRUE(done(ncclGroupStart()));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(done(ncclAllReduce(&in[i], &out[i], 1, ncclFloat, ncclSum, c[i], nullptr)));
  ASSERT_TRUE(done(ncclGroupEnd()));
  EXPECT_EQ(out[0], 10);
  EXPECT_EQ(out[1], 10);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cudaSetDevice(i), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(streams[i]), cudaSuccess);
  }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

// Collectives come after earlier work on their stream: outside a group, in a group that also uses a stream of the
// program's, and on a thread's own stream.
TEST(Cuda, CollectivesOnEveryKindOfStreamAreInOrder) {
  const Cliques c(1);
  const Stream blocking, apart(cudaStreamNonBlocking);
  float in = 0, one = 0, two = 0;
  const auto late = [&](float value) {
    in = 0;
    const auto set = [](void* place) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      *static_cast<float*>(place) = 1;
    };
    EXPECT_EQ(cudaLaunchHostFunc(blocking.stream, set, &in), cudaSuccess);
    one = two = value;
  };
  late(0);
  EXPECT_TRUE(done(ncclAllReduce(&in, &one, 1, ncclFloat, ncclSum, c[0], cudaStreamLegacy)));
  EXPECT_EQ(one, 1);
  late(0);
  ASSERT_TRUE(done(ncclGroupStart()));
  EXPECT_TRUE(done(ncclAllReduce(&in, &one, 1, ncclFloat, ncclSum, c[0], nullptr)));
  EXPECT_TRUE(done(ncclAllReduce(&in, &two, 1, ncclFloat, ncclSum, c[0], apart.stream)));
  ASSERT_TRUE(done(ncclGroupEnd()));
  EXPECT_EQ(one, 1);
  EXPECT_EQ(two, 1);
  late(0);
  EXPECT_EQ(cudaLaunchHostFunc(
                nullptr, [](void*) {}, nullptr),
            cudaSuccess);
  EXPECT_TRUE(done(ncclAllReduce(&in, &one, 1, ncclFloat, ncclSum, c[0], cudaStreamPerThread)));
  EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  EXPECT_EQ(one, 1);
}

TEST(Cuda, WhatIsCopiedFromTheProgramsOwnMemoryMayChangeAtOnce) {
  int* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 2 * sizeof(int)), cudaSuccess);
  const Stream stream;
  Gate gate;
  int own = 3, back = 0;
  ASSERT_EQ(cudaLaunchHostFunc(stream.stream, Gate::wait, &gate), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(device, &own, sizeof own, cudaMemcpyHostToDevice, stream.stream), cudaSuccess);
  own = 4;
  gate.open = true;
  ASSERT_EQ(cudaMemcpyAsync(&back, device, sizeof back, cudaMemcpyDeviceToHost, stream.stream), cudaSuccess);
  EXPECT_EQ(back, 3);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(Cuda, EventsOrderStreamsAndTellTime) {
  const Stream first, second;
  cudaEvent_t begin = nullptr, end = nullptr;
  ASSERT_EQ(cudaEventCreate(&begin), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&end, cudaEventDefault), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorInvalidResourceHandle);  // not recorded
  Gate gate;
  ASSERT_EQ(cudaEventRecord(begin, first.stream), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(begin), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(first.stream, Gate::wait, &gate), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end, first.stream), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second.stream, end), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(end), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(second.stream), cudaErrorNotReady);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorNotReady);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  gate.open = true;
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_GE(milliseconds, 10);
  EXPECT_EQ(cudaEventDestroy(begin), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventQuery(end), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(end, nullptr), cudaErrorInvalidResourceHandle);
}

TEST(Cuda, HandlesThatAreNone) {
  cudaStream_t gone = nullptr;
  ASSERT_EQ(cudaStreamCreate(&gone), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(gone), cudaSuccess);
  char byte = 0;
  EXPECT_EQ(cudaStreamDestroy(gone), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamSynchronize(gone), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamQuery(gone), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaMemcpyAsync(&byte, &byte, 0, cudaMemcpyDefault, gone), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaMemsetAsync(&byte, 0, 1, gone), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaLaunchHostFunc(gone, Gate::wait, nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaLaunchHostFunc(nullptr, nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamCreate(nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamCreateWithFlags(&gone, 9), cudaErrorInvalidValue);
  EXPECT_EQ(cudaEventCreate(nullptr), cudaErrorInvalidValue);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidResourceHandle), "cudaErrorInvalidResourceHandle");
  EXPECT_STRNE(cudaGetErrorString(cudaErrorInvalidResourceHandle), cudaGetErrorString(cudaErrorUnknown));
}

TEST(Cuda, FunctionsOfTheProgramsRunInTurn) {
  const Stream stream;
  std::string said;
  const auto add = [](void* text) { static_cast<std::string*>(text)->push_back('a'); };
  const auto tell = [](cudaStream_t, cudaError_t status, void* text) {
    static_cast<std::string*>(text)->append(cudaGetErrorName(status));
  };
  EXPECT_EQ(cudaLaunchHostFunc_v2(stream.stream, add, &said, cudaHostTaskSpinWait), cudaSuccess);
  EXPECT_EQ(cudaStreamAddCallback(stream.stream, tell, &said, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream.stream), cudaSuccess);
  EXPECT_EQ(said, "acudaSuccess");
  EXPECT_EQ(cudaLaunchHostFunc_v2(stream.stream, add, &said, 2), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamAddCallback(stream.stream, nullptr, &said, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamAddCallback(stream.stream, tell, &said, 1), cudaErrorInvalidValue);
  unsigned flags = 9;
  EXPECT_EQ(cudaStreamGetFlags(stream.stream, &flags), cudaSuccess);
  EXPECT_EQ(flags, unsigned{cudaStreamDefault});
}

// The stream reports the failure to the call that asks first, and to the callback and the event that were queued after
// the operation.
TEST(Cuda, AnAbortedOperationIsToldByItsStream) {
  for (const bool polls : {false, true}) {
    ncclComm_t alone[2];
    ASSERT_TRUE(done(ncclCommInitAll(alone, 2, nullptr)));
    const Stream stream;
    cudaEvent_t event = nullptr;
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    int a = 1, b = 0;
    std::atomic<cudaError_t> told = cudaSuccess;
    EXPECT_TRUE(done(ncclAllReduce(&a, &b, 1, ncclInt, ncclSum, alone[0], stream.stream)));
    EXPECT_EQ(
        cudaStreamAddCallback(
            stream.stream,
            [](cudaStream_t, cudaError_t status, void* to) { *static_cast<std::atomic<cudaError_t>*>(to) = status; },
            &told, 0),
        cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, stream.stream), cudaSuccess);
    EXPECT_TRUE(done(ncclCommAbort(alone[0])));
    EXPECT_EQ(cudaEventSynchronize(event), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaEventQuery(event), cudaErrorLaunchFailure);
    cudaError_t state = cudaErrorNotReady;
    if (polls)
      while ((state = cudaStreamQuery(stream.stream)) == cudaErrorNotReady) std::this_thread::yield();
    else
      state = cudaStreamSynchronize(stream.stream);
    EXPECT_EQ(state, cudaErrorLaunchFailure);
    EXPECT_EQ(told, cudaErrorLaunchFailure);
    EXPECT_EQ(cudaStreamQuery(stream.stream), cudaSuccess);  // the failure is reported once
    EXPECT_TRUE(done(ncclCommAbort(alone[1])));
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  }
  cudaGetLastError();
}

TEST(Cuda, AFailedCollectiveIsToldByItsStream) {
  const Cliques c(1);
  ncclComm_t alone[2];
  ASSERT_TRUE(done(ncclCommInitAll(alone, 2, nullptr)));
  const Stream stream;
  int a = 1, b = 0;
  EXPECT_TRUE(done(ncclAllReduce(&a, &b, 1, ncclInt, ncclSum, alone[0], stream.stream)));
  EXPECT_TRUE(done(ncclCommAbort(alone[1])));
  EXPECT_EQ(cudaStreamSynchronize(stream.stream), cudaErrorLaunchFailure);
  EXPECT_TRUE(done(ncclCommAbort(alone[0])));
  cudaGetLastError();
}

}  // namespace
}  // namespace trellis::nccl
