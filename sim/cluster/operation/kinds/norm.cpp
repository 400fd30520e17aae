// Norms of rows, on Vector: squares and their sums, the scale, the weight; for layer_norm also the mean and the bias.
// Also the gradients of the norms.
#include "sim/cluster/operation/element_passes.h"

namespace trellis::sim {
namespace {

using Registered = OperationModel::Registered;
const Registered rms(kind_of_passes("rms_norm", "each row by its root mean square, times a weight",
                                    {.vector = 4, .flops = 4}, program_of_rows("rms_norm")));
const Registered layer(kind_of_passes("layer_norm", "each row less its mean, by its deviation; weight and bias",
                                      {.vector = 5, .flops = 5}, program_of_rows("layer_norm")));
const Registered rms_gradient(kind_of_passes("rms_norm_gradient", "of rms_norm: of its input and its weight",
                                             {.vector = 8, .reads = 2, .flops = 8}));
const Registered layer_gradient(kind_of_passes("layer_norm_gradient", "of layer_norm: of its input, weight and bias",
                                               {.vector = 10, .reads = 2, .flops = 10}));

}  // namespace
}  // namespace trellis::sim
