#include "ccl/transports/libfabric/control/liveness_probes.h"

#include <poll.h>

#include <cerrno>
#include <chrono>

#include "net/socket.h"

namespace trellis::ccl::libfabric {
namespace {

constexpr auto longest = std::chrono::seconds(2);

}  // namespace

void LivenessProbes::begin(std::size_t place, const net::Address& at) {
  if (all_.contains(place)) return;
  Knock k{.socket = net::begin_to_connect(at), .error = errno, .begun = Clock::now()};
  if (k.socket) all_.emplace(place, std::move(k));
}

std::vector<std::size_t> LivenessProbes::refused() {
  std::vector<std::size_t> places;
  std::erase_if(all_, [&](const auto& one) {
    const auto& [place, k] = one;
    if (k.error == 0 && !net::ready_before(k.socket.number(), POLLOUT, Clock::now()))
      return Clock::now() - k.begun > longest;
    const int error = k.error != 0 ? k.error : net::outcome_of_connecting(k.socket);
    if (error == ECONNREFUSED) places.push_back(place);
    return true;
  });
  return places;
}

}  // namespace trellis::ccl::libfabric
