#include "ccl/transports/libfabric/wire/tcp_defer_accept.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "net/descriptor.h"

namespace trellis::ccl::libfabric {
namespace {

constexpr std::size_t most_descriptors = 65'536;  // only so many are searched
// How long a silent connection may wait before the kernel hands it over; the kernel rounds this up by a few minutes.
constexpr int longest_silence_s = 7 * 24 * 3600;

bool listens(int descriptor) {
  int yes = 0;
  socklen_t bytes = sizeof yes;
  return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &yes, &bytes) == 0 && yes != 0;
}

// True if a socket that is bound to `bound` gets connections to `address`: the ports are equal, and so are the hosts,
// unless it is bound to the wildcard address. Bytes behind the address are ignored.
template <class Address, class Host>
bool same(const sockaddr_storage& bound, std::span<const std::byte> address, in_port_t Address::*port,
          Host Address::*host) {
  Address a = {}, b = {};
  if (address.size() < sizeof b) return false;
  std::memcpy(&a, &bound, sizeof a);
  std::memcpy(&b, address.data(), sizeof b);
  const Host any = {};
  return a.*port == b.*port &&
         (std::memcmp(&(a.*host), &(b.*host), sizeof any) == 0 || std::memcmp(&(a.*host), &any, sizeof any) == 0);
}

bool is_bound_to(int descriptor, std::span<const std::byte> address) {
  sockaddr_storage bound = {};
  socklen_t bytes = sizeof bound;
  sa_family_t family = AF_UNSPEC;
  std::memcpy(&family, address.data(), sizeof family);
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound), &bytes) != 0 || bound.ss_family != family)
    return false;
  return family == AF_INET ? same(bound, address, &sockaddr_in::sin_port, &sockaddr_in::sin_addr)
                           : same(bound, address, &sockaddr_in6::sin6_port, &sockaddr_in6::sin6_addr);
}

}  // namespace

bool accept_only_who_speaks(std::span<const std::byte> address) {
  sa_family_t family = AF_UNSPEC;
  if (address.size() < sizeof family) return false;
  std::memcpy(&family, address.data(), sizeof family);
  if (family != AF_INET && family != AF_INET6) return false;
  const int end = static_cast<int>(std::min(net::descriptor_limit(), most_descriptors));
  for (int descriptor = 0; descriptor < end; ++descriptor)
    if (listens(descriptor) && is_bound_to(descriptor, address))
      return setsockopt(descriptor, IPPROTO_TCP, TCP_DEFER_ACCEPT, &longest_silence_s, sizeof longest_silence_s) == 0;
  return false;
}

}  // namespace trellis::ccl::libfabric
