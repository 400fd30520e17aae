// What functions of the program may call while a stream runs them.
#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

struct Stream {
  Stream() { EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess); }
  ~Stream() { cudaStreamDestroy(stream); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t stream = nullptr;
};

// CUDA forbids this. Calls that would wait, perhaps for the function's own stream, are refused; in callbacks too.
TEST(Cuda, AFunctionThatAStreamRunsCannotWaitForStreams) {
  struct Asked {
    cudaStream_t own = nullptr;
    cudaEvent_t event = nullptr;
    ncclComm_t comm = nullptr;
    int* memory = nullptr;
    void ask() {
      int here = 7;
      cudas = {cudaStreamSynchronize(own),
               cudaStreamSynchronize(nullptr),
               cudaStreamDestroy(own),
               cudaDeviceSynchronize(),
               cudaDeviceReset(),
               cudaEventSynchronize(event),
               cudaFree(memory),
               cudaMemcpy(memory, &here, sizeof here, cudaMemcpyDefault),
               cudaMemcpyAsync(&here, memory, sizeof here, cudaMemcpyDeviceToHost, own),
               cudaMemset(memory, 1, sizeof here)};
      ncclComm_t made = nullptr;
      nccls = {ncclAllReduce(&here, &here, 1, ncclInt, ncclSum, comm, nullptr),
               ncclGroupStart(),
               ncclCommFinalize(comm),
               ncclCommDestroy(comm),
               ncclCommInitAll(&made, 1, nullptr),
               ncclCommSplit(comm, 0, 0, &made, nullptr)};
      device = 9;
      cudaGetDevice(&device);
    }
    std::vector<cudaError_t> cudas = {};
    std::vector<ncclResult_t> nccls = {};
    int device = 9;
  };
  for (const bool on_default : {false, true})
    for (const bool callback : {false, true}) {
      const Cliques c(1);
      const Stream own;
      Asked asked{.own = own.stream, .comm = c[0]};
      ASSERT_EQ(cudaEventCreate(&asked.event), cudaSuccess);
      ASSERT_EQ(cudaMalloc(&asked.memory, sizeof(int)), cudaSuccess);
      const cudaStream_t stream = on_default ? nullptr : own.stream;
      if (callback)
        ASSERT_EQ(cudaStreamAddCallback(
                      stream, [](cudaStream_t, cudaError_t, void* a) { static_cast<Asked*>(a)->ask(); }, &asked, 0),
                  cudaSuccess);
      else
        ASSERT_EQ(cudaLaunchHostFunc(
                      stream, [](void* a) { static_cast<Asked*>(a)->ask(); }, &asked),
                  cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(asked.cudas, std::vector(10, cudaErrorNotPermitted));
      EXPECT_EQ(asked.nccls, std::vector(6, ncclInvalidUsage));
      EXPECT_EQ(asked.device, 0) << "what does not wait is no mistake";
      EXPECT_EQ(cudaFree(asked.memory), cudaSuccess);
      EXPECT_EQ(cudaEventDestroy(asked.event), cudaSuccess);
    }
  cudaGetLastError();
}

}  // namespace
}  // namespace trellis::nccl
