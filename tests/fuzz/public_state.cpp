// Reads arbitrary bytes as the state that a rank publishes over a fabric: they are refused, or give a state whose
// activity has a description and that comes back the same when it is written and read again.
#if __has_include(<rdma/fabric.h>)

#include "ccl/transports/libfabric/presence/public_state.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "ccl/failure/mismatch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::ccl;
  libfabric::PublicState read, again;
  if (!libfabric::read_public(std::as_bytes(std::span(data, size)), read)) return 0;
  if (text_of(read.head.activity).empty()) std::abort();
  std::vector<std::byte> written(libfabric::public_bytes(read));
  if (written.size() > size) std::abort();
  libfabric::write_public(read, written);
  if (!libfabric::read_public(written, again) || again.address != read.address || again.board != read.board ||
      again.head.version != read.head.version || again.head.left != read.head.left)
    std::abort();
  return 0;
}

#else

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t) { return 0; }

#endif
