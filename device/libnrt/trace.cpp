#include "device/libnrt/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "device/libnrt/status_error.h"

namespace trellis::device::nrt {
namespace {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

}  // namespace

const std::vector<std::string>& event_types() {
  static const std::vector<std::string> all = {"cc_running",        "nc_exec_running", "nrt_all_gather",
                                               "nrt_barrier",       "nrt_execute",     "nrt_tensor_copy",
                                               "nrt_tensor_memset", "nrt_tensor_read", "nrt_tensor_write"};
  return all;
}

bool is_hardware_event(std::string_view type) { return type == "cc_running" || type == "nc_exec_running"; }

void TraceRecorder::start(TraceSettings settings) {
  const std::lock_guard lock(mutex_);
  settings_ = std::move(settings);
  events_.clear();
  on_ = true;
}

void TraceRecorder::stop() { on_ = false; }

void TraceRecorder::add(TraceEvent event) {
  if (!on_) return;
  const std::lock_guard lock(mutex_);
  if (settings_.cores_off.contains(static_cast<std::uint32_t>(event.core)) ||
      settings_.types_off.contains(std::string(event.type)))
    return;
  auto& all = events_[event.core];
  event.tracking = ++added_;
  all.push_back(std::move(event));
  while (all.size() > settings_.most_events) all.pop_front();
}

std::vector<TraceEvent> TraceRecorder::take(std::uint64_t most_of_core, int core) {
  const std::lock_guard lock(mutex_);
  std::vector<TraceEvent> out;
  for (auto& [number, all] : events_) {
    if (core >= 0 && number != core) continue;
    const auto n = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(most_of_core, all.size()));
    std::move(all.begin(), all.begin() + n, std::back_inserter(out));
    all.erase(all.begin(), all.begin() + n);
  }
  return out;
}

std::string chrome_json(const std::vector<TraceEvent>& events) {
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  for (std::size_t i = 0; i < events.size(); ++i) {
    const TraceEvent& e = events[i];
    out += fmt::format(
        "{}\n{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":\"{}\",\"ts\":{:.6f},\"dur\":{:.6f},"
        "\"args\":{{\"bytes\":{}}}}}",
        i == 0 ? "" : ",", json_string(e.name.empty() ? e.type : e.name), e.type, e.core, e.type,
        static_cast<double>(e.begin) * 1e-6, static_cast<double>(e.end - e.begin) * 1e-6, e.bytes);
  }
  return out + "\n]}\n";
}

// Writes events in the form of Neuron's, as clients expect: a start and a stop of each, with one tracking_id.
// Nanoseconds are of simulated time, both on the host's clock (timestamp_ns) and on the core's, which are one here.
std::string events_json(const std::vector<TraceEvent>& events) {
  std::string out = "{\"events\":[";
  const auto add = [&](const TraceEvent& e, std::string_view phase, Time at) {
    const Time ns = (at + 500) / 1000;
    out += fmt::format(
        "{}{{\"event_type\":\"{}\",\"phase\":\"{}\",\"tracking_id\":{},\"nc_idx\":{},\"timestamp_ns\":{},\"data\":{{"
        "\"exec_id\":{},\"device_core_idx\":{},\"nc_timestamp_ns\":{},\"picoseconds\":{},\"bytes\":{},\"name\":{}}}}}",
        out.back() == '[' ? "" : ",", e.type, phase, e.tracking, e.core, ns, e.tracking, e.core, ns, at, e.bytes,
        json_string(e.name));
  };
  for (const TraceEvent& e : events) {
    add(e, "start", e.begin);
    add(e, "stop", e.end);
  }
  return out + "]}";
}

void write_file(const std::string& path, const std::string& text) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "we"), &std::fclose);
  if (!file || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() || std::fflush(file.get()) != 0)
    refuse(Status::failure, "{} cannot be written: {}", path, std::strerror(errno));
}

}  // namespace trellis::device::nrt
