// Figures of a user's own: a file of lines as in every data file, that replaces those of a machine.
#pragma once

#include <string>
#include <string_view>

#include "sim/cluster/machine/machine.h"

namespace trellis::sim {

// Throws invalid_argument, with the file and the line, for text that is no list of figures, and for a figure that the
// machine does not have, or has in another dimension.
void replace_figures(MachineSpec&, std::string_view file, std::string_view text);

// "sha256 0123456789abcdef", of figures and levels. Equal digests mean that two results are of the same machine.
std::string figures_digest(const MachineSpec&);
std::string digest_words(std::string_view text);

}  // namespace trellis::sim
