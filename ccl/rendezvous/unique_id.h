// NCCL's way to meet: one rank makes an id of 128 bytes, the user takes it to the others, each finds the store by it.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "ccl/store.h"

namespace trellis::ccl {

// Where the store's server is and the secret to use it: whoever has the id can join.
struct UniqueId {
  std::array<std::byte, 128> bytes = {};
  bool operator==(const UniqueId&) const = default;
};

// Starts a store's server in this process. It lives until the last store found by the id is gone, and some seconds
// more, or until the process ends. An id is for one communicator (and those split from it).
UniqueId make_unique_id();

// Throws invalid_argument for bytes that are no id, or a damaged one; else as tcp_store does.
std::shared_ptr<Store> store_for(const UniqueId&, Deadline);

}  // namespace trellis::ccl
