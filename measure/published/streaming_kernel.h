// Kernels that stream data through a core and do next to nothing with it: built from what the record says of them.
#pragma once

#include "measure/published/record.h"

namespace trellis::measure {

// None: it is no such kernel.
std::optional<RecordAnswer> streamed(const Record&, const sim::ChipSpec&);

}  // namespace trellis::measure
