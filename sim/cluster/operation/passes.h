// Work of passes over elements: so many of Vector and of Scalar, and so many arrays read and written.
#pragma once

#include "sim/cluster/operation/operation.h"

namespace trellis::sim {

struct Passes {
  double vector = 0, scalar = 0;
  double reads = 1, writes = 1;  // arrays of the shape
  double flops = 0;              // an element
};

EngineTimes passes_over(const OperationShape&, const EngineRates&, const Passes&);

// A kind whose work is the same passes whatever the shape.
OperationKind kind_of_passes(std::string name, std::string summary, const Passes&);

}  // namespace trellis::sim
