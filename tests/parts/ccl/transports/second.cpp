// Shared memory under a second name: what a transport's file must say at least.
#include "ccl/transports/registry.h"

namespace trellis::ccl {
namespace {

std::unique_ptr<Transport> open(std::shared_ptr<Store> store, const JoinOptions& joining) {
  return transport_named("shared_memory").open(std::move(store), joining);
}

const RegisteredTransport second({.name = "second", .summary = "shared memory once more", .open = open});

}  // namespace
}  // namespace trellis::ccl
