#include "ccl/rendezvous/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "ccl/rendezvous/pmix.h"
#include "ccl/rendezvous/sha256.h"
#include "ccl/rendezvous/tcp_store.h"
#include "ccl/rendezvous/tcp_store_server.h"
#include "ccl/rendezvous/unique_id.h"

namespace trellis::ccl {
namespace {

// Without a secret of its own a job still has a name, so that it does not join another one by mistake.
std::string secret_of(const Launched& l) {
  return l.secret.empty() ? fmt::format("no secret: {}:{}", l.address, l.port) : l.secret;
}

StoreSearch search_of(const Launched& l) {
  StoreSearch search{.places = {},
                     .secret = secret_of(l),
                     .name = fmt::format("rank 0's store at {}:{}", l.address, l.port),
                     .strangers_end_it = false};
  const std::vector<Endpoint> hosts = endpoints_of(l.address, l.port);
  for (int i = 0; i < ports_of_ranks && l.port + i <= 65535; ++i)
    for (Endpoint place : hosts) {
      place.set_port(l.port + i);
      search.places.push_back(place);
    }
  return search;
}

constexpr std::string_view keeper_key = "trellis/keeper";

// Names this process, so that it knows its own server from that of another job.
Bytes keeper() {
  static const auto random = [] {
    std::array<std::byte, 16> bits;
    fill_random(bits);
    return bits;
  }();
  const std::string text = fmt::format("{} {}", getpid(), hexadecimal(random));
  const auto bytes = bytes_of(text);
  return {bytes.begin(), bytes.end()};
}

std::shared_ptr<Store> own_store(const Launched& l, int port, Deadline deadline) {
  const std::string at = listening_address(l.address);
  return tcp_store(at.empty() ? "127.0.0.1" : at, port, secret_of(l), deadline);
}

// The server of an earlier call, when it is that which has the port.
std::shared_ptr<Store> earlier_store(const Launched& l, int port, Deadline deadline) {
  constexpr std::chrono::milliseconds at_once{500};  // for a server in this process
  std::shared_ptr<Store> store;
  try {
    store = own_store(l, port, std::min(deadline, Clock::now() + at_once));
  } catch (const std::system_error&) {
    return nullptr;
  } catch (const TimedOut&) {
    return nullptr;
  }
  if (store->get(keeper_key, deadline) == keeper()) return store;
  throw std::system_error(
      EADDRINUSE, std::generic_category(),
      fmt::format("another job with the same address and secret keeps its store at {}:{}", l.address, port));
}

std::shared_ptr<Store> keep_store(const Launched& l, Deadline deadline) {
  const std::string at = listening_address(l.address);
  for (int port = l.port; port < l.port + ports_of_ranks && port <= 65535; ++port) {
    try {
      serve_for_the_process({.address = at, .port = port, .secret = secret_of(l), .on_refusal = told_on_stderr()});
    } catch (const std::system_error& error) {
      if (error.code().value() != EADDRINUSE) throw;
      if (std::shared_ptr<Store> store = earlier_store(l, port, deadline)) return store;
      continue;
    }
    std::shared_ptr<Store> store = own_store(l, port, deadline);
    store->set(keeper_key, keeper());
    return store;
  }
  throw std::system_error(EADDRINUSE, std::generic_category(),
                          fmt::format("rank 0's store: port {} and the {} after it", l.port, ports_of_ranks - 1));
}

}  // namespace

std::string listening_address(const std::string& host) {
  if (host == "localhost") return "127.0.0.1";
  return host == "::1" || host.starts_with("127.") ? host : "";
}

std::shared_ptr<Store> store_from_environment(const Launched& l, Deadline deadline) {
  if (l.ranks == 1) return memory_store();
  if (!l.address.empty()) return l.rank == 0 ? keep_store(l, deadline) : find_tcp_store(search_of(l), deadline);
  if (l.pmix) return store_for(id_through_pmix(l.rank, make_unique_id, deadline), deadline);
  throw std::invalid_argument(
      fmt::format("rank {} of {} by {} was not told where rank 0 is: set MASTER_ADDR and MASTER_PORT", l.rank, l.ranks,
                  l.by.empty() ? "nobody" : l.by));
}

}  // namespace trellis::ccl
