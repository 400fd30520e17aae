// Start and end of the runtime, and what callers can ask about the machine.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "device/libnrt/exports.h"
#include "device/memory_accounting.h"
#include "device/topology.h"

namespace trellis::device::nrt {
namespace {

void count(std::uint32_t* out, bool visible) {
  expect_given(out, "the count");
  const Topology t = machine_topology();
  *out = static_cast<std::uint32_t>(visible ? t.visible : t.cores);
}

}  // namespace

Status nrt_init(Framework framework, const char*, const char*) {
  return guarded("nrt_init", [&] {
    const auto kind = static_cast<std::int32_t>(framework);
    if (kind < 1 || kind > 5) refuse(Status::invalid, "framework {}: expected 1 to 5", kind);
    std::optional<InspectionSettings> inspection;  // read first: a wrong one keeps the runtime from starting
    if (inspection_is_wanted()) inspection = inspection_of_environment();
    const auto runtime = start_runtime();
    if (inspection) runtime->inspection.begin(std::move(*inspection));
  });
}

void nrt_close() {
  guarded("nrt_close", [] {
    const auto ended = end_runtime();
    if (ended && ended->inspection.is_on()) ended->inspection.end(ended->models.all());
  });
}

Status nrt_get_total_nc_count(std::uint32_t* out) {
  return guarded("nrt_get_total_nc_count", [&] { count(out, false); });
}
Status nrt_get_total_vnc_count(std::uint32_t* out) {
  return guarded("nrt_get_total_vnc_count", [&] { count(out, false); });
}
Status nrt_get_visible_nc_count(std::uint32_t* out) {
  return guarded("nrt_get_visible_nc_count", [&] { count(out, true); });
}
Status nrt_get_visible_vnc_count(std::uint32_t* out) {
  return guarded("nrt_get_visible_vnc_count", [&] { count(out, true); });
}

// Callers built with older headers have shorter structures; longer ones are filled as far as this version knows them.
Status nrt_get_instance_info(InstanceInfo* out, std::size_t size) {
  return guarded("nrt_get_instance_info", [&] {
    expect_given(out, "the structure");
    if (size < 8 || size > 4096)
      refuse(Status::invalid, "a structure of {} bytes; expected {}", size, sizeof(InstanceInfo));
    const InstanceInfo info = instance_info();
    std::memcpy(out, &info, std::min(size, sizeof info));
  });
}

Status nrt_get_version(Version* out, std::size_t size) {
  return guarded("nrt_get_version", [&] {
    expect_given(out, "the structure");
    if (size < 32 || size > 4096)
      refuse(Status::invalid, "a structure of {} bytes; expected {}", size, sizeof(Version));
    Version v{.major = 2, .minor = 28, .patch = 0, .maintenance = 0, .detail = {}, .git_hash = {}};
    std::strncpy(v.detail, "trellis stand-in, simulated", sizeof v.detail - 1);
    std::memcpy(out, &v, std::min(size, sizeof v));
  });
}

const char* nrt_get_status_as_str(Status status) { return words(status).data(); }

Status nrt_host_device_id_get(int device, std::uint32_t* out) {
  return guarded("nrt_host_device_id_get", [&] {
    expect_given(out, "the number");
    const int chips = machine_topology().chips;
    if (device < 0 || device >= chips) refuse(Status::invalid, "device {}: expected 0 to {}", device, chips - 1);
    *out = static_cast<std::uint32_t>(device);
  });
}

Status nrt_host_device_id_rid_map_get(std::uint32_t* entries, std::uint32_t* map) {
  return guarded("nrt_host_device_id_rid_map_get", [&] {
    expect_given(entries, "the count");
    expect_given(map, "the map");
    const auto chips = static_cast<std::uint32_t>(machine_topology().chips);
    if (*entries < chips) refuse(Status::invalid, "room for {} devices; there are {}", *entries, chips);
    for (std::uint32_t c = 0; c < chips; ++c) map[c] = c;
    *entries = chips;
  });
}

Status nrt_get_vnc_memory_stats(std::uint32_t vnc, MemoryStats* out, std::size_t size, std::size_t* written) {
  return call("nrt_get_vnc_memory_stats", [&](Runtime& r) {
    expect_given(out, "the structure");
    if (size < sizeof(std::size_t) || size > 4096)
      refuse(Status::invalid, "a structure of {} bytes; expected {}", size, sizeof(MemoryStats));
    const MemoryUse use = r.core(vnc)->memory();
    const MemoryStats stats{use.used, use.limit};
    const std::size_t bytes = std::min(size, sizeof stats);
    std::memcpy(out, &stats, bytes);
    if (written != nullptr) *written = bytes;
  });
}

Status trellis_nrt_time(std::uint32_t vnc, std::int64_t* picoseconds) {
  return call("trellis_nrt_time", [&](Runtime& r) {
    expect_given(picoseconds, "the time");
    *picoseconds = clock_of(*r.core(vnc)).time;
  });
}

const char* trellis_nrt_last_error() { return last_error(); }

}  // namespace trellis::device::nrt
