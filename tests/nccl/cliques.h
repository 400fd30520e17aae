// Ranks of NCCL's API within this process, and assertions on what its calls return.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "ccl/api/cuda/cuda_runtime.h"
#include "ccl/api/nccl/nccl.h"

namespace trellis::nccl {

struct Cliques {
  explicit Cliques(int n) : comms(static_cast<std::size_t>(n)) {
    EXPECT_EQ(ncclCommInitAll(comms.data(), n, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
  }
  ~Cliques() {
    each([](int, ncclComm_t comm) { ncclCommDestroy(comm); });
  }
  Cliques(const Cliques&) = delete;
  Cliques& operator=(const Cliques&) = delete;

  ncclComm_t operator[](int rank) const { return comms[static_cast<std::size_t>(rank)]; }
  int count() const { return static_cast<int>(comms.size()); }

  // Runs the body on each rank, with a thread for each.
  void each(const std::function<void(int, ncclComm_t)>& body) const {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < count(); ++rank) threads.emplace_back([&, rank] { body(rank, (*this)[rank]); });
  }

  std::vector<ncclComm_t> comms;
};

inline testing::AssertionResult done(ncclResult_t result) {
  if (result == ncclSuccess) return testing::AssertionSuccess();
  return testing::AssertionFailure() << ncclGetErrorString(result) << ": " << ncclGetLastError(nullptr);
}

// Succeeds if the call failed with this result, and its message has these words.
inline testing::AssertionResult refused(ncclResult_t result, ncclResult_t expected, const std::string& words) {
  const std::string message = ncclGetLastError(nullptr);
  if (result == expected && message.find(words) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << ncclGetErrorString(result) << " (" << result << "): '" << message
                                     << "'; expected " << ncclGetErrorString(expected) << " with '" << words << "'";
}

// Waits until nothing of the communicator is in progress. Returns its last state.
inline ncclResult_t wait_until_made(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
       state == ncclInProgress && std::chrono::steady_clock::now() < end;
       std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    EXPECT_TRUE(done(ncclCommGetAsyncError(comm, &state)));
  return state;
}

}  // namespace trellis::nccl
