// Collectives with a configuration: it is checked, and the collective then runs as without it.
#include "ccl/api/nccl/nccl_error.h"
#include "ccl/api/nccl/operations.h"
#include "ccl/api/nccl/translate.h"

using namespace trellis::nccl;

namespace {

// In a group, an invalid call makes the group fail.
template <class Call>
ncclResult_t told(const char* function, const ncclCollConfig_t* config, Call&& call) {
  const ncclResult_t fits = guarded([&] { check(function, config); });
  return fits == ncclSuccess ? call() : fits;
}

}  // namespace

ncclResult_t ncclAllReduceConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                 ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return told("ncclAllReduceConfig", config,
              [&] { return ncclAllReduce(sendbuff, recvbuff, count, datatype, op, comm, stream); });
}
TRELLIS_NCCL_TWIN(ncclAllReduceConfig);

ncclResult_t ncclReduceConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                              ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                              const ncclCollConfig_t* config) {
  return told("ncclReduceConfig", config,
              [&] { return ncclReduce(sendbuff, recvbuff, count, datatype, op, root, comm, stream); });
}
TRELLIS_NCCL_TWIN(ncclReduceConfig);

ncclResult_t ncclBroadcastConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return told("ncclBroadcastConfig", config,
              [&] { return ncclBroadcast(sendbuff, recvbuff, count, datatype, root, comm, stream); });
}
TRELLIS_NCCL_TWIN(ncclBroadcastConfig);

ncclResult_t ncclReduceScatterConfig(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                                     ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                     const ncclCollConfig_t* config) {
  return told("ncclReduceScatterConfig", config,
              [&] { return ncclReduceScatter(sendbuff, recvbuff, recvcount, datatype, op, comm, stream); });
}
TRELLIS_NCCL_TWIN(ncclReduceScatterConfig);

ncclResult_t ncclAllGatherConfig(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return told("ncclAllGatherConfig", config,
              [&] { return ncclAllGather(sendbuff, recvbuff, sendcount, datatype, comm, stream); });
}
TRELLIS_NCCL_TWIN(ncclAllGatherConfig);

ncclResult_t ncclAlltoAllConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return told("ncclAlltoAllConfig", config,
              [&] { return ncclAlltoAll(sendbuff, recvbuff, count, datatype, comm, stream); });
}
TRELLIS_NCCL_TWIN(ncclAlltoAllConfig);

ncclResult_t ncclGatherConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                              ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return told("ncclGatherConfig", config,
              [&] { return ncclGather(sendbuff, recvbuff, count, datatype, root, comm, stream); });
}
TRELLIS_NCCL_TWIN(ncclGatherConfig);

ncclResult_t ncclScatterConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return told("ncclScatterConfig", config,
              [&] { return ncclScatter(sendbuff, recvbuff, count, datatype, root, comm, stream); });
}
TRELLIS_NCCL_TWIN(ncclScatterConfig);
