// Functions of the stand-in that the other tests do not call, and calls of all functions with null, 0 or empty values.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "tests/device/standin.h"
#include "tests/folder.h"

namespace trellis::device {
namespace {

using nrt::Status;

// Calls the function with null, zero or an empty value for each parameter.
template <class Result, class... Parameters>
Result with_nothing(Result (*function)(Parameters...)) {
  return function(Parameters{}...);
}

TEST(NrtRest, EveryFunctionTakesNothingWithoutACrash) {
  const Standin n;
  int called = 0;
#define TRELLIS_NRT_CALL(since, result, name, parameters) \
  if (std::string_view(#name) != "nrt_close") {           \
    with_nothing(n->name), ++called;                      \
  }
  TRELLIS_NRT_FUNCTIONS(TRELLIS_NRT_CALL)
#undef TRELLIS_NRT_CALL
  EXPECT_GT(called, 120);
  EXPECT_EQ(n->nrt_barrier(0, 0, 0), Status::invalid);
}

TEST(NrtRest, ModelsAndVersions) {
  const Standin n;
  const auto neff = sample_container();
  nrt::Model* model = nullptr;
  EXPECT_EQ(n->nrt_load_collectives(neff.data(), neff.size(), 3, -1, 2, 2, &model), Status::invalid) << "device 2 of 2";
  ASSERT_EQ(n->nrt_load_collectives(neff.data(), neff.size(), 3, -1, 1, 2, &model), Status::success) << n.why();
  std::uint32_t count = 0;
  for (const auto function : {n->nrt_get_model_nc_count, n->nrt_get_model_vnc_count}) {
    EXPECT_EQ(function(model, &count), Status::success);
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(function(nullptr, &count), Status::invalid);
  }
  EXPECT_EQ(n->nrt_get_model_instance_count(model, &count), Status::success);
  nrt::Version version{};
  EXPECT_EQ(n->nrt_get_version(&version, sizeof version), Status::success);
  EXPECT_EQ(version.major, 2u);
  EXPECT_STREQ(version.detail, "trellis stand-in, simulated");
  EXPECT_EQ(n->nrt_get_visible_vnc_count(&count), Status::success);
  EXPECT_EQ(count, 64u);
  EXPECT_EQ(n->nrt_host_device_id_get(15, &count), Status::success);
  EXPECT_EQ(count, 15u);
  EXPECT_EQ(n->nrt_host_device_id_get(16, &count), Status::invalid);
  EXPECT_STREQ(n->nrt_get_status_as_str(Status::out_of_bounds), "NRT_EXEC_OOB");
  EXPECT_STREQ(n->nrt_get_status_as_str(static_cast<Status>(8)), "unknown status");
  int most = 0;
  EXPECT_EQ(n->nrt_async_sendrecv_get_max_num_communicators_per_lnc(&most), Status::success);
  EXPECT_GT(most, 0);
  EXPECT_EQ(n->nrt_async_sendrecv_get_max_num_pending_request(&most), Status::success);
  EXPECT_GT(most, 0);
}

TEST(NrtRest, MemorysPlace) {
  const Standin n;
  nrt::Tensor *t = n.tensor(6, 5000), *host = n.tensor(-1, 10);
  nrt::AllocationInfo info{};
  EXPECT_EQ(n->nrt_tensor_get_device_allocation_info(t, &info), Status::success);
  EXPECT_EQ(info.size, 8192u);
  EXPECT_EQ(info.hbm_index, 2) << "the third core of its chip";
  EXPECT_EQ(n->nrt_tensor_get_device_allocation_info(host, &info), Status::invalid);
  void* base = nullptr;
  std::size_t bytes = 0;
  EXPECT_EQ(n->nrt_get_hbm_mmap_va(1, 2, &base, &bytes), Status::success) << n.why();
  EXPECT_EQ(static_cast<char*>(base) + info.physical_address, n->nrt_tensor_get_va(t));
  EXPECT_EQ(bytes, std::size_t{24} << 30);
  EXPECT_EQ(n->nrt_get_hbm_mmap_va(1, 4, &base, &bytes), Status::invalid_handle) << "a chip has four";
  EXPECT_EQ(n->nrt_get_hbm_mmap_va(16, 0, &base, &bytes), Status::invalid);
  char* const va = static_cast<char*>(n->nrt_tensor_get_va(t));
  EXPECT_EQ(n->nrt_memcpy_to_device(va + 4990, "0123456789", 10), Status::success);
  EXPECT_EQ(n->nrt_memcpy_to_device(va + 4990, "0123456789a", 11), Status::invalid);
  EXPECT_EQ(va[4999], '9');
}

TEST(NrtRest, WhatIsRefusedSaysWhy) {
  const Standin n;
  int error = 0;
  char text[20] = "";
  EXPECT_EQ(n->nrt_get_libnccl_net(&error, text, sizeof text), nullptr);
  EXPECT_EQ(std::strlen(text), sizeof text - 1) << "cut to the room";
  EXPECT_NE(error, 0);
  nrt::MicrocodeInfo code{};
  EXPECT_EQ(n->nrt_set_pool_eng_ucode(&code), Status::invalid);
  EXPECT_NE(n.why().find("microcode"), std::string::npos);
  int fd = -1;
  EXPECT_EQ(n->nrt_debug_client_connect(0, &fd), Status::success);
  pollfd one{fd, POLLIN, 0};
  EXPECT_EQ(poll(&one, 1, 0), 0);
  int second = -1;
  EXPECT_EQ(n->nrt_debug_client_connect(0, &second), Status::invalid) << "one client a core";
  nrt::DebugEventHeader header{};
  void* payload = nullptr;
  EXPECT_EQ(n->nrt_debug_client_read_one_event(fd, &header, &payload), Status::queue_empty);
  n->nrt_debug_client_connect_close(fd);
  EXPECT_EQ(n->nrt_debug_client_read_one_event(fd, &header, &payload), Status::invalid);
}

TEST(NrtRest, CallbacksTellOfQueuedRuns) {
  static std::atomic<int> told;
  told = 0;
  const Standin n;
  LoadedSample s(n, 0);
  EXPECT_EQ(n->nrt_register_async_exec_callback(
                [](void* params, std::uint32_t, std::uint32_t core, std::uint64_t, Status status) {
                  if (params == &told && core == 0 && status == Status::success) ++told;
                },
                &told),
            Status::success);
  for (int i = 0; i < 3; ++i) n->nrta_execute_schedule(s.model, s.inputs, s.outputs, 0, nullptr, nullptr);
  EXPECT_EQ(n->nrt_async_drain_queued_execs(0), Status::success);
  EXPECT_EQ(told, 3);
}

TEST(NrtRest, ContinuousProfiles) {
  const Standin n;
  LoadedSample s(n, 1);
  const Folder folder;
  nrt::ContinuousOptions* options = nullptr;
  ASSERT_EQ(n->nrt_profile_continuous_options_allocate(&options), Status::success);
  EXPECT_EQ(n->nrt_profile_continuous_options_set_output_dir(options, folder.path().c_str()), Status::success);
  EXPECT_EQ(n->nrt_profile_continuous_save(1, options), Status::invalid) << "not started";
  EXPECT_EQ(n->nrt_profile_continuous_start(options), Status::success);
  EXPECT_EQ(n->nrt_profile_continuous_save(1, options), Status::success) << n.why();
  EXPECT_EQ(n->nrt_profile_continuous_save(2, options), Status::failure) << "no model there";
  EXPECT_FALSE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(n->nrt_profile_continuous_stop(), Status::success);
  EXPECT_EQ(n->nrt_profile_continuous_options_free(options), Status::success);
}

TEST(NrtRest, ProfilesEndWithTheRuntime) {
  const Standin n;
  const Folder folder;
  const std::string file = folder.path() / "profile";
  for (int life = 0; life < 2; ++life) {
    LoadedSample s(n, 0);
    nrt::ContinuousOptions* options = nullptr;
    int fd = -1;
    n->nrt_profile_continuous_options_allocate(&options);
    EXPECT_EQ(n->nrt_profile_start(s.model, file.c_str()), Status::success) << n.why();
    EXPECT_EQ(n->nrt_profile_continuous_start(options), Status::success) << n.why();
    EXPECT_EQ(n->nrt_debug_client_connect(0, &fd), Status::success) << n.why();
    n->nrt_close();
    ASSERT_EQ(n->nrt_init(nrt::Framework::none, "", ""), Status::success);
    n->nrt_debug_client_connect_close(fd);
  }
}

TEST(NrtRest, SettingsOfInspections) {
  const Standin n;
  nrt::InspectConfig* inspect = nullptr;
  ASSERT_EQ(n->nrt_inspect_config_allocate(&inspect), Status::success);
  EXPECT_EQ(n->nrt_inspect_config_set_session_id(inspect, 7), Status::success);
  EXPECT_EQ(n->nrt_inspect_config_set_sys_trace_max_events_per_nc(inspect, 10), Status::success);
  EXPECT_EQ(n->nrt_inspect_config_set_capture_enabled_for_nc(inspect, 1, false), Status::success);
  EXPECT_EQ(n->nrt_inspect_config_set_capture_enabled_for_event_type_string(inspect, "nrt_execute", false),
            Status::success);
  EXPECT_EQ(n->nrt_inspect_config_set_enable_inspect_on_fail(inspect, true), Status::success);
  EXPECT_EQ(n->nrt_inspect_config_set_activity(inspect, "all", false), Status::success);
  const char** texts = nullptr;
  std::size_t count = 9;
  EXPECT_EQ(n->nrt_inspect_config_get_enabled_activity_types(inspect, &texts, &count), Status::success);
  EXPECT_EQ(count, 0u);
  n->nrt_inspect_config_free_activity_types(texts, count);
  EXPECT_EQ(n->nrt_inspect_config_set_defaults(inspect), Status::success);
  EXPECT_EQ(n->nrt_inspect_config_get_all_activity_types(&texts, &count), Status::success);
  EXPECT_EQ(count, 4u);
  n->nrt_inspect_config_free_activity_types(texts, count);
  n->nrt_inspect_config_free(inspect);
}

TEST(NrtRest, SettingsOfSystemTraces) {
  const Standin n;
  LoadedSample s(n, 1);
  const char** texts = nullptr;
  std::size_t count = 0;
  nrt::TraceConfig* config = nullptr;
  ASSERT_EQ(n->nrt_sys_trace_config_allocate(&config), Status::success);
  n->nrt_sys_trace_config_set_max_events_per_nc(config, 2);
  n->nrt_sys_trace_config_set_capture_enabled_for_nc(config, 1, false);
  EXPECT_EQ(n->nrt_sys_trace_config_get_enabled_event_types(config, &texts, &count), Status::success);
  const std::size_t all = count;
  n->nrt_sys_trace_free_event_types(texts, count);
  EXPECT_EQ(n->nrt_sys_trace_get_event_types(&texts, &count), Status::success);
  EXPECT_EQ(count, all);
  n->nrt_sys_trace_free_event_types(texts, count);
  n->nrt_sys_trace_config_set_defaults(config);
  n->nrt_sys_trace_config_set_max_events_per_nc(config, 2);
  EXPECT_EQ(n->nrt_sys_trace_start(config), Status::success);
  for (int i = 0; i < 5; ++i) n->nrt_execute(s.model, s.inputs, s.outputs);
  nrt::FetchOptions* fetch = nullptr;
  ASSERT_EQ(n->nrt_sys_trace_fetch_options_allocate(&fetch), Status::success);
  const auto fetched = [&] {
    char* text = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(n->nrt_sys_trace_fetch_events(&text, &size, fetch), Status::success);
    int starts = 0;
    for (const char* p = text; (p = std::strstr(p, "\"phase\":\"start\"")) != nullptr; ++p) ++starts;
    n->nrt_sys_trace_buffer_free(text);
    return starts;
  };
  n->nrt_sys_trace_fetch_options_set_nc_idx(fetch, 0);
  EXPECT_EQ(fetched(), 0) << "of another core";
  n->nrt_sys_trace_fetch_options_set_defaults(fetch);
  n->nrt_sys_trace_fetch_options_set_max_events_per_nc(fetch, 1);
  EXPECT_EQ(fetched(), 1);
  n->nrt_sys_trace_fetch_options_set_defaults(fetch);
  EXPECT_EQ(fetched(), 1) << "two were kept, and each is fetched once";
  n->nrt_sys_trace_fetch_options_free(fetch);
  n->nrt_sys_trace_stop();
  n->nrt_sys_trace_config_free(config);
}

// Threads that free each other's handles, and close and start the runtime under each other's feet.
TEST(NrtRest, SixteenHostileThreads) {
  const Standin n;
  constexpr std::size_t shared_count = 8;
  std::vector<std::atomic<nrt::Tensor*>> shared(shared_count);
  std::atomic<int> statuses = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<char> buffer(4096);
      for (int i = 0; i < 300; ++i) {
        auto& slot = shared[random() % shared_count];
        nrt::Tensor* tensor = slot;
        Status s = Status::success;
        switch (random() % 8) {
          case 0:
            s = n->nrt_tensor_allocate(nrt::TensorPlacement::device, static_cast<int>(random() % 3), 4096, "h",
                                       &tensor);
            if (s == Status::success) slot = tensor;
            break;
          case 1:
            n->nrt_tensor_free(&tensor);
            break;
          case 2:
            s = n->nrt_tensor_read(tensor, buffer.data(), random() % 5000, random() % 4096);
            break;
          case 3:
            s = n->nrt_tensor_memset(tensor, random() % 4096, 1, random() % 4096);
            break;
          case 4:
            s = n->nrt_tensor_copy(tensor, 0, shared[random() % shared_count], random() % 4096, 100);
            break;
          case 5: {
            nrt::Sequence q = 0;
            bool done = false;
            s = n->nrta_tensor_copy(tensor, 0, shared[random() % shared_count], 0, 4096, 0, nullptr, &q);
            n->nrta_is_completed(q, &done);
            break;
          }
          case 6:
            s = n->nrt_tensor_attach_buffer(tensor, buffer.data(), 0);
            break;
          default:
            if (t == 0 && i % 50 == 0) n->nrt_close();
            if (t == 1) s = n->nrt_init(nrt::Framework::none, "", "");
        }
        const int value = static_cast<int>(s);
        if (value >= 0 && value <= 1206) ++statuses;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(statuses, 16 * 300);
}

}  // namespace
}  // namespace trellis::device
