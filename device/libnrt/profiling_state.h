// What is profiled between nrt_init and nrt_close, and the clients of cores' debug streams.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "device/libnrt/model.h"

namespace trellis::device::nrt {

struct ProfilingState {
  ProfilingState() = default;
  ~ProfilingState() {
    for (const auto& [fd, core] : core_of_file) close(fd);
  }
  ProfilingState(const ProfilingState&) = delete;
  ProfilingState& operator=(const ProfilingState&) = delete;

  std::mutex mutex;                                             // guards all below
  std::map<std::string, std::shared_ptr<ModelObject>> started;  // by file
  bool continuous = false;
  std::uint64_t saved = 0;
  std::set<int> debug_cores;
  std::map<int, int> core_of_file;
};

}  // namespace trellis::device::nrt
