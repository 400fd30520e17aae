// An operation's work as passes over its elements: how many by Vector and by Scalar, and how many arrays are read and
// written.
#pragma once

#include "sim/cluster/operation/operation_model.h"

namespace trellis::sim {

struct ElementPasses {
  double vector = 0, scalar = 0;
  double reads = 1, writes = 1;  // arrays of the shape
  double flops = 0;              // an element
};

EngineTimes passes_over(const OperationShape&, const EngineRates&, const ElementPasses&);

using ProgramOf = std::function<std::optional<CoreProgram>(const OperationShape&, const EngineRates&)>;

// A kind whose work is the same passes whatever the shape.
OperationModel kind_of_passes(std::string name, std::string summary, const ElementPasses&, ProgramOf = {});

// Programs of core/ that load from memory and store results there; none for fused operations, whose arrays mostly stay
// in SBUF. The first kind takes rows and columns, the second a number of elements.
ProgramOf program_of_rows(std::string name);
ProgramOf program_of_elements(std::string name, std::uint64_t piece, std::string type_parameter = "type");

// The type as programs of core/ name it: "bf16" or "f32"; none for other types.
std::optional<std::string> program_type(const OperationShape&);

}  // namespace trellis::sim
