// System traces: events that are kept in rings and fetched as JSON.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "device/libnrt/config_handles.h"
#include "device/libnrt/exports.h"

namespace trellis::device::nrt {

Status nrt_sys_trace_config_allocate(TraceConfig** out) {
  return guarded("nrt_sys_trace_config_allocate", [&] {
    expect_given(out, "the settings' place");
    *out = settings().traces.add<TraceConfig*>(std::make_shared<TraceConfigObject>());
  });
}

void nrt_sys_trace_config_set_defaults(TraceConfig* config) {
  change("nrt_sys_trace_config_set_defaults", config, [](TraceSettings& t) { t = {}; });
}

void nrt_sys_trace_config_free(TraceConfig* config) {
  guarded("nrt_sys_trace_config_free", [&] { settings().traces.take(config); });
}

void nrt_sys_trace_config_set_max_events_per_nc(TraceConfig* config, std::uint64_t most) {
  change("nrt_sys_trace_config_set_max_events_per_nc", config, [&](TraceSettings& t) { t.most_events = most; });
}

void nrt_sys_trace_config_set_capture_enabled_for_nc(TraceConfig* config, std::uint32_t core, bool on) {
  change("nrt_sys_trace_config_set_capture_enabled_for_nc", config, [&](TraceSettings& t) {
    if (on)
      t.cores_off.erase(core);
    else
      t.cores_off.insert(core);
  });
}

Status nrt_sys_trace_config_set_capture_enabled_for_event_type(TraceConfig* config, const char* type, bool on) {
  return change("nrt_sys_trace_config_set_capture_enabled_for_event_type", config, [&](TraceSettings& t) {
    expect_given(type, "the event type");
    expect_event_type(type);
    if (on)
      t.types_off.erase(type);
    else
      t.types_off.insert(type);
  });
}

Status nrt_sys_trace_get_event_types(const char*** out, std::size_t* count) {
  return guarded("nrt_sys_trace_get_event_types", [&] { give_texts(event_types(), out, count); });
}

void nrt_sys_trace_free_event_types(const char** texts, std::size_t count) { free_texts(texts, count); }

Status nrt_sys_trace_config_get_enabled_event_types(TraceConfig* config, const char*** out, std::size_t* count) {
  return change("nrt_sys_trace_config_get_enabled_event_types", config, [&](TraceSettings& t) {
    std::vector<std::string> on;
    for (const std::string& type : event_types())
      if (!t.types_off.contains(type)) on.push_back(type);
    give_texts(on, out, count);
  });
}

Status nrt_sys_trace_start(TraceConfig* config) {
  return call("nrt_sys_trace_start", [&](Runtime& r) {
    const auto object = config == nullptr ? std::make_shared<TraceConfigObject>() : settings().traces.get(config);
    const std::lock_guard lock(object->mutex);
    if (r.system_recorder.is_on()) refuse(Status::invalid, "a system trace was started before");
    r.system_recorder.start(static_cast<const TraceSettings&>(*object));
  });
}

Status nrt_sys_trace_stop() {
  return call("nrt_sys_trace_stop", [](Runtime& r) {
    if (!r.system_recorder.is_on()) refuse(Status::invalid, "no system trace was started");
    r.system_recorder.stop();
  });
}

Status nrt_sys_trace_fetch_options_allocate(FetchOptions** out) {
  return guarded("nrt_sys_trace_fetch_options_allocate", [&] {
    expect_given(out, "the options' place");
    *out = settings().fetches.add<FetchOptions*>(std::make_shared<FetchOptionsObject>());
  });
}

void nrt_sys_trace_fetch_options_set_defaults(FetchOptions* options) {
  change("nrt_sys_trace_fetch_options_set_defaults", options, [](FetchOptionsObject& o) {
    o.most_events = ~std::uint64_t{0};
    o.core = -1;
  });
}

void nrt_sys_trace_fetch_options_free(FetchOptions* options) {
  guarded("nrt_sys_trace_fetch_options_free", [&] { settings().fetches.take(options); });
}

void nrt_sys_trace_fetch_options_set_max_events_per_nc(FetchOptions* options, std::uint64_t most) {
  change("nrt_sys_trace_fetch_options_set_max_events_per_nc", options,
         [&](FetchOptionsObject& o) { o.most_events = most; });
}

void nrt_sys_trace_fetch_options_set_nc_idx(FetchOptions* options, std::uint64_t core) {
  change("nrt_sys_trace_fetch_options_set_nc_idx", options,
         [&](FetchOptionsObject& o) { o.core = static_cast<int>(std::min<std::uint64_t>(core, 1 << 20)); });
}

Status nrt_sys_trace_fetch_events(char** buffer, std::size_t* size, const FetchOptions* options) {
  return call("nrt_sys_trace_fetch_events", [&](Runtime& r) {
    expect_given(buffer, "the buffer's place");
    expect_given(size, "the size's place");
    *buffer = nullptr;
    const auto object = options == nullptr ? std::make_shared<FetchOptionsObject>() : settings().fetches.get(options);
    const std::lock_guard lock(object->mutex);
    const std::string text = events_json(r.system_recorder.take(object->most_events, object->core));
    *buffer = strdup(text.c_str());
    if (*buffer == nullptr) throw std::bad_alloc();
    *size = text.size();
  });
}

void nrt_sys_trace_buffer_free(char* buffer) { std::free(buffer); }

}  // namespace trellis::device::nrt
