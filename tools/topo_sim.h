// A simulated machine: as text and JSON with every figure of its links, as a picture, and as a picture of their use.
#pragma once

#include <functional>
#include <string>

#include "sim/machine.h"

namespace trellis::tools {

std::string sim_topo_text(const sim::Machine&);
std::string sim_topo_json(const sim::Machine&);

// How much of a resource was used, 0 to 1.
using Use = std::function<double(sim::ResourceId)>;

// SVG. With `use`, links and chips are coloured by it; what a colour means and the numbers are shown on it.
std::string sim_topo_picture(const sim::Machine&, const Use& use = {}, const std::string& title = {});

}  // namespace trellis::tools
