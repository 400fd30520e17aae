// Replaces ${...} in a configuration's values by OmegaConf's rules: with another key's value or a resolver's result. It
// may stand within a longer text, and inside another ${...}.
#pragma once

#include <map>
#include <string>

#include "train/config/apply_config_keys.h"

namespace trellis::tools {

using Values = std::map<std::string, train::KeyValue>;  // by whole key: "trainer.max_steps"

// ${a.b} is the value of that key, which may also be a list or null; ${.b} is a key of the same section, ${..b} of the
// one above. ${multiply:x, y} is as in NxD Training; ${oc.env:NAME} and ${oc.env:NAME, default} are environment
// variables; \${ begins no interpolation. Throws invalid_argument that names what is missing, or what refers to itself.
train::KeyValue interpolated(const train::KeyValue&, const Values&);

}  // namespace trellis::tools
