// Writes the `trellis` part of a flight recorder's dump, which PyTorch's format does not have.
#pragma once

#include <nlohmann/json.hpp>

#include "ccl/failure/rank_dump.h"

namespace trellis::ccl {

nlohmann::json part_of(const RankDump&);  // without its moment

}  // namespace trellis::ccl
