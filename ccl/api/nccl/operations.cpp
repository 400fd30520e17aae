#include "ccl/api/nccl/operations.h"

#include "ccl/api/nccl/default_stream_order.h"
#include "ccl/api/nccl/nccl_argument_checks.h"
#include "ccl/api/nccl/nccl_error.h"
#include "ccl/api/nccl/translate.h"

using namespace trellis::nccl;

namespace {

// Records the call in the open group, for ncclGroupSimulateEnd.
void note(const trellis_call& call, const NcclComm& nccl_comm) {
  const RankAndSize place = nccl_comm.place();
  const bool whole = call.collective == TRELLIS_ALL_REDUCE || call.collective == TRELLIS_BROADCAST ||
                     call.collective == TRELLIS_REDUCE;
  const std::size_t blocks = whole ? 1 : static_cast<std::size_t>(place.ranks);
  note_in_group(
      {nccl_comm.comm(), place, call.collective, call.count * blocks * trellis_type_size(call.type), call.root, false});
}

void note_message(std::size_t count, trellis_type type, int peer, bool sends, const NcclComm& nccl_comm) {
  note_in_group({nccl_comm.comm(), nccl_comm.place(), TRELLIS_SEND_RECV, count * trellis_type_size(type), peer, sends});
}

// Arguments that all operations have.
struct Buffers {
  const void* in;
  void* out;
  size_t count;
  ncclDataType_t type;
};

// `complete` sets the other arguments; it gets the communicator too.
template <class Complete>
ncclResult_t run(const ParameterNames& f, trellis_collective collective, const Buffers& b, int root, ncclComm_t comm,
                 cudaStream_t stream, Complete&& complete) {
  return guarded([&] {
    const auto nccl_comm = nccl_comms().use(comm);
    const trellis_comm own = nccl_comm->for_operations();
    trellis_call call = TRELLIS_CALL_INIT;
    call.collective = collective;
    call.in = b.in;
    call.out = b.out;
    call.count = b.count;
    call.type = type_of(b.type);
    call.root = root;
    check(f, call, *nccl_comm);
    complete(call, *nccl_comm);
    note(call, *nccl_comm);
    return trellis_run(own, &call, enter(*nccl_comm, stream));
  });
}

ncclResult_t move(const ParameterNames& f, trellis_collective collective, const Buffers& b, int root, ncclComm_t comm,
                  cudaStream_t stream) {
  return run(f, collective, b, root, comm, stream, [](trellis_call&, const NcclComm&) {});
}

ncclResult_t reduce(const ParameterNames& f, trellis_collective collective, const Buffers& b, ncclRedOp_t op, int root,
                    ncclComm_t comm, cudaStream_t stream) {
  return run(f, collective, b, root, comm, stream, [&](trellis_call& call, const NcclComm& nccl_comm) {
    set_reduction(call, op, nccl_comm, b.type, stream);
  });
}

// Checks the arguments before it refuses the call, so that a program hears of its own mistakes first.
ncclResult_t refuse_one_sided(const char* function, ncclComm_t comm, int peer) {
  return guarded([&] {
    const auto nccl_comm = nccl_comms().use(comm);
    nccl_comm->for_operations();
    check_peer(function, peer, *nccl_comm);
    refuse_usage("{}: one-sided operations need memory that peers can write, and ranks here can only read each other's",
                 function);
  });
}

}  // namespace

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return reduce({"ncclAllReduce"}, TRELLIS_ALL_REDUCE, {sendbuff, recvbuff, count, datatype}, op, 0, comm, stream);
}
TRELLIS_NCCL_TWIN(ncclAllReduce);

ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return reduce({"ncclReduce"}, TRELLIS_REDUCE, {sendbuff, recvbuff, count, datatype}, op, root, comm, stream);
}
TRELLIS_NCCL_TWIN(ncclReduce);

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return reduce({.name = "ncclReduceScatter", .count = "recvcount"}, TRELLIS_REDUCE_SCATTER,
                {sendbuff, recvbuff, recvcount, datatype}, op, 0, comm, stream);
}
TRELLIS_NCCL_TWIN(ncclReduceScatter);

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return move({"ncclBroadcast"}, TRELLIS_BROADCAST, {sendbuff, recvbuff, count, datatype}, root, comm, stream);
}
TRELLIS_NCCL_TWIN(ncclBroadcast);

ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return move({"ncclBcast", "buff", "buff"}, TRELLIS_BROADCAST, {buff, buff, count, datatype}, root, comm, stream);
}
TRELLIS_NCCL_TWIN(ncclBcast);

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream) {
  return move({.name = "ncclAllGather", .count = "sendcount"}, TRELLIS_ALL_GATHER,
              {sendbuff, recvbuff, sendcount, datatype}, 0, comm, stream);
}
TRELLIS_NCCL_TWIN(ncclAllGather);

ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                          cudaStream_t stream) {
  return move({"ncclAlltoAll"}, TRELLIS_ALL_TO_ALL, {sendbuff, recvbuff, count, datatype}, 0, comm, stream);
}
TRELLIS_NCCL_TWIN(ncclAlltoAll);

ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return move({"ncclGather"}, TRELLIS_GATHER, {sendbuff, recvbuff, count, datatype}, root, comm, stream);
}
TRELLIS_NCCL_TWIN(ncclGather);

ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return move({"ncclScatter"}, TRELLIS_SCATTER, {sendbuff, recvbuff, count, datatype}, root, comm, stream);
}
TRELLIS_NCCL_TWIN(ncclScatter);

ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return guarded([&] {
    const auto nccl_comm = nccl_comms().use(comm);
    const trellis_comm own = nccl_comm->for_operations();
    const trellis_type type = type_of(datatype);
    check({"ncclSend"}, "sendbuff", sendbuff, count, type, peer, *nccl_comm);
    note_message(count, type, peer, true, *nccl_comm);
    return trellis_send(own, sendbuff, count, type, peer, enter(*nccl_comm, stream));
  });
}
TRELLIS_NCCL_TWIN(ncclSend);

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return guarded([&] {
    const auto nccl_comm = nccl_comms().use(comm);
    const trellis_comm own = nccl_comm->for_operations();
    const trellis_type type = type_of(datatype);
    check({"ncclRecv"}, "recvbuff", recvbuff, count, type, peer, *nccl_comm);
    note_message(count, type, peer, false, *nccl_comm);
    return trellis_recv(own, recvbuff, count, type, peer, enter(*nccl_comm, stream));
  });
}
TRELLIS_NCCL_TWIN(ncclRecv);

ncclResult_t ncclPutSignal(const void*, size_t, ncclDataType_t, int peer, ncclWindow_t, size_t, int, int, unsigned int,
                           ncclComm_t comm, cudaStream_t) {
  return refuse_one_sided("ncclPutSignal", comm, peer);
}
TRELLIS_NCCL_TWIN(ncclPutSignal);

ncclResult_t ncclSignal(int peer, int, int, unsigned int, ncclComm_t comm, cudaStream_t) {
  return refuse_one_sided("ncclSignal", comm, peer);
}
TRELLIS_NCCL_TWIN(ncclSignal);

ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, cudaStream_t) {
  const ncclResult_t fits = guarded([&] {
    require(signalDescs, "signalDescs");
    if (nDesc < 1) refuse_argument("nDesc {}: expected at least 1", nDesc);
  });
  return fits == ncclSuccess ? refuse_one_sided("ncclWaitSignal", comm, signalDescs[0].peer) : fits;
}
TRELLIS_NCCL_TWIN(ncclWaitSignal);

ncclResult_t ncclGroupStart(void) {
  return guarded([] { open_group(); });
}
TRELLIS_NCCL_TWIN(ncclGroupStart);

ncclResult_t ncclGroupEnd(void) {
  return guarded([] { return close_group(); });
}
TRELLIS_NCCL_TWIN(ncclGroupEnd);

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  return guarded([&] {
    if (simInfo != nullptr) {
      check(*simInfo);
      simInfo->estimatedTime = NCCL_UNDEF_FLOAT;
    }
    const std::vector<EstimatedCall> calls = calls_of_group();
    const trellis_result result = checked(forget_group());
    if (simInfo != nullptr) simInfo->estimatedTime = estimate(calls);
    return result;
  });
}
TRELLIS_NCCL_TWIN(ncclGroupSimulateEnd);

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  return guarded([&] {
    require(op, "op");
    require(scalar, "scalar");
    const auto nccl_comm = nccl_comms().use(comm);
    PreMulSumOp scaling{datatype, scalar, 1};
    if (residence == ncclScalarHostImmediate) {
      scaling.scalar = nullptr;
      checked(trellis_type_load(type_of(datatype), scalar, &scaling.factor));
    } else if (residence != ncclScalarDevice) {
      refuse_argument("residence {}: expected 0 or 1", static_cast<int>(residence));
    }
    type_of(datatype);
    *op = static_cast<ncclRedOp_t>(nccl_comm->add(scaling));
  });
}
TRELLIS_NCCL_TWIN(ncclRedOpCreatePreMulSum);

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return guarded([&] {
    if (op >= 0 && op < ncclNumOps) refuse_argument("op {} is built in and can't be destroyed", static_cast<int>(op));
    nccl_comms().use(comm)->remove(op);
  });
}
TRELLIS_NCCL_TWIN(ncclRedOpDestroy);
