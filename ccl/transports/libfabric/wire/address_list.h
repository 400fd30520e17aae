// The addresses of several wires as one text, each behind its length; a wire that is closed has none.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "ccl/transports/libfabric/wire/wire.h"

namespace trellis::ccl::libfabric {

std::vector<std::byte> address_list(std::span<const std::unique_ptr<Wire>>);

// The addresses in the list, up to the first that is cut off.
std::vector<std::span<const std::byte>> addresses_in(std::span<const std::byte> list);

}  // namespace trellis::ccl::libfabric
