#include "ccl/transports/libfabric/wire/registration_request.h"

#include <fmt/format.h>

#include <cstddef>

#include "text/refuse.h"

namespace trellis::ccl::libfabric {

static_assert(offsetof(RegistrationRequest, newer) == sizeof(fi_mr_attr));

RegistrationRequest::RegistrationRequest(const MemoryDescription& m, std::uint64_t access, std::uint64_t key,
                                         std::uint64_t caps, std::uint32_t version)
    : part{m.data, m.bytes} {
  attributes.mr_iov = &part;
  attributes.iov_count = 1;
  attributes.access = access;
  attributes.requested_key = key;
  attributes.iface = FI_HMEM_SYSTEM;
  const bool exported = m.dmabuf >= 0;
  if (m.of == MemoryDescription::Of::host && !exported) return;
  if ((caps & FI_HMEM) == 0)
    text::refuse("{} bytes {} can't be registered: expected a provider with FI_HMEM, such as efa", m.bytes,
                 m.of == MemoryDescription::Of::neuron ? fmt::format("of Neuron device {}", m.device)
                                                       : "of a DMA-BUF of the host");
  if (m.of == MemoryDescription::Of::neuron) {
    attributes.iface = FI_HMEM_NEURON;
    attributes.device.neuron = m.device;
  }
  if (!exported) return;
  if (version < has_dmabuf)
    text::refuse("libfabric {}.{} can't register a DMA-BUF: expected 1.20 or later, such as the EFA installer's",
                 FI_MAJOR(version), FI_MINOR(version));
  dmabuf = {m.dmabuf, m.dmabuf_offset, m.bytes, m.data};
  static_assert(sizeof(attributes.mr_iov) == sizeof(&dmabuf));
  attributes.mr_iov = reinterpret_cast<const iovec*>(&dmabuf);
  flags = by_dmabuf;
}

}  // namespace trellis::ccl::libfabric
