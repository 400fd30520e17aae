// NCCL's first way to start ranks: one thread drives all devices; ncclCommInitAll makes their communicators at once.
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

#define DEVICES 2
#define COUNT 1024

#define CHECK(call, good, text)                                   \
  do {                                                            \
    const int result = (int)(call);                               \
    if (result != (good)) {                                       \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, (text)); \
      exit(1);                                                    \
    }                                                             \
  } while (0)
#define CHECK_CUDA(call) CHECK(call, cudaSuccess, cudaGetErrorString((cudaError_t)result))
#define CHECK_NCCL(call) CHECK(call, ncclSuccess, ncclGetLastError(NULL))

int main(void) {
  ncclComm_t comms[DEVICES];
  cudaStream_t streams[DEVICES];
  float *sent[DEVICES], *received[DEVICES], host[COUNT];
  const int devices[DEVICES] = {0, 1};

  for (int i = 0; i < DEVICES; ++i) {
    CHECK_CUDA(cudaSetDevice(devices[i]));
    CHECK_CUDA(cudaMalloc((void**)&sent[i], sizeof host));
    CHECK_CUDA(cudaMalloc((void**)&received[i], sizeof host));
    for (int k = 0; k < COUNT; ++k) host[k] = (float)(i + 1);
    CHECK_CUDA(cudaMemcpy(sent[i], host, sizeof host, cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemset(received[i], 0, sizeof host));
    CHECK_CUDA(cudaStreamCreate(&streams[i]));
  }
  CHECK_NCCL(ncclCommInitAll(comms, DEVICES, devices));

  CHECK_NCCL(ncclGroupStart());
  for (int i = 0; i < DEVICES; ++i)
    CHECK_NCCL(ncclAllReduce(sent[i], received[i], COUNT, ncclFloat, ncclSum, comms[i], streams[i]));
  CHECK_NCCL(ncclGroupEnd());

  int wrong = 0;
  for (int i = 0; i < DEVICES; ++i) {
    CHECK_CUDA(cudaSetDevice(devices[i]));
    CHECK_CUDA(cudaStreamSynchronize(streams[i]));
    CHECK_CUDA(cudaMemcpy(host, received[i], sizeof host, cudaMemcpyDeviceToHost));
    for (int k = 0; k < COUNT; ++k) wrong += host[k] != 3;
  }
  for (int i = 0; i < DEVICES; ++i) {
    CHECK_NCCL(ncclCommDestroy(comms[i]));
    CHECK_CUDA(cudaStreamDestroy(streams[i]));
    CHECK_CUDA(cudaFree(sent[i]));
    CHECK_CUDA(cudaFree(received[i]));
  }
  printf("%d devices: %d wrong\n", DEVICES, wrong);
  return wrong != 0;
}
