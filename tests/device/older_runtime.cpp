// Runtimes that lack functions: copies of the stand-in in which the functions have other names.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "device/capabilities.h"
#include "device/channel.h"
#include "device/conformance/conformance.h"
#include "device/native_collective.h"
#include "device/program.h"
#include "tests/device/standin.h"
#include "tests/folder.h"
#include "tests/why.h"

namespace trellis::device {
namespace {

// While it lives, the device "neuron" uses a runtime without these functions.
class OlderRuntime {
 public:
  explicit OlderRuntime(const std::vector<std::string>& lacks) {
    std::ifstream in(TRELLIS_STANDIN, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    for (const std::string& name : lacks) {
      const std::string whole = std::string(1, '\0') + name + std::string(1, '\0');
      std::size_t at = bytes.find(whole);
      EXPECT_NE(at, std::string::npos) << name;
      for (; at != std::string::npos; at = bytes.find(whole, at + 1)) bytes[at + 1] = 'x';
    }
    folder_.put("libnrt.so", bytes);
    use_standin();
    listen_at_free_ports();
    setenv("TRELLIS_LIBNRT", file_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): no other thread runs
  }
  ~OlderRuntime() { use_standin(); }
  OlderRuntime(const OlderRuntime&) = delete;
  OlderRuntime& operator=(const OlderRuntime&) = delete;
  const std::string& file() const { return file_; }

 private:
  const Folder folder_;  // an opened library stays loaded, so each one needs a path of its own
  const std::string file_ = folder_.path() / "libnrt.so";
};

struct Lacking {
  std::string function, since;
  Capability capability;
};

TEST(OlderRuntime, ACapabilityLessNamesTheFunctionAndItsVersion) {
  const std::vector<Lacking> all = {
      {"nrta_error_tracker_create", "2.28", Capability::async_queues},
      {"nrta_tensor_copy", "2.28", Capability::async_queues},
      {"nrta_cc_schedule", "2.28", Capability::collectives},
      {"nrt_async_sendrecv_accept", "2.27", Capability::send_recv},
      {"nrt_get_dmabuf_fd", "2.27", Capability::export_memory},
      {"nrt_get_vnc_memory_stats", "2.25", Capability::memory_stats},
      {"nrt_profile_start", "2.7", Capability::profile},
      {"nrt_load", "2.7", Capability::programs},
  };
  for (const Lacking& one : all) {
    const OlderRuntime runtime({one.function});
    const auto d = open("neuron");
    EXPECT_FALSE(d->capabilities().has(one.capability)) << one.function;
    EXPECT_EQ(d->why_not(one.capability), "neuron lacks " + std::string(name(one.capability)) + ": " + runtime.file() +
                                              " has no " + one.function + ", which SDK " + one.since + " has");
  }
}

TEST(OlderRuntime, WhatItLacksIsRefusedByName) {
  const OlderRuntime runtime(
      {"nrta_cc_prepare", "nrt_async_sendrecv_init", "nrt_get_dmabuf_fd", "nrt_profile_start", "nrt_load"});
  const auto d = open("neuron");
  EXPECT_EQ(d->channels(), nullptr);
  EXPECT_NE(d->why_not(Capability::send_recv).find("nrt_async_sendrecv_init, which SDK 2.27 has"), std::string::npos);
  EXPECT_EQ(d->collectives(), nullptr);
  EXPECT_NE(d->why_not(Capability::collectives).find("nrta_cc_prepare, which SDK 2.28 has"), std::string::npos);
  void* const data = d->allocate(4096, "exported");
  EXPECT_NE(why<std::exception>([&] { d->export_memory(data, 4096); }).find("nrt_get_dmabuf_fd, which SDK 2.27"),
            std::string::npos);
  d->release(data);
  EXPECT_NE(why<std::exception>([&] { d->load(sample_container()); }).find("nrt_load, which SDK 2.7"),
            std::string::npos);
}

TEST(OlderRuntime, WithoutWhatItNeedsItIsNotOpened) {
  const OlderRuntime runtime({"nrt_tensor_memset"});
  EXPECT_EQ(why<std::exception>([] { open("neuron"); }),
            "neuron: " + runtime.file() + " has no nrt_tensor_memset, which SDK 2.7 has");
}

// The runtime lacks all functions that came after SDK 2.7, but is a complete device all the same.
TEST(OlderRuntime, ConformsWithoutAllThatCameLater) {
  std::vector<std::string> later;
  for (const nrt::NrtFunctionInfo& f : nrt::functions())
    if (f.since != "2.7") later.emplace_back(f.name);
  EXPECT_GT(later.size(), 60u);
  const OlderRuntime runtime(later);
  for (const auto& [name, check] : checks()) {
    const auto d = open("neuron");
    const CheckResult v = run_check(check, *d);
    EXPECT_NE(v.outcome, CheckStatus::failed) << check.name << ": " << v.why;
  }
  EXPECT_EQ(text_of(open("neuron")->capabilities()), "host_access, programs, profile");
}

}  // namespace
}  // namespace trellis::device
