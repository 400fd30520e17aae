// Cross entropy over this rank's classes: the largest and the sum of exponentials of each row, then its gradient in
// place of the logits.
#include "sim/cluster/operation/element_passes.h"

namespace trellis::sim {
namespace {

using Registered = OperationModel::Registered;
const Registered forward(kind_of_passes("cross_entropy", "of each row of logits and its label",
                                        {.vector = 2, .scalar = 1, .writes = 0, .flops = 4}));
const Registered backward(kind_of_passes("cross_entropy_gradient", "of the logits",
                                         {.vector = 2, .scalar = 1, .flops = 3}));

}  // namespace
}  // namespace trellis::sim
