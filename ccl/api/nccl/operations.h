// Collectives, sends and receives, groups and reduction operators of NCCL's host API.
//
// Every rank makes the same calls, with the same count, type, operator and root. A call that does not match the others
// ends with ncclInvalidUsage. On a stream a call returns at once; ncclCommGetAsyncError reports its error.
#pragma once

#include "ccl/api/nccl/communicator.h"

#ifdef __cplusplus
extern "C" {
#endif

// `count` is the size of the whole buffer. In place if sendbuff == recvbuff. Bcast is Broadcast in place.
TRELLIS_NCCL(ncclResult_t, ncclAllReduce, const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
             ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclReduce, const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
             ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclBroadcast, const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
             int root, ncclComm_t comm, cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclBcast, void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
             cudaStream_t stream);

// `count` is the size of one block; the larger buffer has one block for each rank. In place if the smaller buffer is
// this rank's own block of the larger one.
TRELLIS_NCCL(ncclResult_t, ncclReduceScatter, const void* sendbuff, void* recvbuff, size_t recvcount,
             ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclAllGather, const void* sendbuff, void* recvbuff, size_t sendcount,
             ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclAlltoAll, const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
             ncclComm_t comm, cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclGather, const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
             int root, ncclComm_t comm, cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclScatter, const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
             int root, ncclComm_t comm, cudaStream_t stream);

// The same, with a configuration for the call; NULL: none.
TRELLIS_NCCL(ncclResult_t, ncclAllReduceConfig, const void* sendbuff, void* recvbuff, size_t count,
             ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
             const ncclCollConfig_t* config);
TRELLIS_NCCL(ncclResult_t, ncclReduceConfig, const void* sendbuff, void* recvbuff, size_t count,
             ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
             const ncclCollConfig_t* config);
TRELLIS_NCCL(ncclResult_t, ncclBroadcastConfig, const void* sendbuff, void* recvbuff, size_t count,
             ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config);
TRELLIS_NCCL(ncclResult_t, ncclReduceScatterConfig, const void* sendbuff, void* recvbuff, size_t recvcount,
             ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
             const ncclCollConfig_t* config);
TRELLIS_NCCL(ncclResult_t, ncclAllGatherConfig, const void* sendbuff, void* recvbuff, size_t sendcount,
             ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config);
TRELLIS_NCCL(ncclResult_t, ncclAlltoAllConfig, const void* sendbuff, void* recvbuff, size_t count,
             ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config);
TRELLIS_NCCL(ncclResult_t, ncclGatherConfig, const void* sendbuff, void* recvbuff, size_t count,
             ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config);
TRELLIS_NCCL(ncclResult_t, ncclScatterConfig, const void* sendbuff, void* recvbuff, size_t count,
             ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config);

// A send matches the receive with the same count and type at its peer, in order; others are rejected. Sends and
// receives that must progress at the same time belong in a group.
TRELLIS_NCCL(ncclResult_t, ncclSend, const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
             ncclComm_t comm, cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclRecv, void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
             cudaStream_t stream);

// One-sided operations: ncclInvalidUsage, because ranks here can read each other's memory but not write it.
TRELLIS_NCCL(ncclResult_t, ncclPutSignal, const void* localbuff, size_t count, ncclDataType_t datatype, int peer,
             ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
             cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclSignal, int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
             cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclWaitSignal, int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm,
             cudaStream_t stream);

// Between start and the outermost end, this thread's calls are recorded. The end runs them together: first those that
// create communicators, then sends and receives at once, then each communicator's collectives in order. If a call
// failed, the end returns that failure and does nothing of the group. SimulateEnd discards the group and tells how many
// microseconds it would take on the machine that TRELLIS_SIMULATE names; without that variable, NCCL_UNDEF_FLOAT.
TRELLIS_NCCL(ncclResult_t, ncclGroupStart, void);
TRELLIS_NCCL(ncclResult_t, ncclGroupEnd, void);
TRELLIS_NCCL(ncclResult_t, ncclGroupSimulateEnd, ncclSimInfo_t* simInfo);

// An operator that multiplies this rank's elements by the scalar, which has the type `datatype`, before adding them. It
// serves collectives of `comm` and `datatype`. ncclScalarHostImmediate: the scalar is read now; ncclScalarDevice: each
// call reads it, after the work that its stream holds.
TRELLIS_NCCL(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
             ncclScalarResidence_t residence, ncclComm_t comm);
TRELLIS_NCCL(ncclResult_t, ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm);

#ifdef __cplusplus
}
#endif
