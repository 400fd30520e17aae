// ${...} in the values of a configuration, by OmegaConf's rules: another key's value, a resolver, in words and nested.
#pragma once

#include <map>
#include <string>

#include "train/config/keys.h"

namespace trellis::tools {

using Values = std::map<std::string, train::KeyValue>;  // by whole key: "trainer.max_steps"

// ${a.b} is that key's value, whatever it is: a list, null; ${.b} is a key of the same section, ${..b} of the one
// above.
// ${multiply:x, y} as NxD Training has it; ${oc.env:NAME} and ${oc.env:NAME, default}. \${ is no interpolation. Throws
// invalid_argument with what is missing, or refers to itself.
train::KeyValue interpolated(const train::KeyValue&, const Values&);

}  // namespace trellis::tools
