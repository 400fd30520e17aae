// What the first steps of some ranks' programs say of how long a schedule takes at least: from the first rank back to
// who sends to it, and to who sends to these. One rank of a class is enough, so that rings and trees of any size show
// after few steps how long their chains are.
#pragma once

#include "sim/price.h"

namespace trellis::sim {

// So many steps in all are written out. `forever`: it is more than the limit.
Time least_at_a_glimpse(const schedule::Algorithm&, const schedule::Request&, const Machine&, const PriceOptions&,
                        std::int64_t steps, Time limit = forever);

}  // namespace trellis::sim
