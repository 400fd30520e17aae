#include "trellis/torch/native/backend.h"

#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "trellis/torch/native/issue_operation.h"
#include "trellis/torch/native/life_store.h"
#include "trellis/torch/native/tensors/window_allocator.h"

namespace trellis::process_group {
namespace {

std::shared_ptr<Membership> membership(int rank, int size, const c10d::Backend::Options& options) {
  auto group = std::make_shared<Membership>(Membership{options.group_name, rank, size, options.timeout, {}});
  for (const std::uint64_t of_job : options.global_ranks_in_group)
    group->ranks.push_back(static_cast<std::int64_t>(of_job));
  return group;
}

ccl::Config config_of(const c10d::Backend::Options& options) {
  ccl::Config config = ccl::config_from_environment();
  config.timeout = options.timeout;
  return config;
}

}  // namespace

struct TrellisBackend::Joined {
  c10::intrusive_ptr<c10d::Store> store;  // of this life of the group
  std::unique_ptr<ccl::Communicator> comm;
};

TrellisBackend::Joined TrellisBackend::join(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                                            const Options& options) {
  try {
    const auto meeting = std::make_shared<LifeStore>(std::move(store), rank, options.timeout);
    auto comm = ccl::Communicator::create(meeting, rank, size, config_of(options), device::host_of_process());
    return {meeting->store_of_life(), std::move(comm)};
  } catch (...) {
    std::rethrow_exception(as_torch_error(std::current_exception(), "the creation", *membership(rank, size, options)));
  }
}

TrellisBackend::TrellisBackend(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                               c10::intrusive_ptr<Options> options)
    : TrellisBackend(join(std::move(store), rank, size, *options), options) {}

TrellisBackend::TrellisBackend(Joined joined, c10::intrusive_ptr<Options> options)
    : Backend(joined.comm->rank(), joined.comm->ranks()),
      store_(std::move(joined.store)),
      options_(std::move(options)),
      group_(membership(rank_, size_, *options_)),
      comm_(std::move(joined.comm)),
      recording_(recording_of_process(*group_)),
      messages_(new PointToPoint(store_, group_, config_of(*options_))) {}

TrellisBackend::~TrellisBackend() { close(); }

c10::intrusive_ptr<TrellisBackend::Options> TrellisBackend::getBackendOptions() {
  auto options = c10::make_intrusive<Options>(*options_);
  options->timeout = timeout_;
  return options;
}

// Applies to operations that are called from now on.
void TrellisBackend::setTimeout(std::chrono::milliseconds timeout) {
  if (timeout > options_->timeout)
    TORCH_WARN("trellis: a timeout of ", timeout.count(), " ms for collectives: the group's is ",
               options_->timeout.count(), " ms since it was made, and ends them first");
  timeout_ = timeout;
}

std::chrono::milliseconds TrellisBackend::patience(const Issue& issue) const {
  return issue.timeout == c10d::kUnsetTimeout ? timeout_.load() : issue.timeout;
}

bool TrellisBackend::own_patience(const Issue& issue) const { return patience(issue) != options_->timeout; }

std::shared_ptr<ccl::Communicator> TrellisBackend::communicator() const {
  const std::lock_guard lock(comm_mutex_);
  return comm_;
}

c10d::ErrorType TrellisBackend::getError() {
  if (aborted_) return c10d::ErrorType::COMM_ERROR;
  const auto comm = communicator();
  const std::exception_ptr error = comm ? comm->error() : nullptr;
  if (!error) return c10d::ErrorType::SUCCESS;
  try {
    std::rethrow_exception(error);
  } catch (const ccl::TimedOut&) {
    return c10d::ErrorType::TIMEOUT;
  } catch (const ccl::PeerLost&) {
    return c10d::ErrorType::REMOTE_ERROR;
  } catch (...) {
    return c10d::ErrorType::COMM_ERROR;
  }
}

// In a forked process this and shutdown() do nothing: the group is its parent's.
void TrellisBackend::abort() {
  if (mark_.forked()) return;
  aborted_ = true;
  if (const auto comm = communicator()) comm->abort();
  messages_->stop();
}

void TrellisBackend::shutdown() {
  close();
  raise_kept();
}

// Releases the GIL, as the threads that it waits for may need it to free tensors. Aborts their work on Ctrl-C, or if
// the current operation's caller already got an error, because the operation's timeout is shorter than the group's.
void TrellisBackend::close() {
  if (mark_.forked()) return;
  std::optional<pybind11::gil_scoped_release> others_may_run;
  if (Py_IsInitialized() && PyGILState_Check()) others_may_run.emplace();
  while (!collectives_->ends_within(between_looks_for_signals))
    if (performing_.given_up() || interrupted()) {
      abort();
      break;
    }
  collectives_->stop();
  messages_->stop();
  deadlines_->stop();
  completions_->stop();
  const std::lock_guard lock(comm_mutex_);
  comm_.reset();
}

std::string TrellisBackend::dump() {
  const auto comm = communicator();
  return comm ? comm->dump() : "{}";
}

// The options of a new group that consists of some of this group's ranks.
c10::intrusive_ptr<TrellisBackend::Options> TrellisBackend::options_of(const c10::intrusive_ptr<Options>& wished,
                                                                       const std::vector<int>& ranks) const {
  auto options = c10::make_intrusive<Options>(wished ? *wished : *options_);
  options->global_ranks_in_group.clear();
  for (const int rank : ranks)
    options->global_ranks_in_group.push_back(static_cast<std::uint64_t>(group_->in_job(rank)));
  return options;
}

c10::intrusive_ptr<c10d::Backend> TrellisBackend::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                        const std::vector<int>& ranks,
                                                        const c10::intrusive_ptr<Options>& options) {
  expect_same_process(mark_, "split", *group_);
  const auto me = std::ranges::find(ranks, rank_);
  if (me == ranks.end()) return {};
  return c10::make_intrusive<TrellisBackend>(store, static_cast<int>(me - ranks.begin()),
                                             static_cast<int>(ranks.size()), options_of(options, ranks));
}

c10::intrusive_ptr<c10d::Backend> TrellisBackend::shrink(const std::vector<std::int64_t>& excluded, int flags,
                                                         const c10::intrusive_ptr<Options>& options) {
  expect_same_process(mark_, "shrink", *group_);
  constexpr int ends_operations_first = 1;  // torch's SHRINK_ABORT
  TORCH_CHECK_VALUE(flags == 0 || flags == ends_operations_first, "trellis: shrink: flags ", flags,
                    ", expected 0 or 1 (SHRINK_ABORT)");
  const std::vector<ccl::Rank> gone(excluded.begin(), excluded.end());
  std::vector<int> left;
  for (int rank = 0; rank < size_; ++rank)
    if (std::ranges::find(gone, rank) == gone.end()) left.push_back(rank);
  try {
    const auto comm = communicator();
    if (!comm) throw ccl::Aborted("the process group has been shut down");
    if (flags == ends_operations_first) comm->abort();
    auto below = c10::make_intrusive<c10d::PrefixStore>("shrunk" + std::to_string(gone.size()), store_);
    return c10::intrusive_ptr<TrellisBackend>::unsafe_steal_from_new(
        new TrellisBackend({below, comm->shrink(gone)}, options_of(options, left)));
  } catch (...) {
    std::rethrow_exception(as_torch_error(std::current_exception(), "shrink", *group_));
  }
}

at::Tensor TrellisBackend::allocateTensor(long size, at::TensorOptions options) {
  return tensor_in_window({size}, options);
}

std::shared_ptr<c10::Allocator> TrellisBackend::getMemAllocator() { return window_allocator(); }

std::unordered_map<std::string, std::uint64_t> TrellisBackend::getMemoryStats() {
  const auto comm = communicator();
  return {{"communicator_bytes", comm ? comm->memory_bytes() : 0},
          {"window_bytes", device::host_of_process()->allocated_bytes()}};
}

void TrellisBackend::startCoalescing() {
  // Drops operations of an earlier batch that is left here because a call raised an exception before endCoalescing().
  coalesced_.clear();
  coalescing_ = true;
}

c10::intrusive_ptr<c10d::Work> TrellisBackend::endCoalescing() {
  TORCH_CHECK(coalescing_, "trellis: endCoalescing without startCoalescing");
  coalescing_ = false;
  return c10::make_intrusive<CoalescedWork>(std::exchange(coalesced_, {}));
}

}  // namespace trellis::process_group
