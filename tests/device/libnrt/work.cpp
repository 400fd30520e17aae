// The stand-in's programs, queues and traces.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "device/neff/neff.h"
#include "tests/device/standin.h"
#include "tests/folder.h"

namespace trellis::device {
namespace {

using nrt::Status;

std::string contents(const std::filesystem::path& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

TEST(Nrt, AProgramRunsAndTakesSimulatedTime) {
  const Standin n;
  LoadedSample s(n, 4);
  ASSERT_NE(s.model, nullptr) << n.why();
  s.put(0, 2.5F);
  s.put(1, 4.0F);
  const std::int64_t before = n.time(4);
  ASSERT_EQ(n->nrt_execute(s.model, s.inputs, s.outputs), Status::success) << n.why();
  const std::int64_t took = n.time(4) - before;
  EXPECT_EQ(s.get(2), 6.5F);
  EXPECT_GT(took, 1'000'000) << "picoseconds";
  EXPECT_LT(took, 100'000'000);
  EXPECT_EQ(n.time(5), 0) << "another core";
  const std::int64_t start = n.time(4);
  EXPECT_EQ(n->nrt_execute_repeat(s.model, s.inputs, s.outputs, 3), Status::success);
  EXPECT_EQ(n.time(4) - start, 3 * took);
  EXPECT_EQ(n->nrt_tensor_check_output_completion(s.tensors[2], 0, 4), Status::success);
  EXPECT_EQ(n->nrt_tensor_check_output_completion(s.tensors[2], 1000, 5), Status::timeout);
  EXPECT_EQ(n->nrt_tensor_reset_output_completion(s.tensors[2]), Status::success);
  EXPECT_EQ(n->nrt_tensor_check_output_completion(s.tensors[2], 0, 1), Status::timeout);
}

TEST(Nrt, AModelTellsOfItsTensors) {
  const Standin n;
  const LoadedSample s(n, -1);
  nrt::TensorInfoArray* info = nullptr;
  ASSERT_EQ(n->nrt_get_model_tensor_info(s.model, &info), Status::success);
  ASSERT_EQ(info->tensor_count, 3u);
  const auto* const all = reinterpret_cast<const nrt::TensorInfo*>(info + 1);
  EXPECT_STREQ(all[2].name, "out");
  EXPECT_EQ(all[2].usage, nrt::TensorUsage::output);
  EXPECT_EQ(all[0].usage, nrt::TensorUsage::input);
  EXPECT_EQ(all[0].dtype, nrt::NrtDType::f32);
  EXPECT_EQ(all[0].size, sample_numbers * 4);
  EXPECT_EQ(all[0].ndim, 1u);
  EXPECT_EQ(all[0].shape[0], sample_numbers);
  EXPECT_EQ(n->nrt_free_model_tensor_info(info), Status::success);
  nrt::ModelInfo model{};
  std::size_t written = 0;
  EXPECT_EQ(n->nrt_get_model_info(s.model, &model, sizeof model, &written), Status::success);
  EXPECT_EQ(model.vnc, 0u) << "the first free core";
  const LoadedSample next(n, -1);
  EXPECT_EQ(n->nrt_get_model_info(next.model, &model, sizeof model, &written), Status::success);
  EXPECT_EQ(model.vnc, 1u);
}

TEST(Nrt, WrongProgramsAndBindingsAreRefused) {
  const Standin n;
  nrt::Model* model = nullptr;
  const auto load = [&](const std::vector<std::byte>& neff) {
    return n->nrt_load(neff.data(), neff.size(), 0, -1, &model);
  };
  EXPECT_EQ(load(foreign_container()), Status::unsupported_neff);
  EXPECT_NE(n.why().find("not public"), std::string::npos) << n.why();
  EXPECT_EQ(load(std::vector<std::byte>(100)), Status::invalid);
  auto cut = sample_container();
  cut.resize(cut.size() - 700);
  EXPECT_EQ(load(cut), Status::invalid);
  EXPECT_EQ(load(write_neff("bad", "program bad cores=1\nnonsense\n", 1)), Status::invalid);
  EXPECT_EQ(n->nrt_load(nullptr, 10, 0, -1, &model), Status::invalid);
  EXPECT_EQ(model, nullptr);
  LoadedSample s(n, 0);
  EXPECT_EQ(n->nrt_execute(s.model, s.outputs, s.outputs), Status::invalid) << "no tensor 'a'";
  EXPECT_EQ(n->nrt_add_tensor_to_tensor_set(s.inputs, "a", n.tensor(0, 16)), Status::success);
  EXPECT_EQ(n->nrt_execute(s.model, s.inputs, s.outputs), Status::invalid) << "too few bytes";
  EXPECT_EQ(n->nrt_add_tensor_to_tensor_set(s.inputs, "a", n.tensor(1, sample_numbers * 4)), Status::success);
  EXPECT_EQ(n->nrt_execute(s.model, s.inputs, s.outputs), Status::invalid) << "another core";
  EXPECT_EQ(n->nrt_execute_repeat(s.model, s.inputs, s.outputs, 0), Status::invalid);
  EXPECT_EQ(n->nrt_unload(s.model), Status::success);
  EXPECT_EQ(n->nrt_unload(s.model), Status::invalid);
}

TEST(Nrt, QueuesKeepTheirOrderAndTellWhenWorkIsDone) {
  const Standin n;
  LoadedSample s(n, 2);
  nrt::ErrorTracker* errors = nullptr;
  ASSERT_EQ(n->nrta_error_tracker_create(2, &errors), Status::success);
  std::vector<float> ones(sample_numbers, 1), twos(sample_numbers, 2);
  nrt::Sequence first = 0, second = 0, run = 0;
  const std::size_t bytes = ones.size() * sizeof(float);
  ASSERT_EQ(n->nrta_tensor_write(s.tensors[0], ones.data(), 0, bytes, 0, errors, &first), Status::success);
  ASSERT_EQ(n->nrta_tensor_write(s.tensors[1], twos.data(), 0, bytes, 0, errors, &second), Status::success);
  EXPECT_EQ(second, first + 1);
  const auto wait = [&](nrt::Sequence which) {
    int fd = -1;
    ASSERT_EQ(n->nrta_get_completion_handle(which, &fd), Status::success) << n.why();
    pollfd one{fd, POLLIN, 0};
    EXPECT_EQ(poll(&one, 1, 5000), 1);
    close(fd);
    bool done = false;
    EXPECT_EQ(n->nrta_is_completed(which, &done), Status::success);
    EXPECT_TRUE(done);
  };
  wait(second);
  ASSERT_EQ(n->nrta_execute_schedule(s.model, s.inputs, s.outputs, 0, errors, &run), Status::success);
  wait(run);
  nrt::Sequence last = 0;
  EXPECT_EQ(n->nrta_get_sequence(2, nrt::ExecutionUnit::compute, 0, &last), Status::success);
  EXPECT_EQ(last, run);
  std::vector<float> back(sample_numbers);
  nrt::Sequence read = 0;
  ASSERT_EQ(n->nrta_tensor_read(back.data(), s.tensors[2], 0, bytes, 1, errors, &read), Status::success);
  wait(read);
  EXPECT_EQ(back.back(), 3.0F);
  const nrt::AsyncError* list = nullptr;
  std::size_t count = 7;
  EXPECT_EQ(n->nrta_error_tracker_get_list(errors, &list, &count), Status::success);
  EXPECT_EQ(count, 0u);
  bool done = false;
  EXPECT_EQ(n->nrta_is_completed(run + 1, &done), Status::invalid);
  EXPECT_EQ(n->nrta_is_completed(~nrt::Sequence{0}, &done), Status::invalid);
  EXPECT_EQ(n->nrta_execute_schedule(s.model, s.inputs, s.outputs, 1, errors, &run), Status::invalid) << "one queue";
  EXPECT_EQ(n->nrta_tensor_copy(s.tensors[0], 0, n.tensor(3, 10), 0, 10, 0, errors, &run), Status::invalid);
  EXPECT_EQ(n->nrt_async_drain_queued_execs(2), Status::success);
  n->nrta_error_tracker_destroy(errors);
  EXPECT_EQ(n->nrta_error_tracker_get_list(errors, &list, &count), Status::invalid);
}

TEST(Nrt, AFullQueueIsToldAndCloseEndsWorkInFlight) {
  const Standin n;
  LoadedSample s(n, 0);
  int scheduled = 0;
  Status last = Status::success;
  for (int i = 0; i < 2000 && last == Status::success; ++i, ++scheduled)
    last = n->nrta_execute_schedule(s.model, s.inputs, s.outputs, 0, nullptr, nullptr);
  EXPECT_EQ(last, Status::queue_full) << scheduled;
  EXPECT_GE(scheduled, 63);
  n->nrt_close();  // with 62 runs waiting
  EXPECT_EQ(n->nrt_execute(s.model, s.inputs, s.outputs), Status::closed);
}

TEST(Nrt, TracesAndProfilesAreWritten) {
  const Standin n;
  LoadedSample s(n, 1);
  const Folder folder;
  const std::string trace = folder.path() / "trace.json", profile = folder.path() / "profile.json";
  EXPECT_EQ(n->nrt_trace_stop(trace.c_str()), Status::invalid) << "none was started";
  EXPECT_EQ(n->nrt_trace_start(true), Status::success);
  nrt::TraceConfig* config = nullptr;
  ASSERT_EQ(n->nrt_sys_trace_config_allocate(&config), Status::success);
  EXPECT_EQ(n->nrt_sys_trace_config_set_capture_enabled_for_event_type(config, "nrt_tensor_write", false),
            Status::success);
  EXPECT_EQ(n->nrt_sys_trace_config_set_capture_enabled_for_event_type(config, "nrt_tensor_wriet", false),
            Status::invalid);
  EXPECT_EQ(n->nrt_sys_trace_start(config), Status::success);
  EXPECT_EQ(n->nrt_profile_start(s.model, profile.c_str()), Status::success);
  s.put(0, 1);
  n->nrt_execute(s.model, s.inputs, s.outputs);
  EXPECT_EQ(n->nrt_profile_stop(profile.c_str()), Status::success) << n.why();
  EXPECT_EQ(n->nrt_trace_stop(trace.c_str()), Status::success);
  EXPECT_NE(contents(trace).find("\"sum_of_two\",\"cat\":\"nc_exec_running\",\"ph\":\"X\",\"pid\":1"),
            std::string::npos)
      << contents(trace);
  EXPECT_NE(contents(trace).find("tensor_write"), std::string::npos);
  EXPECT_NE(contents(profile).find("tensor_tensor"), std::string::npos);
  char* events = nullptr;
  std::size_t size = 0;
  ASSERT_EQ(n->nrt_sys_trace_fetch_events(&events, &size, nullptr), Status::success);
  const std::string running = "\"event_type\":\"nc_exec_running\",\"phase\":\"";
  const char* const begun = std::strstr(events, (running + "start\",\"tracking_id\":1,\"nc_idx\":1,").c_str());
  ASSERT_NE(begun, nullptr) << events;
  const char* const done = std::strstr(begun, (running + "stop\",\"tracking_id\":1,\"nc_idx\":1,").c_str());
  ASSERT_TRUE(done) << events;
  const auto at = [](const char* event) {
    constexpr std::string_view key = "\"nc_timestamp_ns\":";
    return std::atoll(std::strstr(event, key.data()) + key.size());
  };
  EXPECT_GT(at(done), at(begun)) << events;
  EXPECT_TRUE(std::strstr(events, "\"nrt_execute\"") != nullptr && std::strstr(events, "tensor_write") == nullptr);
  n->nrt_sys_trace_buffer_free(events);
  n->nrt_sys_trace_stop();
  n->nrt_sys_trace_config_free(config);
  EXPECT_EQ(n->nrt_trace_start(false), Status::success);
  EXPECT_EQ(n->nrt_trace_stop("/nowhere/trace.json"), Status::failure);
  nrt::InspectConfig* inspect = nullptr;
  ASSERT_EQ(n->nrt_inspect_config_allocate(&inspect), Status::success);
  EXPECT_EQ(n->nrt_inspect_config_set_output_dir(inspect, folder.path().c_str()), Status::success);
  EXPECT_EQ(n->nrt_inspect_config_set_activity(inspect, "cpu_util", false), Status::success);
  EXPECT_EQ(n->nrt_inspect_config_set_activity(inspect, "gpu_util", false), Status::invalid);
  EXPECT_EQ(n->nrt_inspect_config_set_enable_inspect(inspect, true), Status::success);
  const char** texts = nullptr;
  std::size_t count = 0;
  EXPECT_EQ(n->nrt_inspect_config_get_enabled_activity_types(inspect, &texts, &count), Status::success);
  EXPECT_EQ(count, 3u);
  n->nrt_inspect_config_free_activity_types(texts, count);
  EXPECT_EQ(n->nrt_inspect_begin_with_options(inspect), Status::success);
  n->nrt_execute(s.model, s.inputs, s.outputs);
  EXPECT_EQ(n->nrt_inspect_stop(), Status::success) << n.why();
  EXPECT_EQ(n->nrt_inspect_stop(), Status::invalid);
  EXPECT_EQ(n->nrt_inspect_config_free(inspect), Status::success);
}

}  // namespace
}  // namespace trellis::device
