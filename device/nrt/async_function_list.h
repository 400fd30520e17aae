// The functions of libnrt for queues, host-driven collectives, and messages between cores; see function_list.h.
#pragma once

#include "device/nrt/structures.h"

// clang-format off
#define TRELLIS_NRT_ASYNC(X)                                                                                           \
  X("2.28", Status, nrta_tensor_write, (Tensor*, const void*, std::uint64_t offset, std::uint64_t size, int queue,     \
                                        ErrorTracker*, Sequence*))                                                     \
  X("2.28", Status, nrta_tensor_read, (void*, Tensor*, std::uint64_t offset, std::uint64_t size, int queue,            \
                                       ErrorTracker*, Sequence*))                                                      \
  X("2.28", Status, nrta_tensor_copy, (Tensor*, std::uint64_t, Tensor*, std::uint64_t, std::uint64_t size, int queue,  \
                                       ErrorTracker*, Sequence*))                                                      \
  X("2.28", Status, nrta_execute_schedule, (Model*, const TensorSet*, TensorSet*, int queue, ErrorTracker*, Sequence*))\
  X("2.28", Status, nrta_cc_prepare, (CommInfo*, TensorList*, TensorList*, NrtDType, ReduceKind, CollectiveKind,            \
                                      CollectiveContext**))                                                            \
  X("2.28", Status, nrta_cc_schedule, (CollectiveContext**, int queue, ErrorTracker*, Sequence*))                      \
  X("2.27", Status, nrta_is_completed, (Sequence, bool*))                                                              \
  X("2.27", Status, nrta_get_sequence, (std::uint32_t core, ExecutionUnit, int queue, Sequence*))                               \
  X("2.28", Status, nrta_get_completion_handle, (Sequence, int* fd))                                                   \
  X("2.28", Status, nrta_error_tracker_create, (std::uint32_t core, ErrorTracker**))                                   \
  X("2.28", void, nrta_error_tracker_destroy, (ErrorTracker*))                                                         \
  X("2.28", Status, nrta_error_tracker_get_list, (ErrorTracker*, const AsyncError**, std::size_t*))                    \
  X("2.28", Status, nrt_cc_global_comm_init, (std::uint32_t vnc, std::uint32_t id, std::uint32_t devices))

#define TRELLIS_NRT_SEND_RECV(X)                                                                                       \
  X("2.27", Status, nrt_async_sendrecv_get_max_num_communicators_per_lnc, (int*))                                      \
  X("2.27", Status, nrt_async_sendrecv_get_max_num_pending_request, (int*))                                            \
  X("2.27", Status, nrt_async_sendrecv_init, (int core))                                                               \
  X("2.27", Status, nrt_async_sendrecv_close, (int core))                                                              \
  X("2.27", Status, nrt_async_sendrecv_connect, (const char* ip, int peer, int core, SendRecvComm**))                  \
  X("2.27", Status, nrt_async_sendrecv_accept, (const char* ip, int peer, int core, SendRecvComm**))                   \
  X("2.27", Status, nrt_async_sendrecv_test_comm, (SendRecvComm*, bool*))                                              \
  X("2.27", Status, nrt_async_sendrecv_send_tensor, (Tensor*, std::size_t, std::size_t, SendRecvComm*,                 \
                                                     SendRecvRequest**))                                               \
  X("2.27", Status, nrt_async_sendrecv_recv_tensor, (Tensor*, std::size_t, std::size_t, SendRecvComm*,                 \
                                                     SendRecvRequest**))                                               \
  X("2.27", Status, nrt_async_sendrecv_test_request, (SendRecvRequest*, bool*, std::size_t*))                          \
  X("2.27", Status, nrt_async_sendrecv_flush, (int core))
// clang-format on
