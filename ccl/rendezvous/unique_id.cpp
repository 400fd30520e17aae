#include "ccl/rendezvous/unique_id.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "ccl/rendezvous/sha256.h"
#include "ccl/rendezvous/tcp_store.h"
#include "ccl/rendezvous/tcp_store_server.h"

namespace trellis::ccl {
namespace {

constexpr std::chrono::seconds linger{30};

// The layout: 0 mark, 4 number of addresses, 5 zero, 6 port (lowest byte first), 8 machine, 16 secret, 32 addresses,
// each a byte of length and so many bytes in the network's order, 120 checksum.
constexpr std::string_view mark = "TRL1";
constexpr std::size_t count_at = 4, port_at = 6, machine_at = 8, secret_at = 16, addresses_at = 32, sum_at = 120;
constexpr std::size_t machine_bytes = 8, secret_bytes = 16, sum_bytes = 8;

using Machine = std::array<std::byte, machine_bytes>;

// The same for all processes that reach each other through the loopback address: one boot, one network namespace.
Machine this_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::array<char, 64> space = {};
  if (readlink("/proc/self/ns/net", space.data(), space.size() - 1) > 0) text += space.data();
  const Digest digest = sha256(bytes_of(text));
  Machine machine;
  std::copy_n(digest.begin(), machine.size(), machine.begin());
  return machine;
}

std::span<const std::byte> raw(const Endpoint& e) {
  if (e.address.ss_family == AF_INET6)
    return std::as_bytes(std::span(reinterpret_cast<const sockaddr_in6&>(e.address).sin6_addr.s6_addr));
  return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in&>(e.address).sin_addr.s_addr, 1));
}

Endpoint endpoint_of(std::span<const std::byte> raw, int port) {
  Endpoint e;
  if (raw.size() == sizeof(in6_addr)) {
    auto& address = reinterpret_cast<sockaddr_in6&>(e.address);
    address.sin6_family = AF_INET6;
    std::memcpy(&address.sin6_addr, raw.data(), raw.size());
    e.length = sizeof address;
  } else {
    auto& address = reinterpret_cast<sockaddr_in&>(e.address);
    address.sin_family = AF_INET;
    std::memcpy(&address.sin_addr, raw.data(), raw.size());
    e.length = sizeof address;
  }
  e.set_port(port);
  return e;
}

std::array<std::byte, sum_bytes> checksum(const UniqueId& id) {
  const Digest digest = sha256(std::span(id.bytes).first(sum_at));
  std::array<std::byte, sum_bytes> sum;
  std::copy_n(digest.begin(), sum.size(), sum.begin());
  return sum;
}

void check(const UniqueId& id) {
  const std::span<const std::byte> bytes(id.bytes);
  if (std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }))
    throw std::invalid_argument("the unique id is 128 zeros: it was never made, or never passed to this rank");
  if (!std::ranges::equal(bytes.first(mark.size()), bytes_of(mark)))
    throw std::invalid_argument(fmt::format("not a unique id of this library: it begins with {} and not with {}",
                                            hexadecimal(bytes.first(mark.size())), hexadecimal(bytes_of(mark))));
  if (!std::ranges::equal(bytes.subspan(sum_at, sum_bytes), checksum(id)))
    throw std::invalid_argument(
        "the unique id is damaged: its checksum does not fit; were all of its 128 bytes passed to this rank?");
}

std::vector<Endpoint> places_in(const UniqueId& id) {
  const std::span<const std::byte> bytes(id.bytes);
  const int port = std::to_integer<int>(bytes[port_at]) | std::to_integer<int>(bytes[port_at + 1]) << 8;
  if (std::ranges::equal(bytes.subspan(machine_at, machine_bytes), this_machine()))
    return endpoints_of("127.0.0.1", port);
  std::vector<Endpoint> places;
  std::size_t at = addresses_at;
  for (int left = std::to_integer<int>(bytes[count_at]); left > 0; --left) {
    const std::size_t length = at < sum_at ? std::to_integer<std::size_t>(bytes[at]) : 0;
    if ((length != sizeof(in_addr) && length != sizeof(in6_addr)) || at + 1 + length > sum_at)
      throw std::invalid_argument("the unique id is damaged: its addresses do not fit into it");
    places.push_back(endpoint_of(bytes.subspan(at + 1, length), port));
    at += 1 + length;
  }
  if (places.empty())
    throw std::invalid_argument("the unique id was made on another machine, and that one has no address but loopback");
  return places;
}

}  // namespace

UniqueId make_unique_id() {
  UniqueId id;
  const std::span<std::byte> bytes(id.bytes);
  std::ranges::copy(bytes_of(mark), bytes.begin());
  std::ranges::copy(this_machine(), bytes.subspan(machine_at).begin());
  const std::span<std::byte> secret = bytes.subspan(secret_at, secret_bytes);
  fill_random(secret);
  const int port = serve_for_the_clients({.secret = hexadecimal(secret), .on_refusal = told_on_stderr()}, linger);
  bytes[port_at] = static_cast<std::byte>(port);
  bytes[port_at + 1] = static_cast<std::byte>(port >> 8);
  std::size_t at = addresses_at;
  int count = 0;
  for (const Endpoint& own : own_addresses()) {
    const std::span<const std::byte> address = raw(own);
    if (at + 1 + address.size() > sum_at) continue;
    bytes[at] = static_cast<std::byte>(address.size());
    std::ranges::copy(address, bytes.subspan(at + 1).begin());
    at += 1 + address.size();
    ++count;
  }
  bytes[count_at] = static_cast<std::byte>(count);
  std::ranges::copy(checksum(id), bytes.subspan(sum_at).begin());
  return id;
}

std::shared_ptr<Store> store_for(const UniqueId& id, Deadline deadline) {
  check(id);
  return find_tcp_store({.places = places_in(id),
                         .secret = hexadecimal(std::span(id.bytes).subspan(secret_at, secret_bytes)),
                         .name = "the store of the unique id",
                         .strangers_end_it = false},
                        deadline);
}

}  // namespace trellis::ccl
