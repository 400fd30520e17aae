// The barrier that names the ranks that do not come. It goes through the store, so that it works beside operations that
// wait, and ends neither these nor the group.
#include <span>

#include "trellis/torch/native/backend.h"

namespace trellis::process_group {
namespace {

constexpr std::string_view all_came = "all came";
constexpr std::chrono::seconds for_the_verdict{5};  // beyond the timeout, for rank 0 to say who is missing

std::string key_of(std::uint64_t barrier, const std::string& what) {
  return "monitored/" + std::to_string(barrier) + "/" + what;
}

constexpr const char* first_came = "0";  // the key that rank 0 sets on arrival, before it waits for the others

// Rank 0's verdict for the others: that all came, or which ranks are missing.
std::string verdict_on(TorchStoreAdapter& store, std::uint64_t barrier, int size, std::chrono::milliseconds timeout,
                       bool all) {
  const ccl::Deadline deadline = ccl::Clock::now() + timeout;
  std::string missing;
  int count = 0;
  for (int rank = 1; rank < size && (count == 0 || all); ++rank) try {
      store.get(key_of(barrier, std::to_string(rank)), deadline);
    } catch (const ccl::TimedOut&) {
      missing += (count++ == 0 ? "" : ", ") + std::to_string(rank);
    }
  if (count == 0) return std::string(all_came);
  return c10::str(count == 1 ? "Rank " : "Ranks ", missing, " failed to pass monitoredBarrier in ", timeout.count(),
                  " ms");
}

}  // namespace

void TrellisBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  expect_same_process(mark_, "monitored_barrier", *group_);
  const std::uint64_t barrier = ++monitored_;
  const std::string operation = "monitored_barrier " + std::to_string(barrier);
  const auto timeout = options.timeout == c10d::kUnsetTimeout ? timeout_.load() : options.timeout;
  std::string verdict;
  try {
    TorchStoreAdapter store(store_, "");
    if (rank_ == 0) {
      store.set(key_of(barrier, first_came), {});
      verdict = verdict_on(store, barrier, size_, timeout, wait_all_ranks);
      store.set(key_of(barrier, "verdict"), std::as_bytes(std::span(verdict)));
      if (barrier > 1 && verdict == all_came)  // all ranks are here, so they have read the keys of the barrier before
        for (const char* what : {first_came, "verdict"}) store_->deleteKey(key_of(barrier - 1, what));
      for (int rank = 1; rank < size_; ++rank) store_->deleteKey(key_of(barrier, std::to_string(rank)));
    } else {
      store.set(key_of(barrier, std::to_string(rank_)), {});
      store.get(key_of(barrier, first_came), ccl::Clock::now() + timeout);
      verdict = ccl::text_of(store.get(key_of(barrier, "verdict"), ccl::Clock::now() + timeout + for_the_verdict));
    }
  } catch (const ccl::TimedOut&) {
    verdict = c10::str("Rank 0 failed to pass monitoredBarrier in ", timeout.count(), " ms");
  } catch (...) {
    std::rethrow_exception(as_torch_error(std::current_exception(), operation, *group_));
  }
  if (verdict != all_came)
    std::rethrow_exception(as_torch_error(std::make_exception_ptr(std::runtime_error(verdict)), operation, *group_));
}

}  // namespace trellis::process_group
