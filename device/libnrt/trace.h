// What the runtime did, and when in simulated time: written as a Chrome trace, or fetched as JSON.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "device/stream.h"

namespace trellis::device::nrt {

struct TraceEvent {
  std::string_view type;  // one of event_types()
  int core = 0;
  Time begin = 0, end = 0;  // simulated picoseconds
  std::uint64_t bytes = 0;
  std::string name;            // of the model, the tensor
  std::uint64_t tracking = 0;  // its number, in the order in which work ended
};

const std::vector<std::string>& event_types();  // Neuron's names, as its profiler's documentation has them
bool is_hardware_event(std::string_view type);  // of the core; the others are the host's

struct TraceSettings {
  std::uint64_t most_events = 100'000;  // kept of a core (a start and its stop are one); the oldest are dropped
  std::set<std::uint32_t> cores_off;
  std::set<std::string> types_off;
};

class TraceRecorder {
 public:
  bool is_on() const { return on_; }
  void start(TraceSettings);
  void stop();
  void add(TraceEvent);
  // Takes events out, the oldest first; core below 0: of all cores.
  std::vector<TraceEvent> take(std::uint64_t most_of_core, int core);

 private:
  std::atomic<bool> on_ = false;
  std::mutex mutex_;
  TraceSettings settings_;
  std::uint64_t added_ = 0;
  std::map<int, std::deque<TraceEvent>> events_;  // by core
};

std::string chrome_json(const std::vector<TraceEvent>&);
std::string events_json(const std::vector<TraceEvent>&);
void write_file(const std::string& path, const std::string& text);  // refuses with the path and the reason

}  // namespace trellis::device::nrt
