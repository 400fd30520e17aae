#include "ccl/rendezvous/unique_id.h"

#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "ccl/config.h"
#include "ccl/rendezvous/interface_pattern.h"
#include "ccl/rendezvous/locally_served_store.h"
#include "ccl/rendezvous/tcp/store_client.h"
#include "ccl/rendezvous/this_machine.h"
#include "device/fork_safe_singleton.h"
#include "net/sha256.h"
#include "text/refuse.h"

namespace trellis::ccl {
namespace {

// Layout: 0 mark, 4 number of addresses, 5 zero, 6 port (lowest byte first), 8 machine, 16 secret, 32 addresses (each a
// length byte and that many bytes in network order), 120 checksum.
constexpr std::string_view mark = "TRL1";
constexpr std::size_t count_at = 4, port_at = 6, machine_at = 8, secret_at = 16, addresses_at = 32, sum_at = 120;
constexpr std::size_t machine_bytes = 8, secret_bytes = 16, sum_bytes = 8;

using Machine = std::array<std::byte, machine_bytes>;

// Equal for all processes that reach each other through the loopback address: one boot, one network namespace.
Machine this_machine() {
  const net::Digest digest = net::sha256(net::bytes_of(fmt::format("{} {}", boot_id(), namespace_of("net"))));
  Machine machine;
  std::copy_n(digest.begin(), machine.size(), machine.begin());
  return machine;
}

std::array<std::byte, sum_bytes> checksum(const UniqueId& id) {
  const net::Digest digest = net::sha256(std::span(id.bytes).first(sum_at));
  std::array<std::byte, sum_bytes> sum;
  std::copy_n(digest.begin(), sum.size(), sum.begin());
  return sum;
}

std::string secret_in(const UniqueId& id) {
  return net::hexadecimal(std::span(id.bytes).subspan(secret_at, secret_bytes));
}

int port_in(const UniqueId& id) {
  return std::to_integer<int>(id.bytes[port_at]) | std::to_integer<int>(id.bytes[port_at + 1]) << 8;
}

void check(const UniqueId& id) {
  const std::span<const std::byte> bytes(id.bytes);
  if (std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }))
    throw std::invalid_argument("the unique id is 128 zeros: it was never made, or never passed to this rank");
  if (!std::ranges::equal(bytes.first(mark.size()), net::bytes_of(mark)))
    text::refuse("not a unique id of this library: it begins with {} and not with {}",
                 net::hexadecimal(bytes.first(mark.size())), net::hexadecimal(net::bytes_of(mark)));
  if (!std::ranges::equal(bytes.subspan(sum_at, sum_bytes), checksum(id)))
    throw std::invalid_argument(
        "the unique id is damaged: its checksum does not fit; were all of its 128 bytes passed to this rank?");
}

std::vector<net::Address> places_in(const UniqueId& id) {
  const std::span<const std::byte> bytes(id.bytes);
  const int port = port_in(id);
  if (std::ranges::equal(bytes.subspan(machine_at, machine_bytes), this_machine()))
    return net::addresses_of("127.0.0.1", port);
  std::vector<net::Address> places;
  std::size_t at = addresses_at;
  for (int left = std::to_integer<int>(bytes[count_at]); left > 0; --left) {
    const std::size_t length = at < sum_at ? std::to_integer<std::size_t>(bytes[at]) : 0;
    if ((length != sizeof(in_addr) && length != sizeof(in6_addr)) || at + 1 + length > sum_at)
      throw std::invalid_argument("the unique id is damaged: its addresses do not fit into it");
    places.push_back(net::address_of(bytes.subspan(at + 1, length), port));
    at += 1 + length;
  }
  if (places.empty())
    throw std::invalid_argument(
        "the unique id was made on another machine, and that one has no address but loopback, or none on the "
        "interfaces that NCCL_SOCKET_IFNAME selects there");
  return places;
}

// Visible to anyone who watches connections, so it reveals nothing of the secret.
StoreName name_for(const std::string& secret) {
  const net::Digest digest = net::HmacKey(net::bytes_of(secret)).of({net::bytes_of("trellis store: name")});
  StoreName name;
  std::copy_n(digest.begin(), name.size(), name.begin());
  return name;
}

// The server of all ids that were made in this process and are in use.
class IdServer {
 public:
  int add(const std::string& secret) {
    const StoreName name = name_for(secret);
    const std::lock_guard lock(mutex_);
    std::shared_ptr<StoreLoop> loop = loop_.lock();
    if (!loop || !add_store(*loop, name, secret)) {
      loop = serve_while_used({.secret = secret, .on_refusal = told_on_stderr()}, name);
      loop_ = loop;
    }
    return port_of(*loop);
  }

  // Null: not an id of this process, or one that is used up.
  std::shared_ptr<Store> own(const UniqueId& id) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<StoreLoop> loop = loop_.lock();
    return loop && port_of(*loop) == port_in(id) ? own_store(std::move(loop), name_for(secret_in(id))) : nullptr;
  }

 private:
  std::mutex mutex_;
  std::weak_ptr<StoreLoop> loop_;
};

IdServer& id_server() {
  return device::of_this_process([] { return new IdServer; });
}

}  // namespace

UniqueId make_unique_id() {
  UniqueId id;
  const std::span<std::byte> bytes(id.bytes);
  std::ranges::copy(net::bytes_of(mark), bytes.begin());
  std::ranges::copy(this_machine(), bytes.subspan(machine_at).begin());
  net::fill_random(bytes.subspan(secret_at, secret_bytes));
  std::size_t at = addresses_at;
  int count = 0;
  const std::string interfaces = sockets_from_environment();
  for (const auto& [interface, own] : net::own_addresses()) {
    if (own.is_link_local() || !matches_interface(interfaces, interface)) continue;
    const std::span<const std::byte> address = own.number();
    if (at + 1 + address.size() > sum_at) continue;
    bytes[at] = static_cast<std::byte>(address.size());
    std::ranges::copy(address, bytes.subspan(at + 1).begin());
    at += 1 + address.size();
    ++count;
  }
  bytes[count_at] = static_cast<std::byte>(count);
  const int port = id_server().add(secret_in(id));  // last, when nothing else can fail: from here on the store is kept
  bytes[port_at] = static_cast<std::byte>(port);
  bytes[port_at + 1] = static_cast<std::byte>(port >> 8);
  std::ranges::copy(checksum(id), bytes.subspan(sum_at).begin());
  return id;
}

std::shared_ptr<Store> store_for(const UniqueId& id, Deadline deadline) {
  check(id);
  if (std::shared_ptr<Store> own = id_server().own(id)) return own;
  const std::string secret = secret_in(id);
  return find_tcp_store({.places = places_in(id),
                         .secret = secret,
                         .name = "the store of the unique id",
                         .store = name_for(secret),
                         .strangers_end_it = false,
                         .was_there = true},
                        deadline);
}

}  // namespace trellis::ccl
