// CUDA's streams while several threads use them.
#include <atomic>
#include <thread>

#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

// Calls that wait for all streams also wait for the work of a stream that another thread is destroying, and do not take
// the destroyed stream for a failed one.
TEST(Cuda, AStreamThatAnotherThreadDestroysIsWaitedFor) {
  struct Work {
    static void run(void* work) {
      auto* const w = static_cast<Work*>(work);
      while (!w->open) std::this_thread::yield();
      w->done = true;
    }
    std::atomic<bool> open = false, done = false;
  };
  for (const bool frees : {false, true}) {
    cudaStream_t stream = nullptr;
    void* memory = nullptr;
    Work work;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
    ASSERT_EQ(cudaLaunchHostFunc(stream, Work::run, &work), cudaSuccess);
    const std::jthread other([&] { EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess); });
    while (cudaStreamQuery(stream) != cudaErrorInvalidResourceHandle) std::this_thread::yield();
    const std::jthread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      work.open = true;
    });
    EXPECT_EQ(frees ? cudaFree(memory) : cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_TRUE(work.done);
    if (!frees) {
      EXPECT_EQ(cudaFree(memory), cudaSuccess);
    }
  }
  cudaGetLastError();
}

}  // namespace
}  // namespace trellis::nccl
