// NCCL's third way to start ranks: one process for each device. MPI starts them and sends the id from rank 0 to all:
//
//   mpirun -n 2 ./nccl_process_per_rank
#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

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
#define CHECK_MPI(call) CHECK(call, MPI_SUCCESS, "MPI failed")

int main(int argc, char** argv) {
  int rank, ranks, local_rank;
  MPI_Comm local;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
  CHECK_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &local));
  CHECK_MPI(MPI_Comm_rank(local, &local_rank));

  ncclUniqueId id;
  if (rank == 0) CHECK_NCCL(ncclGetUniqueId(&id));
  CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));

  float host[COUNT], *data;
  cudaStream_t stream;
  ncclComm_t comm;
  CHECK_CUDA(cudaSetDevice(local_rank));
  CHECK_CUDA(cudaMalloc((void**)&data, sizeof host));
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_NCCL(ncclCommInitRank(&comm, ranks, id, rank));

  for (int i = 0; i < COUNT; ++i) host[i] = (float)(rank + 1);
  CHECK_CUDA(cudaMemcpyAsync(data, host, sizeof host, cudaMemcpyHostToDevice, stream));
  CHECK_NCCL(ncclAllReduce(data, data, COUNT, ncclFloat, ncclSum, comm, stream));
  CHECK_CUDA(cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  int wrong = 0;
  for (int i = 0; i < COUNT; ++i) wrong += host[i] != (float)ranks * (float)(ranks + 1) / 2;
  printf("rank %d of %d: %d wrong\n", rank, ranks, wrong);

  CHECK_NCCL(ncclCommFinalize(comm));
  CHECK_NCCL(ncclCommDestroy(comm));
  CHECK_CUDA(cudaFree(data));
  CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_MPI(MPI_Finalize());
  return wrong != 0;
}
