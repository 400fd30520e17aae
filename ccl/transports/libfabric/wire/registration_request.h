// The arguments with which fi_mr_regattr registers memory of the host or of a device.
#pragma once

#include <array>

#include "ccl/transports/libfabric/wire/library.h"
#include "ccl/transports/libfabric/wire/memory_description.h"

namespace trellis::ccl::libfabric {

// libfabric's fi_mr_dmabuf, which it has since version 1.20; Debian's headers lack it.
struct Dmabuf {
  int fd = -1;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  void* base = nullptr;
};
inline constexpr std::uint64_t by_dmabuf = std::uint64_t{1} << 40;  // FI_MR_DMABUF
inline constexpr std::uint32_t has_dmabuf = FI_VERSION(1, 20);

struct RegistrationRequest {
  // Throws invalid_argument when such memory can't be registered with an endpoint of these capabilities by a library of
  // this version.
  RegistrationRequest(const MemoryDescription&, std::uint64_t access, std::uint64_t key, std::uint64_t caps,
                      std::uint32_t version);
  RegistrationRequest(const RegistrationRequest&) = delete;
  RegistrationRequest& operator=(const RegistrationRequest&) = delete;

  fi_mr_attr attributes = {};
  std::array<std::uint64_t, 8> newer = {};  // fields that later versions have behind these: not set
  std::uint64_t flags = 0;
  iovec part = {};
  Dmabuf dmabuf = {};
};

}  // namespace trellis::ccl::libfabric
