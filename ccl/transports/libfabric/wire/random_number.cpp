#include "ccl/transports/libfabric/wire/random_number.h"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace trellis::ccl::libfabric {

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    throw std::system_error(errno, std::generic_category(), "getrandom of 8 bytes");
  return number;
}

}  // namespace trellis::ccl::libfabric
