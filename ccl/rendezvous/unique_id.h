// Rendezvous by unique id, as in NCCL: one rank makes an id of 128 bytes, the user passes it to the others, and each
// finds the store by it.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "ccl/store.h"

namespace trellis::ccl {

// Address of the store's server and the secret to use it. Anyone who has the id can join.
struct UniqueId {
  std::array<std::byte, 128> bytes = {};
  bool operator==(const UniqueId&) const = default;
};

// Creates an id and its store in this process; one server serves the stores of all ids. The store waits for its first
// user. Then it lives until its members have left it, nobody has used it for some seconds, or the process ends. An id
// is for one communicator (and those split from it).
UniqueId make_unique_id();

// Throws invalid_argument for bytes that are not an id, or a damaged one; system_error (ECONNREFUSED) at once when the
// store was on this machine and has gone; otherwise as tcp_store does.
std::shared_ptr<Store> store_for(const UniqueId&, Deadline);

}  // namespace trellis::ccl
