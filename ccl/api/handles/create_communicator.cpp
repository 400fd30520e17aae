#include "ccl/api/handles/create_communicator.h"

#include <atomic>
#include <cstring>
#include <string>

#include "ccl/api/handles/grouping.h"
#include "ccl/failure/dump_file.h"
#include "ccl/rendezvous/environment.h"
#include "ccl/rendezvous/forwarding_store.h"
#include "ccl/rendezvous/unique_id.h"

namespace trellis::ccl::api {
namespace {

// Waits in short intervals, to notice when the creation is cancelled.
class PatientStore : public ForwardingStore {
 public:
  PatientStore(std::shared_ptr<Store> below, std::shared_ptr<const std::atomic<bool>> given_up)
      : ForwardingStore(std::move(below)), given_up_(std::move(given_up)) {}
  Bytes get(std::string_view key, Deadline deadline) override {
    for (;;) {
      if (*given_up_) throw Aborted("the communicator was aborted in its making");
      const Deadline soon = Clock::now() + std::chrono::milliseconds(100);
      if (soon >= deadline) return below_->get(key, deadline);
      try {
        return below_->get(key, soon);
      } catch (const TimedOut&) {
      }
    }
  }

 private:
  const std::shared_ptr<const std::atomic<bool>> given_up_;
};

}  // namespace

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
  if (comm.known_early()) store = std::make_shared<PatientStore>(std::move(store), comm.given_up());
  comm.set(Communicator::create(std::move(store), rank, ranks, config, device()));
}

trellis_result begin_for(trellis_comm* out, AsyncJob job) {
  void* const handle = comms().add(job.owner);
  *out = static_cast<trellis_comm>(handle);
  try {
    return begin(std::move(job));
  } catch (...) {
    *out = nullptr;
    comms().take(handle);
    throw;
  }
}

void check_ranks(int rank, int ranks) {
  if (ranks < 1) throw std::invalid_argument(fmt::format("{} ranks: expected at least 1", ranks));
  if (rank < 0 || rank >= ranks)
    throw std::invalid_argument(fmt::format("rank {} of {}: expected 0 to {}", rank, ranks, ranks - 1));
}

}  // namespace trellis::ccl::api
