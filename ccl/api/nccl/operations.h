// Collectives, sends and receives, groups and reduction operators of NCCL's host API.
//
// Every rank makes the same calls, with the same count, type, operator and root; a call that does not fit the others'
// ends with ncclInvalidUsage. On a stream a call returns at once, and how it ended is told by ncclCommGetAsyncError.
#pragma once

#include "ccl/api/nccl/communicator.h"

#ifdef __cplusplus
extern "C" {
#endif

// Of the whole buffers, `count` elements; in place where sendbuff == recvbuff. Bcast is Broadcast in place.
TRELLIS_NCCL(ncclResult_t, ncclAllReduce, const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
             ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclReduce, const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
             ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclBroadcast, const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
             int root, ncclComm_t comm, cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclBcast, void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
             cudaStream_t stream);

// Of blocks, one for each rank, in the larger buffer: a block has so many elements. In place where the smaller buffer
// is one's own block of the larger one.
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

// A send meets the receive of the same count and type at its peer, in order; others are refused. Those that must
// go on at the same time belong in a group.
TRELLIS_NCCL(ncclResult_t, ncclSend, const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
             ncclComm_t comm, cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclRecv, void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
             cudaStream_t stream);

// One-sided operations: ncclInvalidUsage, since ranks here can read each other's memory and not write it.
TRELLIS_NCCL(ncclResult_t, ncclPutSignal, const void* localbuff, size_t count, ncclDataType_t datatype, int peer,
             ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
             cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclSignal, int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
             cudaStream_t stream);
TRELLIS_NCCL(ncclResult_t, ncclWaitSignal, int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm,
             cudaStream_t stream);

// Between start and the outermost end, calls of this thread are noted; the end runs them together: what makes
// communicators first, then sends and receives at once, then the collectives of each communicator in order. A call that
// failed makes the end return its failure, and nothing of the group is done. SimulateEnd does nothing of it either; the
// time it would take is not known here.
TRELLIS_NCCL(ncclResult_t, ncclGroupStart, void);
TRELLIS_NCCL(ncclResult_t, ncclGroupEnd, void);
TRELLIS_NCCL(ncclResult_t, ncclGroupSimulateEnd, ncclSimInfo_t* simInfo);

// An operator that multiplies this rank's elements by the scalar, which is of the type, before it adds them up; for
// collectives of `comm` and `datatype`. With ncclScalarHostImmediate the scalar is read now, with ncclScalarDevice by
// each call, when what its stream held before is done.
TRELLIS_NCCL(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
             ncclScalarResidence_t residence, ncclComm_t comm);
TRELLIS_NCCL(ncclResult_t, ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm);

#ifdef __cplusplus
}
#endif
