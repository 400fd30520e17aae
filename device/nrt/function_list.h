// The functions of libnrt for memory, programs and cores: X(version of the SDK that has it, result, name, parameters).
// The oldest public headers that were looked at are of 2.7 and 2.27: a function that they have may be older. The
// headers of 2.28 lack nrt_get_dmabuf_fd_v2; its documentation names it, and libfabric declares it.
#pragma once

#include "device/nrt/structures.h"

// clang-format off
#define TRELLIS_NRT_CORE(X)                                                                                            \
  X("2.7", Status, nrt_init, (Framework, const char* framework_version, const char* fal_version))                      \
  X("2.7", void, nrt_close, ())                                                                                        \
  X("2.7", Status, nrt_load, (const void*, std::size_t, std::int32_t vnc, std::int32_t count, Model**))                \
  X("2.7", Status, nrt_load_collectives, (const void*, std::size_t, std::int32_t vnc, std::int32_t count,              \
                                          std::uint32_t id, std::uint32_t devices, Model**))                           \
  X("2.7", Status, nrt_unload, (Model*))                                                                               \
  X("2.7", Status, nrt_get_model_nc_count, (const Model*, std::uint32_t*))                                             \
  X("2.27", Status, nrt_get_model_vnc_count, (const Model*, std::uint32_t*))                                           \
  X("2.7", Status, nrt_get_total_nc_count, (std::uint32_t*))                                                           \
  X("2.27", Status, nrt_get_total_vnc_count, (std::uint32_t*))                                                         \
  X("2.7", Status, nrt_get_visible_nc_count, (std::uint32_t*))                                                         \
  X("2.27", Status, nrt_get_visible_vnc_count, (std::uint32_t*))                                                       \
  X("2.27", Status, nrt_get_instance_info, (InstanceInfo*, std::size_t))                                               \
  X("2.7", Status, nrt_get_version, (Version*, std::size_t))                                                           \
  X("2.27", const char*, nrt_get_status_as_str, (Status))                                                              \
  X("2.7", Status, nrt_allocate_tensor_set, (TensorSet**))                                                             \
  X("2.7", void, nrt_destroy_tensor_set, (TensorSet**))                                                                \
  X("2.7", Status, nrt_add_tensor_to_tensor_set, (TensorSet*, const char*, Tensor*))                                   \
  X("2.7", Status, nrt_get_tensor_from_tensor_set, (TensorSet*, const char*, Tensor**))                                \
  X("2.7", Status, nrt_execute, (Model*, const TensorSet*, TensorSet*))                                                \
  X("2.7", Status, nrt_execute_repeat, (Model*, const TensorSet*, TensorSet*, int times))                              \
  X("2.7", Status, nrt_tensor_allocate, (TensorPlacement, int vnc, std::size_t, const char*, Tensor**))                      \
  X("2.7", void, nrt_tensor_free, (Tensor**))                                                                          \
  X("2.7", Status, nrt_tensor_read, (const Tensor*, void*, std::size_t offset, std::size_t size))                      \
  X("2.7", Status, nrt_tensor_write, (Tensor*, const void*, std::size_t offset, std::size_t size))                     \
  X("2.27", Status, nrt_tensor_read_batch, (const TensorBatch*, std::uint64_t, bool unsafe))                                 \
  X("2.27", Status, nrt_tensor_write_batch, (const TensorBatch*, std::uint64_t, bool unsafe))                                \
  X("2.7", Status, nrt_tensor_copy, (const Tensor*, std::size_t, Tensor*, std::size_t, std::size_t size))              \
  X("2.7", std::size_t, nrt_tensor_get_size, (const Tensor*))                                                          \
  X("2.7", Status, nrt_tensor_memset, (Tensor*, std::uint64_t offset, int value, std::size_t size))                    \
  X("2.7", Status, nrt_tensor_allocate_empty, (const char*, Tensor**))                                                 \
  X("2.7", Status, nrt_tensor_attach_buffer, (Tensor*, void*, std::size_t))                                            \
  X("2.7", Status, nrt_tensor_allocate_slice, (const Tensor*, std::size_t, std::size_t, const char*, Tensor**))        \
  X("2.7", void*, nrt_tensor_get_va, (const Tensor*))                                                                  \
  X("2.27", Status, nrt_tensor_get_device_allocation_info, (const Tensor*, AllocationInfo*))                           \
  X("2.27", Status, nrt_tensor_check_output_completion, (const Tensor*, std::int64_t timeout_us, std::uint64_t))       \
  X("2.27", Status, nrt_tensor_reset_output_completion, (Tensor*))                                                     \
  X("2.27", Status, nrt_get_dmabuf_fd, (std::uint64_t va, std::uint64_t size, int* fd))                                \
  X("2.30", Status, nrt_get_dmabuf_fd_v2, (std::uint64_t va, std::uint64_t size, int* fd, std::uint64_t* offset))      \
  X("2.27", Status, nrt_host_device_id_get, (int, std::uint32_t*))                                                     \
  X("2.27", Status, nrt_host_device_id_rid_map_get, (std::uint32_t*, std::uint32_t*))                                  \
  X("2.27", Status, nrt_get_hbm_mmap_va, (int device, int hbm, void**, std::size_t*))                                  \
  X("2.25", Status, nrt_get_vnc_memory_stats, (std::uint32_t vnc, MemoryStats*, std::size_t, std::size_t*))            \
  X("2.28", Status, nrt_get_attached_efa_bdf, (const void* va, char*, std::size_t*))

#define TRELLIS_NRT_EXPERIMENTAL(X)                                                                                    \
  X("2.7", Status, nrt_get_model_tensor_info, (Model*, TensorInfoArray**))                                             \
  X("2.7", Status, nrt_free_model_tensor_info, (TensorInfoArray*))                                                     \
  X("2.7", Status, nrt_get_model_instance_count, (Model*, std::uint32_t*))                                             \
  X("2.27", Status, nrt_get_model_info, (const Model*, ModelInfo*, std::size_t, std::size_t*))                         \
  X("2.7", Status, nrt_trace_start, (bool))                                                                            \
  X("2.7", Status, nrt_trace_stop, (const char* file))                                                                 \
  X("2.7", void*, nrt_get_libnccl_net, (int* error, char* message, std::size_t))                                       \
  X("2.7", Status, nrt_set_pool_eng_ucode, (const MicrocodeInfo*))                                                     \
  X("2.7", Status, nrt_memcpy_to_device, (void*, const void*, std::size_t))                                            \
  X("2.27", Status, nrt_register_async_exec_callback, (ExecCallback, void*))                                           \
  X("2.27", Status, nrt_async_drain_queued_execs, (std::int32_t vnc))                                                  \
  X("2.27", Status, nrt_build_global_comm, (std::int32_t vnc, std::uint32_t id, std::uint32_t devices))                \
  X("2.27", Status, nrt_barrier, (std::int32_t vnc, std::uint32_t id, std::uint32_t devices))                          \
  X("2.27", Status, nrt_all_gather, (std::int32_t vnc, std::uint32_t id, std::uint32_t devices, std::uint32_t bytes,   \
                                     void* input, void* output))
// clang-format on
