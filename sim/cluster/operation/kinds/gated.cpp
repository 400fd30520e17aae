// SwiGLU of two arrays and GELU of one: the function itself runs on Scalar.
#include "sim/cluster/operation/element_passes.h"

namespace trellis::sim {
namespace {

using Registered = OperationModel::Registered;
const Registered swiglu(kind_of_passes("swiglu", "silu(gate) * up", {.vector = 2, .scalar = 1, .reads = 2, .flops = 6},
                                       program_of_elements("swiglu", std::uint64_t{128} * 2048)));
const Registered swiglu_gradient(kind_of_passes("swiglu_gradient", "of swiglu: of gate and up",
                                                {.vector = 5, .scalar = 2, .reads = 3, .writes = 2, .flops = 12}));
const Registered gelu(kind_of_passes("gelu", "gelu(x), or another function of one array", {.scalar = 1, .flops = 8}));
const Registered gelu_gradient(kind_of_passes("gelu_gradient", "of gelu",
                                              {.vector = 1, .scalar = 1, .reads = 2, .flops = 12}));

}  // namespace
}  // namespace trellis::sim
