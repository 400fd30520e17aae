#include "trellis/torch/native/backend.h"

#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "trellis/torch/native/issue.h"
#include "trellis/torch/native/memory.h"

namespace trellis::process_group {
namespace {

std::shared_ptr<Membership> membership(int rank, int size, const c10d::Backend::Options& options) {
  auto group = std::make_shared<Membership>(Membership{options.group_name, rank, size, options.timeout, {}});
  for (const std::uint64_t of_job : options.global_ranks_in_group)
    group->ranks.push_back(static_cast<std::int64_t>(of_job));
  return group;
}

}  // namespace

Trellis::Trellis(c10::intrusive_ptr<c10d::Store> store, int rank, int size, c10::intrusive_ptr<Options> options)
    : Backend(rank, size),
      store_(std::move(store)),
      options_(std::move(options)),
      group_(membership(rank, size, *options_)),
      meeting_(std::make_shared<TorchStore>(store_, "group/")),
      recording_(recording_of_process(*group_)),
      messages_(store_, group_, config()) {
  try {
    comm_ = ccl::Communicator::create(meeting_, rank, size, config(), device::host_of_process());
  } catch (...) {
    std::rethrow_exception(as_torch_error(std::current_exception(), "the creation", *group_));
  }
}

Trellis::Trellis(c10::intrusive_ptr<c10d::Store> store, std::unique_ptr<ccl::Communicator> comm,
                 c10::intrusive_ptr<Options> options)
    : Backend(comm->rank(), comm->ranks()),
      store_(std::move(store)),
      options_(std::move(options)),
      group_(membership(comm->rank(), comm->ranks(), *options_)),
      comm_(std::move(comm)),
      recording_(recording_of_process(*group_)),
      messages_(store_, group_, config()) {}

Trellis::~Trellis() { shutdown(); }

ccl::Config Trellis::config() const {
  ccl::Config config = ccl::config_from_environment();
  config.timeout = options_->timeout;
  return config;
}

void Trellis::setGroupUid(const std::string& name) { Backend::setGroupUid(name); }

void Trellis::setTimeout(std::chrono::milliseconds timeout) { options_->timeout = timeout; }

c10d::ErrorType Trellis::getError() {
  if (aborted_) return c10d::ErrorType::COMM_ERROR;
  const std::exception_ptr error = comm_ ? comm_->error() : nullptr;
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

void Trellis::abort() {
  aborted_ = true;
  if (comm_) comm_->abort();
  messages_.stop();
}

// The threads that it waits for may need Python, to let go of tensors.
void Trellis::shutdown() {
  std::optional<pybind11::gil_scoped_release> others_may_run;
  if (Py_IsInitialized() && PyGILState_Check()) others_may_run.emplace();
  collectives_.stop();
  messages_.stop();
  completions_.stop();
  comm_.reset();
}

std::string Trellis::dump() { return comm_ ? comm_->dump() : "{}"; }

c10::intrusive_ptr<c10d::Backend> Trellis::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                 const std::vector<int>& ranks,
                                                 const c10::intrusive_ptr<Options>& options) {
  const auto me = std::ranges::find(ranks, rank_);
  if (me == ranks.end()) return {};
  return c10::make_intrusive<Trellis>(store, static_cast<int>(me - ranks.begin()), static_cast<int>(ranks.size()),
                                      options ? options : options_);
}

c10::intrusive_ptr<c10d::Backend> Trellis::shrink(const std::vector<std::int64_t>& excluded, int /*flags*/,
                                                  const c10::intrusive_ptr<Options>& options) {
  const std::vector<ccl::Rank> ranks(excluded.begin(), excluded.end());
  auto fewer = c10::make_intrusive<Options>(options ? *options : *options_);
  fewer->global_ranks_in_group.clear();
  for (int rank = 0; rank < size_; ++rank)
    if (std::ranges::find(ranks, rank) == ranks.end())
      fewer->global_ranks_in_group.push_back(static_cast<std::uint64_t>(group_->in_job(rank)));
  try {
    auto below = c10::make_intrusive<c10d::PrefixStore>("shrunk" + std::to_string(ranks.size()), store_);
    return c10::intrusive_ptr<Trellis>::reclaim(new Trellis(below, comm_->shrink(ranks), fewer));
  } catch (...) {
    std::rethrow_exception(as_torch_error(std::current_exception(), "shrink", *group_));
  }
}

at::Tensor Trellis::allocateTensor(long size, at::TensorOptions options) { return tensor_in_window({size}, options); }

std::shared_ptr<c10::Allocator> Trellis::getMemAllocator() { return window_allocator(); }

std::unordered_map<std::string, std::uint64_t> Trellis::getMemoryStats() {
  return {{"communicator_bytes", comm_ ? comm_->memory_bytes() : 0},
          {"window_bytes", device::host_of_process()->allocated_bytes()}};
}

void Trellis::startCoalescing() {
  TORCH_CHECK(!coalescing_, "trellis: operations are being coalesced already");
  coalescing_ = true;
}

c10::intrusive_ptr<c10d::Work> Trellis::endCoalescing() {
  TORCH_CHECK(coalescing_, "trellis: endCoalescing without startCoalescing");
  coalescing_ = false;
  return c10::make_intrusive<Several>(std::exchange(coalesced_, {}));
}

}  // namespace trellis::process_group
