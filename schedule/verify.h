// Proves that a schedule computes its collective, whatever the data, the sizes and the timing; or says where it fails.
#pragma once
#include "schedule/wiring.h"

namespace trellis::schedule {

struct Report {
  std::optional<Fault> fault;
  std::int64_t steps = 0;
  std::int64_t transfers = 0;
  // Every rank adds up in the same order, so that their results agree to the bit in floating point too.
  bool same_bits_everywhere = true;

  bool ok() const { return !fault; }
  std::string text() const;  // one sentence
};

// What a proof may cost. A schedule that came from outside can claim sizes that no memory holds; it is refused by name.
struct Effort {
  std::int64_t cells = std::int64_t{1} << 26;    // chunks of memory, all ranks together
  std::int64_t touches = std::int64_t{1} << 31;  // chunks that the steps read and write
};

Report verify(const Schedule&, const Effort& most = {});

}  // namespace trellis::schedule
