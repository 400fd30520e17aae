#include "ccl/transports/libfabric/presence/knocks.h"

#include <poll.h>

#include <cerrno>
#include <chrono>

namespace trellis::ccl::libfabric {
namespace {

constexpr auto longest = std::chrono::seconds(2);

}  // namespace

void Knocks::begin(std::size_t place, const ccl::Endpoint& at) {
  if (all_.contains(place)) return;
  Knock k{.socket = Descriptor(socket(at.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
          .begun = Clock::now()};
  if (!k.socket) return;
  const auto* const address = reinterpret_cast<const sockaddr*>(&at.address);
  if (connect(k.socket.number(), address, at.length) == 0) return;
  if (errno != EINPROGRESS) k.error = errno;
  all_.emplace(place, std::move(k));
}

std::vector<std::size_t> Knocks::refused() {
  std::vector<std::size_t> places;
  std::erase_if(all_, [&](const auto& one) {
    const auto& [place, k] = one;
    pollfd p = {.fd = k.socket.number(), .events = POLLOUT, .revents = 0};
    if (k.error == 0 && poll(&p, 1, 0) <= 0) return Clock::now() - k.begun > longest;
    int error = k.error;
    socklen_t size = sizeof error;
    if (error == 0) getsockopt(k.socket.number(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == ECONNREFUSED) places.push_back(place);
    return true;
  });
  return places;
}

}  // namespace trellis::ccl::libfabric
