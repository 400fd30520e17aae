// Inspections that the environment asks for: from nrt_init to nrt_close, filtered.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>
#include <vector>

#include "tests/device/standin.h"
#include "tests/folder.h"

namespace trellis::device {
namespace {

using nrt::Status;

class NrtInspection : public testing::Test {
 protected:
  NrtInspection() {
    set("NEURON_RT_INSPECT_OUTPUT_DIR", folder_.path().string()), set("NEURON_RT_INSPECT_ENABLE", "1");
  }
  ~NrtInspection() override {
    for (const std::string& name : set_) unsetenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
  }

  void set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): before other threads
    set_.push_back(name);
  }

  // Runs the sample on each of the cores, and returns the system profile. `devices`: the number of device profiles due.
  std::string profile(
      const std::vector<int>& cores, int devices,
      const std::function<void(const Standin&)>& first = [](const Standin&) {}) {
    {
      const Standin n;
      EXPECT_EQ(n.started(), Status::success) << n.why();
      first(n);
      for (const int core : cores) {
        LoadedSample s(n, core);
        EXPECT_EQ(n->nrt_execute(s.model, s.inputs, s.outputs), Status::success) << n.why();
        if (core == cores.front()) {
          EXPECT_EQ(n->nrt_unload(s.model), Status::success);
        }
      }
    }
    std::ostringstream out;
    int found = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder_.path())) {
      const std::string name = file.path().filename();
      if (name == "system_profile.json") out << std::ifstream(file.path()).rdbuf();
      found += name.starts_with("device_profile_") ? 1 : 0;
    }
    EXPECT_EQ(found, devices);
    return out.str();
  }

 private:
  const Folder folder_;
  std::vector<std::string> set_;
};

bool has(const std::string& text, std::string_view what) { return text.find(what) != std::string::npos; }

TEST_F(NrtInspection, FromInitToClose) {
  const std::string all = profile({0, 2}, 2);
  for (const char* type : {"nrt_execute", "nc_exec_running", "\"pid\":0", "\"pid\":2"})
    EXPECT_TRUE(has(all, type)) << all;
}

TEST_F(NrtInspection, ATraceMeanwhileTakesNothingFromIt) {
  const Folder folder;
  const std::string file = folder.path() / "trace.json";
  const std::string all = profile({0}, 1, [&](const Standin& n) {
    EXPECT_EQ(n->nrt_trace_start(true), Status::success) << n.why();
    n->nrt_tensor_memset(n.tensor(0, 64, "of both"), 0, 1, 64);
    EXPECT_EQ(n->nrt_trace_stop(file.c_str()), Status::success) << n.why();
    n->nrt_tensor_memset(n.tensor(0, 64, "later"), 0, 1, 64);
  });
  std::ostringstream trace;
  trace << std::ifstream(file).rdbuf();
  EXPECT_TRUE(has(all, "of both") && has(all, "later")) << all;
  EXPECT_TRUE(has(trace.str(), "of both") && !has(trace.str(), "later")) << trace.str();
}

TEST_F(NrtInspection, HasTheEventsOfTheFilters) {
  set("NEURON_RT_VISIBLE_CORES", "4-7");
  set("NEURON_RT_INSPECT_EVENT_FILTER_NC", "5-6");
  set("NEURON_RT_INSPECT_EVENT_FILTER_TYPE", "hardware,nrt_tensor_write,^cc_running,model_load");
  set("NEURON_RT_INSPECT_DEVICE_PROFILE", "0");
  const std::string some = profile({0, 1}, 0);
  EXPECT_TRUE(has(some, "nc_exec_running") && has(some, "\"pid\":1")) << some;
  EXPECT_FALSE(has(some, "nrt_execute") || has(some, "\"pid\":0")) << some;
}

TEST_F(NrtInspection, LeavesOutWhatTheFilterNamesAndKeepsTheRest) {
  set("NEURON_RT_INSPECT_EVENT_FILTER_TYPE", "^nc_exec_running");
  set("NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "1");
  const std::string some = profile({0, 2}, 2);
  EXPECT_TRUE(has(some, "\"pid\":0") && has(some, "\"pid\":2")) << some;
  EXPECT_FALSE(has(some, "nc_exec_running")) << some;
  std::size_t events = 0;
  for (std::size_t at = 0; (at = some.find("\"ph\":\"X\"", at)) != std::string::npos; ++at) ++events;
  EXPECT_EQ(events, 2u) << some;
}

TEST_F(NrtInspection, AWrongFilterIsRefusedBeforeAnythingRuns) {
  set("NEURON_RT_VISIBLE_CORES", "4-7");
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"NEURON_RT_INSPECT_EVENT_FILTER_NC", "3"},    {"NEURON_RT_INSPECT_EVENT_FILTER_NC", "4-x"},
      {"NEURON_RT_INSPECT_EVENT_FILTER_NC", "4,4"},  {"NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "0"},
      {"NEURON_RT_INSPECT_EVENT_FILTER_NC", "9999"}, {"NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "1e3"},
  };
  for (const auto& [name, value] : wrong) {
    set(name, value);
    const Standin n;
    EXPECT_EQ(n.started(), Status::invalid) << name << '=' << value;
    EXPECT_TRUE(has(n.why(), std::string(name) + "=" + value)) << n.why();
    EXPECT_EQ(n.tensor(0, 64), nullptr) << "no runtime";
    unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
  }
}

}  // namespace
}  // namespace trellis::device
