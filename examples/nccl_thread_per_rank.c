// NCCL's second way to start ranks: one thread for each device; one thread makes the id that all use. Communicators are
// made without blocking, for programs that want to be able to give up.
#include <cuda_runtime.h>
#include <nccl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define RANKS 2
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

static ncclUniqueId id;

// Sends to the next rank and receives from the previous one.
static void* run(void* argument) {
  const int rank = *(const int*)argument;
  float host[COUNT], *sent, *received;
  cudaStream_t stream;
  CHECK_CUDA(cudaSetDevice(rank));
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_CUDA(cudaMalloc((void**)&sent, sizeof host));
  CHECK_CUDA(cudaMalloc((void**)&received, sizeof host));
  for (int i = 0; i < COUNT; ++i) host[i] = (float)rank;
  CHECK_CUDA(cudaMemcpyAsync(sent, host, sizeof host, cudaMemcpyHostToDevice, stream));

  ncclComm_t comm;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t state = ncclCommInitRankConfig(&comm, RANKS, id, rank, &config);
  while (state == ncclInProgress) {
    sched_yield();
    CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
  }
  CHECK_NCCL(state);

  CHECK_NCCL(ncclGroupStart());
  CHECK_NCCL(ncclSend(sent, COUNT, ncclFloat, (rank + 1) % RANKS, comm, stream));
  CHECK_NCCL(ncclRecv(received, COUNT, ncclFloat, (rank + RANKS - 1) % RANKS, comm, stream));
  CHECK_NCCL(ncclGroupEnd());
  CHECK_CUDA(cudaMemcpyAsync(host, received, sizeof host, cudaMemcpyDeviceToHost, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  int wrong = 0;
  for (int i = 0; i < COUNT; ++i) wrong += host[i] != (float)((rank + RANKS - 1) % RANKS);
  printf("rank %d: %d wrong\n", rank, wrong);

  CHECK_NCCL(ncclCommDestroy(comm));
  CHECK_CUDA(cudaFree(sent));
  CHECK_CUDA(cudaFree(received));
  CHECK_CUDA(cudaStreamDestroy(stream));
  if (wrong != 0) exit(1);
  return NULL;
}

int main(void) {
  pthread_t threads[RANKS];
  int ranks[RANKS];
  CHECK_NCCL(ncclGetUniqueId(&id));
  for (int r = 0; r < RANKS; ++r) {
    ranks[r] = r;
    if (pthread_create(&threads[r], NULL, run, &ranks[r]) != 0) return perror("pthread_create"), 1;
  }
  for (int r = 0; r < RANKS; ++r) pthread_join(threads[r], NULL);
  return 0;
}
