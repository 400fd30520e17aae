#include "ccl/api/handles/create_communicator.h"

#include <atomic>
#include <cstring>
#include <string>

#include "ccl/api/handles/grouping.h"
#include "ccl/failure/dump_file.h"
#include "ccl/rendezvous/environment.h"
#include "ccl/rendezvous/forwarding_store.h"
#include "ccl/rendezvous/unique_id.h"
#include "text/refuse.h"

namespace trellis::ccl::api {

Rendezvous rendezvous_by(const trellis_unique_id& id) {
  UniqueId same;
  static_assert(sizeof same.bytes == sizeof id.bytes);
  std::memcpy(same.bytes.data(), id.bytes, sizeof id.bytes);
  return [same](Deadline deadline) { return store_for(same, deadline); };
}

Rendezvous rendezvous_by_environment(const LaunchedProcess& launched) {
  return [launched, prefix = next_job_prefix()](Deadline deadline) {
    return std::make_shared<PrefixStore>(store_from_environment(launched, deadline), prefix);
  };
}

void join(Comm& comm, const Rendezvous& meeting, Rank rank, Rank ranks, const Config& config) {
  std::shared_ptr<Store> store;
  try {
    store = meeting(Clock::now() + config.timeout);
  } catch (...) {
    std::rethrow_exception(write_making_dump(config.dump, rank, ranks, std::current_exception()));
  }
  const auto expect_wanted = [given_up = comm.given_up()] {
    if (*given_up) throw Aborted("the communicator was aborted in its making");
  };
  if (comm.known_early()) store = std::make_shared<PollingStore>(std::move(store), true, expect_wanted);
  comm.set(Communicator::create(std::move(store), rank, ranks, config, device()));
}

trellis_result begin_for(trellis_comm* out, bool background, std::function<void(Comm&)> work,
                         std::shared_ptr<Comm> parent) {
  const auto made = std::make_shared<Comm>(background);
  void* const handle = comms().add(made);
  *out = static_cast<trellis_comm>(handle);
  try {
    return begin({.owner = made,
                  .parent = std::move(parent),
                  .work = [c = made.get(), work = std::move(work)] { work(*c); },
                  .background = background});
  } catch (...) {
    *out = nullptr;
    comms().take(handle);
    throw;
  }
}

void check_ranks(int rank, int ranks) {
  if (ranks < 1) text::refuse("{} ranks: expected at least 1", ranks);
  if (rank < 0 || rank >= ranks) text::refuse("rank {} of {}: expected 0 to {}", rank, ranks, ranks - 1);
}

}  // namespace trellis::ccl::api
