#include "net/descriptor.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace trellis::net {

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

std::size_t descriptor_limit() {
  rlimit files = {};
  return getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 256;
}

std::size_t most_silent(std::size_t limit) { return std::clamp<std::size_t>(limit / 32, 4, 64); }

}  // namespace trellis::net
