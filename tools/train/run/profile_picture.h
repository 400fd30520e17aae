// A step as it ran, as a picture: a row for what each rank computes, and one for each axis that it exchanges along.
#pragma once

#include <string>
#include <vector>

#include "sim/hardware/timeline/timeline.h"

namespace trellis::tools {

// What a span of a profile is, by which it is coloured.
enum class SpanKind : unsigned char { forward, backward, recompute, update, wait, exchange };

// shown: the kind of each of the timeline's spans.
std::string profile_picture(const sim::Timeline&, const std::vector<SpanKind>& shown, const std::string& title);

}  // namespace trellis::tools
