// A simulated machine as text and JSON with every figure of its links, as a picture, and as a picture of link use.
#pragma once

#include <functional>
#include <string>

#include "sim/cluster/machine/machine.h"

namespace trellis::tools {

std::string sim_topo_text(const sim::Machine&);
std::string sim_topo_json(const sim::Machine&);

// The use of a resource, 0 to 1.
using Use = std::function<double(sim::ResourceId)>;

// SVG. With `use`, links and chips are coloured by it, with a legend and the numbers.
std::string sim_topo_picture(const sim::Machine&, const Use& use = {}, const std::string& title = {});

}  // namespace trellis::tools
