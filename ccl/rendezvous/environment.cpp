#include "ccl/rendezvous/environment.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <system_error>

#include "ccl/rendezvous/locally_served_store.h"
#include "ccl/rendezvous/pmix_rendezvous.h"
#include "ccl/rendezvous/tcp/store_client.h"
#include "ccl/rendezvous/unique_id.h"
#include "device/fork_safe_singleton.h"
#include "text/refuse.h"

namespace trellis::ccl {
namespace {

// A job without a secret uses its address and port as one, so that it does not join another job by mistake.
std::string secret_of(const LaunchedProcess& l) {
  return l.secret.empty() ? fmt::format("no secret: {}:{}", l.address, l.port) : l.secret;
}

StoreClientOptions search_of(const LaunchedProcess& l) {
  StoreClientOptions search{.places = {},
                            .secret = secret_of(l),
                            .name = fmt::format("rank 0's store at {}:{}", l.address, l.port),
                            .strangers_end_it = false};
  // Only the address where rank 0 listens is used: another program may listen at the name's other addresses.
  const std::string at = listening_address(l.address);
  const std::vector<net::Address> hosts = net::addresses_of(at.empty() ? l.address : at, l.port);
  for (int i = 0; i < ports_of_ranks && l.port + i <= 65535; ++i)
    for (net::Address place : hosts) {
      place.set_port(l.port + i);
      search.places.push_back(place);
    }
  return search;
}

// Whether the program at the port is a store with this job's secret.
bool kept_by_another(const LaunchedProcess& l, int port, Deadline deadline) {
  constexpr std::chrono::milliseconds at_once{500};  // for a server on this machine
  const std::string at = listening_address(l.address);
  try {
    tcp_store(at.empty() ? "127.0.0.1" : at, port, secret_of(l), std::min(deadline, Clock::now() + at_once));
    return true;
  } catch (const std::system_error&) {
  } catch (const TimedOut&) {
  }
  return false;
}

std::shared_ptr<StoreLoop> serve(const LaunchedProcess& l, Deadline deadline) {
  for (int port = l.port; port < l.port + ports_of_ranks && port <= 65535; ++port) {
    try {
      return serve_while_used({.address = listening_address(l.address),
                               .port = port,
                               .secret = secret_of(l),
                               .on_refusal = told_on_stderr()});
    } catch (const std::system_error& error) {
      if (error.code().value() != EADDRINUSE) throw;
    }
    if (kept_by_another(l, port, deadline))
      throw std::system_error(
          EADDRINUSE, std::generic_category(),
          fmt::format("another job with the same address and secret keeps its store at {}:{}", l.address, port));
  }
  throw std::system_error(EADDRINUSE, std::generic_category(),
                          fmt::format("rank 0's store: port {} and the {} after it", l.port, ports_of_ranks - 1));
}

// The stores that this process keeps as rank 0 of a job.
class JobStores {
 public:
  std::shared_ptr<Store> keep(const LaunchedProcess& l, Deadline deadline) {
    const std::unique_lock lock(mutex_, deadline);
    if (!lock.owns_lock())
      throw TimedOut(fmt::format("rank 0's store at {}:{} is still being made", l.address, l.port));
    std::weak_ptr<StoreLoop>& known = loops_[fmt::format("{}:{} {}", l.address, l.port, l.secret)];
    std::shared_ptr<StoreLoop> loop = known.lock();
    if (!loop || !add_store(*loop, {}, secret_of(l))) known = loop = serve(l, deadline);
    return own_store(std::move(loop));
  }

 private:
  std::timed_mutex mutex_;
  std::map<std::string, std::weak_ptr<StoreLoop>> loops_;
};

JobStores& job_stores() {
  return device::of_this_process([] { return new JobStores; });
}

}  // namespace

std::string next_job_prefix() {
  static std::atomic<int> made = 0;
  return fmt::format("c{}", made++);
}

std::string listening_address(const std::string& host) {
  if (host == "localhost") return "127.0.0.1";
  return host == "::1" || host.starts_with("127.") ? host : "";
}

std::shared_ptr<Store> store_from_environment(const LaunchedProcess& l, Deadline deadline) {
  if (l.ranks == 1) return memory_store();
  if (!l.address.empty()) return l.rank == 0 ? job_stores().keep(l, deadline) : find_tcp_store(search_of(l), deadline);
  if (l.pmix) return store_for(id_through_pmix(l.rank, make_unique_id, deadline), deadline);
  text::refuse("rank {} of {} by {} was not told where rank 0 is: set MASTER_ADDR and MASTER_PORT", l.rank, l.ranks,
               l.by.empty() ? "nobody" : l.by);
}

}  // namespace trellis::ccl
