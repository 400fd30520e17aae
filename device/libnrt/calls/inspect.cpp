// Inspection: its settings, and the folder with what the runtime did meanwhile.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "device/fork_safe_singleton.h"
#include "device/libnrt/config_handles.h"
#include "device/libnrt/exports.h"

namespace trellis::device::nrt {
namespace {

const std::vector<std::string> activities = {"system_profile", "device_profile", "host_memory", "cpu_util"};

}  // namespace

ConfigHandles& settings() {
  return of_this_process([] { return new ConfigHandles; });
}

void give_texts(const std::vector<std::string>& texts, const char*** out, std::size_t* count) {
  expect_given(out, "the array's place");
  expect_given(count, "the count's place");
  auto* const array = static_cast<const char**>(std::calloc(texts.size() + 1, sizeof(char*)));
  if (array == nullptr) throw std::bad_alloc();
  for (std::size_t i = 0; i < texts.size(); ++i) array[i] = strdup(texts[i].c_str());
  *out = array, *count = texts.size();
}

void free_texts(const char** texts, std::size_t count) {
  if (texts == nullptr) return;
  for (std::size_t i = 0; i < count; ++i) std::free(const_cast<char*>(texts[i]));
  std::free(texts);
}

void expect_event_type(const std::string& type) {
  if (std::ranges::find(event_types(), type) == event_types().end())
    refuse(Status::invalid, "event type '{}': expected one of nrt_sys_trace_get_event_types", type);
}

std::string folder_of(const char* name) {
  expect_given(name, "the folder");
  if (*name == '\0') refuse(Status::invalid, "a folder without a name");
  return name;
}

Status nrt_inspect_config_allocate(InspectConfig** out) {
  return guarded("nrt_inspect_config_allocate", [&] {
    expect_given(out, "the settings' place");
    *out = settings().inspect.add<InspectConfig*>(std::make_shared<InspectConfigObject>());
  });
}

Status nrt_inspect_config_free(InspectConfig* config) {
  return guarded("nrt_inspect_config_free", [&] { settings().inspect.take(config); });
}

Status nrt_inspect_config_set_defaults(InspectConfig* config) {
  return change("nrt_inspect_config_set_defaults", config, [](InspectConfigObject& o) {
    o.session = 1, o.output_dir = "./output", o.activities_off.clear(), o.trace = {};
    o.enabled = o.on_failure = false;
  });
}

Status nrt_inspect_config_set_session_id(InspectConfig* config, int session) {
  return change("nrt_inspect_config_set_session_id", config, [&](InspectConfigObject& o) { o.session = session; });
}

Status nrt_inspect_config_set_output_dir(InspectConfig* config, const char* folder) {
  return change("nrt_inspect_config_set_output_dir", config,
                [&](InspectConfigObject& o) { o.output_dir = folder_of(folder); });
}

Status nrt_inspect_config_set_sys_trace_max_events_per_nc(InspectConfig* config, std::uint64_t most) {
  return change("nrt_inspect_config_set_sys_trace_max_events_per_nc", config,
                [&](InspectConfigObject& o) { o.trace.most_events = most; });
}

Status nrt_inspect_config_set_capture_enabled_for_nc(InspectConfig* config, std::uint32_t core, bool on) {
  return change("nrt_inspect_config_set_capture_enabled_for_nc", config, [&](InspectConfigObject& o) {
    if (on)
      o.trace.cores_off.erase(core);
    else
      o.trace.cores_off.insert(core);
  });
}

Status nrt_inspect_config_set_capture_enabled_for_event_type_string(InspectConfig* config, const char* type, bool on) {
  return change("nrt_inspect_config_set_capture_enabled_for_event_type_string", config, [&](InspectConfigObject& o) {
    expect_given(type, "the event type");
    expect_event_type(type);
    if (on)
      o.trace.types_off.erase(type);
    else
      o.trace.types_off.insert(type);
  });
}

Status nrt_inspect_config_set_enable_inspect(InspectConfig* config, bool on) {
  return change("nrt_inspect_config_set_enable_inspect", config, [&](InspectConfigObject& o) { o.enabled = on; });
}

Status nrt_inspect_config_set_enable_inspect_on_fail(InspectConfig* config, bool on) {
  return change("nrt_inspect_config_set_enable_inspect_on_fail", config,
                [&](InspectConfigObject& o) { o.on_failure = on; });
}

Status nrt_inspect_config_get_all_activity_types(const char*** out, std::size_t* count) {
  return guarded("nrt_inspect_config_get_all_activity_types", [&] { give_texts(activities, out, count); });
}

Status nrt_inspect_config_get_enabled_activity_types(InspectConfig* config, const char*** out, std::size_t* count) {
  return change("nrt_inspect_config_get_enabled_activity_types", config, [&](InspectConfigObject& o) {
    std::vector<std::string> on;
    for (const std::string& a : activities)
      if (!o.activities_off.contains(a)) on.push_back(a);
    give_texts(on, out, count);
  });
}

void nrt_inspect_config_free_activity_types(const char** texts, std::size_t count) { free_texts(texts, count); }

Status nrt_inspect_config_set_activity(InspectConfig* config, const char* activity, bool on) {
  return change("nrt_inspect_config_set_activity", config, [&](InspectConfigObject& o) {
    expect_given(activity, "the activity");
    const std::string_view word = activity;
    bool known = false;
    for (const std::string& a : activities) {
      if (word != "all" && word != a) continue;
      known = true;
      if (on)
        o.activities_off.erase(a);
      else
        o.activities_off.insert(a);
    }
    if (!known)
      refuse(Status::invalid, "activity '{}': expected one of nrt_inspect_config_get_all_activity_types", word);
  });
}

Status nrt_inspect_begin() {
  return call("nrt_inspect_begin", [](Runtime& r) { r.inspection.begin(inspection_of_environment()); });
}

Status nrt_inspect_begin_with_options(InspectConfig* config) {
  return call("nrt_inspect_begin_with_options", [&](Runtime& r) {
    const auto o = config == nullptr ? std::make_shared<InspectConfigObject>() : settings().inspect.get(config);
    const std::lock_guard lock(o->mutex);
    r.inspection.begin({.session = o->session,
                        .folder = o->output_dir,
                        .system = !o->activities_off.contains("system_profile"),
                        .device = o->enabled && !o->activities_off.contains("device_profile"),
                        .trace = o->trace});
  });
}

Status nrt_inspect_stop() {
  return call("nrt_inspect_stop", [](Runtime& r) { r.inspection.end(r.models.all()); });
}

}  // namespace trellis::device::nrt
