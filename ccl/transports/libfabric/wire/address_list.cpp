#include "ccl/transports/libfabric/wire/address_list.h"

namespace trellis::ccl::libfabric {

std::vector<std::byte> address_list(std::span<const std::unique_ptr<Wire>> wires) {
  std::vector<std::byte> list;
  for (const auto& wire : wires) {
    const auto one = wire ? wire->address() : std::span<const std::byte>();
    list.push_back(static_cast<std::byte>(one.size()));
    list.insert(list.end(), one.begin(), one.end());
  }
  return list;
}

std::vector<std::span<const std::byte>> addresses_in(std::span<const std::byte> list) {
  std::vector<std::span<const std::byte>> all;
  while (!list.empty() && static_cast<std::size_t>(list.front()) < list.size()) {
    const auto bytes = static_cast<std::size_t>(list.front());
    all.push_back(list.subspan(1, bytes));
    list = list.subspan(1 + bytes);
  }
  return all;
}

}  // namespace trellis::ccl::libfabric
