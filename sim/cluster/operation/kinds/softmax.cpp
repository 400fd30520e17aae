// Softmax of rows that are in memory: the largest, exponentials on Scalar with their sum, the division.
#include "sim/cluster/operation/element_passes.h"

namespace trellis::sim {
namespace {

using Registered = OperationModel::Registered;
const Registered forward(kind_of_passes("softmax", "exponentials of each row, divided by their sum",
                                        {.vector = 4, .scalar = 1, .flops = 4}, program_of_rows("softmax")));
const Registered backward(kind_of_passes("softmax_gradient", "of softmax", {.vector = 3, .reads = 2, .flops = 4}));

}  // namespace
}  // namespace trellis::sim
