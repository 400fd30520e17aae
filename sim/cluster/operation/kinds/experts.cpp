// Operations around a mixture of experts: the router's choice for each row of logits; moving rows to experts' places
// and back, by DMA; their sums and products with weights, on Vector.
#include "sim/cluster/operation/element_passes.h"

namespace trellis::sim {
namespace {

using Registered = OperationModel::Registered;
const Registered route(kind_of_passes("route", "softmax or sigmoid of each row, and its largest elements",
                                      {.vector = 6, .scalar = 1, .flops = 8}));
const Registered route_gradient(kind_of_passes("route_gradient", "of route, of the weights of what was chosen",
                                               {.vector = 4, .reads = 2, .flops = 6}));
const Registered dispatch(kind_of_passes("dispatch", "rows of a table to the places of their experts", {}));
const Registered combine(kind_of_passes("combine", "rows from experts' places, added with a weight each",
                                        {.vector = 2, .flops = 2}));
const Registered split(kind_of_passes("split", "of combine: rows to experts' places, and the gradients of weights",
                                      {.vector = 3, .reads = 2, .flops = 3}));

}  // namespace
}  // namespace trellis::sim
