// What a computation is, as far as its time depends on it: its kind, its extents, the types of its elements.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace trellis::schedule {

struct OperationShape {
  std::string kind;                     // of the simulator's registered operations (sim/cluster/operation/kinds)
  std::uint64_t rows = 1, columns = 1;  // of the result, or of the array that is worked on; attention: queries and keys
  std::uint64_t inner = 1;              // of a product: terms of each sum; of attention: elements of a head
  std::uint64_t batch = 1;              // number of such operations; attention: heads of all sequences
  std::uint64_t shared = 1;             // attention: heads of queries for each head of keys and values
  std::string type = "bf16";            // of the elements that are read
  std::string result = {};              // of the elements that are written; empty: the same as `type`
  bool fused = false;       // it shares its arrays with neighbouring operations, and they seldom pass through memory
  bool accumulate = false;  // the result is added to what is there
  bool causal = false, flash = false;  // attention: only half of the pairs; scores do not pass through memory
  bool dropout = false;                // attention: its probabilities are dropped

  // Numbers of arrays that are read and written; below 0: as many as the kind usually has. A product has 1 input if its
  // rows x inner factor was just read, and 0 outputs if the next product adds to its result. vector, scalar: passes of
  // these engines over an element.
  double inputs = -1, outputs = -1;
  double vector = -1, scalar = -1;

  double elements() const {
    return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(batch);
  }
  const std::string& result_type() const { return result.empty() ? type : result; }
  auto operator<=>(const OperationShape&) const = default;
};

}  // namespace trellis::schedule
