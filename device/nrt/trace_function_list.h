// The functions of libnrt that record what happens; see function_list.h.
#pragma once

#include "device/nrt/structures.h"

// clang-format off
#define TRELLIS_NRT_PROFILE(X)                                                                                         \
  X("2.7", Status, nrt_profile_start, (Model*, const char* file))                                                      \
  X("2.7", Status, nrt_profile_stop, (const char* file))                                                               \
  X("2.27", Status, nrt_profile_continuous_options_allocate, (ContinuousOptions**))                                    \
  X("2.27", Status, nrt_profile_continuous_options_free, (ContinuousOptions*))                                         \
  X("2.27", Status, nrt_profile_continuous_options_set_output_dir, (ContinuousOptions*, const char*))                  \
  X("2.27", Status, nrt_profile_continuous_start, (ContinuousOptions*))                                                \
  X("2.27", Status, nrt_profile_continuous_save, (std::uint32_t vnc, ContinuousOptions*))                              \
  X("2.27", Status, nrt_profile_continuous_stop, ())                                                                   \
  X("2.27", Status, nrt_inspect_begin, ())                                                                             \
  X("2.27", Status, nrt_inspect_begin_with_options, (InspectConfig*))                                                  \
  X("2.27", Status, nrt_inspect_stop, ())                                                                              \
  X("2.27", Status, nrt_inspect_config_allocate, (InspectConfig**))                                                    \
  X("2.27", Status, nrt_inspect_config_set_defaults, (InspectConfig*))                                                 \
  X("2.27", Status, nrt_inspect_config_free, (InspectConfig*))                                                         \
  X("2.27", Status, nrt_inspect_config_set_session_id, (InspectConfig*, int))                                          \
  X("2.27", Status, nrt_inspect_config_set_output_dir, (InspectConfig*, const char*))                                  \
  X("2.27", Status, nrt_inspect_config_set_sys_trace_max_events_per_nc, (InspectConfig*, std::uint64_t))               \
  X("2.27", Status, nrt_inspect_config_set_capture_enabled_for_nc, (InspectConfig*, std::uint32_t, bool))              \
  X("2.27", Status, nrt_inspect_config_set_capture_enabled_for_event_type_string, (InspectConfig*, const char*, bool)) \
  X("2.27", Status, nrt_inspect_config_set_enable_inspect, (InspectConfig*, bool))                                     \
  X("2.27", Status, nrt_inspect_config_set_enable_inspect_on_fail, (InspectConfig*, bool))                             \
  X("2.27", Status, nrt_inspect_config_get_all_activity_types, (const char***, std::size_t*))                          \
  X("2.27", Status, nrt_inspect_config_get_enabled_activity_types, (InspectConfig*, const char***, std::size_t*))      \
  X("2.27", void, nrt_inspect_config_free_activity_types, (const char**, std::size_t))                                 \
  X("2.27", Status, nrt_inspect_config_set_activity, (InspectConfig*, const char*, bool))

#define TRELLIS_NRT_SYS_TRACE(X)                                                                                       \
  X("2.27", Status, nrt_sys_trace_config_allocate, (TraceConfig**))                                                    \
  X("2.27", void, nrt_sys_trace_config_set_defaults, (TraceConfig*))                                                   \
  X("2.27", void, nrt_sys_trace_config_free, (TraceConfig*))                                                           \
  X("2.27", void, nrt_sys_trace_config_set_max_events_per_nc, (TraceConfig*, std::uint64_t))                           \
  X("2.27", void, nrt_sys_trace_config_set_capture_enabled_for_nc, (TraceConfig*, std::uint32_t, bool))                \
  X("2.27", Status, nrt_sys_trace_config_set_capture_enabled_for_event_type, (TraceConfig*, const char*, bool))        \
  X("2.27", Status, nrt_sys_trace_get_event_types, (const char***, std::size_t*))                                      \
  X("2.27", void, nrt_sys_trace_free_event_types, (const char**, std::size_t))                                         \
  X("2.27", Status, nrt_sys_trace_config_get_enabled_event_types, (TraceConfig*, const char***, std::size_t*))         \
  X("2.27", Status, nrt_sys_trace_start, (TraceConfig*))                                                               \
  X("2.27", Status, nrt_sys_trace_stop, ())                                                                            \
  X("2.27", Status, nrt_sys_trace_fetch_options_allocate, (FetchOptions**))                                            \
  X("2.27", void, nrt_sys_trace_fetch_options_set_defaults, (FetchOptions*))                                           \
  X("2.27", void, nrt_sys_trace_fetch_options_free, (FetchOptions*))                                                   \
  X("2.27", void, nrt_sys_trace_fetch_options_set_max_events_per_nc, (FetchOptions*, std::uint64_t))                   \
  X("2.27", void, nrt_sys_trace_fetch_options_set_nc_idx, (FetchOptions*, std::uint64_t))                              \
  X("2.22", Status, nrt_sys_trace_fetch_events, (char**, std::size_t*, const FetchOptions*))                           \
  X("2.27", void, nrt_sys_trace_buffer_free, (char*))

#define TRELLIS_NRT_DEBUG(X)                                                                                           \
  X("2.27", Status, nrt_debug_client_connect, (int core, int* fd))                                                     \
  X("2.27", void, nrt_debug_client_connect_close, (int fd))                                                            \
  X("2.27", Status, nrt_debug_client_read_one_event, (int fd, DebugEventHeader*, void** payload))
// clang-format on
