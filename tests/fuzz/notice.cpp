// Reads arbitrary bytes as a MembershipNotice from a rank's board: they are refused, or give a notice that comes back
// the same when it is written and read again. The first byte chooses the communicator's number of ranks.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "ccl/transports/membership_notice.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::ccl;
  if (size < 1) return 0;
  const Rank ranks = 1 + data[0];
  try {
    const MembershipNotice notice = notice_in(std::as_bytes(std::span(data, size)).subspan(1), ranks);
    for (const Rank r : notice.members)
      if (r < 0 || r >= ranks) std::abort();
    if (notice_in(bytes_of(notice, ranks), ranks) != notice) std::abort();
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
