// How long a computation takes a rank: what each engine has to do of it, and how far the engines overlap. A kind of
// operation is a file of kinds/, which registers what its engines do.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/graph/operation_shape.h"
#include "sim/cluster/operation/core_program.h"
#include "sim/cluster/operation/engine_rates.h"
#include "text/registry.h"

namespace trellis::sim {

using schedule::OperationShape;

// Seconds of each engine's work alone; bytes of HBM read and written; FLOPs of the arithmetic itself.
struct EngineTimes {
  double tensor = 0, vector = 0, scalar = 0, memory = 0;
  double bytes = 0, flops = 0;
  double shared = 0;  // seconds saved where tiles share loaded rows; overlap counts as if each tile had loaded its own
};

struct OperationTime {
  EngineTimes engines;
  double overlap = 0;  // of the engines: 1 where the longest one's time is the operation's, 0 where they take turns
  double total = 0;    // seconds
  bool by_program = false;           // the total is that of a program of core/, and not by the formula
  std::string_view longest() const;  // "tensor", "vector", "scalar" or "memory"
};

struct OperationModel {
  std::string name;
  std::string summary;
  std::string extents;  // what rows, columns and so on mean for this kind
  std::function<EngineTimes(const OperationShape&, const EngineRates&)> work;
  // The program of core/ that does it; none for shapes that it does not do.
  std::function<std::optional<CoreProgram>(const OperationShape&, const EngineRates&)> program = {};

  struct Registered {
    explicit Registered(OperationModel);
  };
};

const text::Registry<OperationModel>& operation_kinds();

// What is loaded into SBUF, computed and stored in one piece leaves engines waiting for each other; what does not fit
// is cut into tiles, and engines work on several of them. An operation whose tiles have B bytes in all takes max + x
// (sum - max) of its engines' times, with x = min(1, SBUF / B). Throws invalid_argument for an unknown kind or type, an
// extent of 0, or a type that the chip does not compute with.
OperationTime operation_time(const OperationShape&, const EngineRates&);

}  // namespace trellis::sim
