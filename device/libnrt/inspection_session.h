// InspectionSession: records what the runtime does between two moments, and writes it to a folder at the second.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/libnrt/model.h"
#include "device/libnrt/trace.h"

namespace trellis::device::nrt {

struct InspectionSettings {
  int session = 1;
  std::string folder = "./output";
  bool system = true, device = true;
  TraceSettings trace = {};
};

bool inspection_is_wanted();  // NEURON_RT_INSPECT_ENABLE=1: from nrt_init to nrt_close

// Reads NEURON_RT_INSPECT_*. The filter of cores uses the machine's numbers. Refuses a core that is not visible.
InspectionSettings inspection_of_environment();

class InspectionSession {
 public:
  void begin(InspectionSettings);  // refuses when one runs
  bool is_on() const;
  void keep_profile_of(const ModelObject&);  // of a model that is unloaded
  // Writes FOLDER/session_N_pid_P/; refuses when none runs.
  void end(const std::vector<std::shared_ptr<ModelObject>>& loaded);
  TraceRecorder& recorder() { return recorder_; }

 private:
  mutable std::mutex mutex_;
  bool on_ = false;
  InspectionSettings settings_;
  TraceRecorder recorder_;                         // inspection's own: traces may start and stop while it is on
  std::map<std::uint32_t, std::string> profiles_;  // by model
};

}  // namespace trellis::device::nrt
