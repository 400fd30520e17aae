#include "ccl/plan/message_mark.h"

#include "schedule/collective_traits.h"

namespace trellis::ccl {

std::uint64_t mark_of_call(const Call& c, kernels::DType wire, std::uint64_t schedule) {
  std::uint64_t h = hash_combine(hash_combine(schedule, c.count), static_cast<std::uint64_t>(c.operation.collective) |
                                                                      static_cast<std::uint64_t>(c.type) << 8 |
                                                                      static_cast<std::uint64_t>(wire) << 16);
  if (schedule::rooted(c.operation.collective)) h = hash_combine(h, static_cast<std::uint64_t>(c.operation.root) + 1);
  if (!schedule::counts_by_pair(c.operation.collective))
    for (std::size_t n : c.counts) h = hash_combine(h, n);
  return schedule::reduces(c.operation.collective) ? h ^ (static_cast<std::uint64_t>(c.op.kind) + 1) << 56 : h;
}

}  // namespace trellis::ccl
