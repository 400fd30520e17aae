// The environment variables of Neuron's training stack that mean something to a training job.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/config/job_config.h"

namespace trellis::tools {

// Reads a variable: null where it is not set. A parameter so that tests need not change the process's own.
using ReadVariable = std::function<const char*(const char*)>;

// Changes what the configuration leaves open; returns a note for each variable that had an effect or has none here.
// Throws invalid_argument that names the variable, its value and what was expected, or what contradicts the
// configuration.
std::vector<std::string> apply_neuron_environment(train::JobConfig&, const ReadVariable&);

}  // namespace trellis::tools
