// Settings that callers make with functions: for inspection, and for system traces.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "device/libnrt/handle_table.h"
#include "device/libnrt/trace.h"

namespace trellis::device::nrt {

struct InspectConfigObject {
  std::mutex mutex;
  int session = 1;
  std::string output_dir = "./output";
  std::set<std::string> activities_off;
  TraceSettings trace;
  bool enabled = false, on_failure = false;
};

struct TraceConfigObject : TraceSettings {
  std::mutex mutex;
};

struct FetchOptionsObject {
  std::mutex mutex;
  std::uint64_t most_events = ~std::uint64_t{0};
  int core = -1;
};

// These settings may be made before nrt_init, so they do not belong to a runtime.
struct ConfigHandles {
  HandleTable<InspectConfigObject> inspect{"the inspection's settings"};
  HandleTable<TraceConfigObject> traces{"the trace's settings"};
  HandleTable<FetchOptionsObject> fetches{"the options"};
};
ConfigHandles& settings();

inline auto& table_of(const InspectConfig*) { return settings().inspect; }
inline auto& table_of(const TraceConfig*) { return settings().traces; }
inline auto& table_of(const FetchOptions*) { return settings().fetches; }

// Changes or reads the settings behind the handle, under their lock. `function` names the caller in errors.
template <class Handle, class Change>
Status change(std::string_view function, Handle* handle, Change what) {
  return guarded(function, [&] {
    const auto object = table_of(handle).get(handle);
    const std::lock_guard lock(object->mutex);
    what(*object);
  });
}

// Texts that the caller frees: an array of them, from malloc.
void give_texts(const std::vector<std::string>&, const char*** out, std::size_t* count);
void free_texts(const char** texts, std::size_t count);
void expect_event_type(const std::string&);
std::string folder_of(const char* name);

}  // namespace trellis::device::nrt
