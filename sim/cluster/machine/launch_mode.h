// Who starts a collective. Eras that differ in nothing else share a name up to the '-'.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "sim/cluster/machine/machine.h"

namespace trellis::sim {

// device: the collective is a step of an executable that already runs. graph: one call starts a graph or a wrapped
// kernel that consists of it. host: a framework makes a call for this collective only.
inline constexpr std::array<std::string_view, 3> launches = {"device", "graph", "host"};

std::string_view launch_of(std::string_view era);    // "2026-host": "host"; "2026": "device"
std::string collective_error(std::string_view era);  // the kind of error_range() for a collective: "coll", "coll.host"

// Whether the model's own error leaves open which of two priced configs is faster. Never on a machine without a chip:
// it stands for no hardware from which the model could differ. `era` empty: the machine's usual one.
bool is_draw(const Machine&, std::string_view era, Time one, Time other);

// The era with that launch. `era` empty: the machine's usual one, or else the newest that has such a launch. Throws
// invalid_argument when there is none.
std::string era_launched(const Machine&, std::string_view era, std::string_view launch);

}  // namespace trellis::sim
