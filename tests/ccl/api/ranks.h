// Ranks of the C API within this process, and assertions on what its calls return.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "ccl/api/trellis.h"

namespace trellis::ccl {

struct Ranks {
  explicit Ranks(int n, double timeout_s = 20) : Ranks(n, patient_for(timeout_s)) {}
  Ranks(int n, const trellis_config& config) : comms(static_cast<std::size_t>(n)) {
    EXPECT_EQ(trellis_comm_create_all(comms.data(), n, &config), TRELLIS_OK) << trellis_last_error();
  }
  ~Ranks() {
    each([](int, trellis_comm comm) { trellis_comm_destroy(comm); });
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  trellis_comm operator[](int rank) const { return comms[static_cast<std::size_t>(rank)]; }
  int count() const { return static_cast<int>(comms.size()); }

  // Runs the body on each rank, with a thread for each.
  void each(const std::function<void(int, trellis_comm)>& body) const {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < count(); ++rank) threads.emplace_back([&, rank] { body(rank, (*this)[rank]); });
  }

  static trellis_config patient_for(double timeout_s) {
    trellis_config config = TRELLIS_CONFIG_INIT;
    config.timeout_s = timeout_s;
    return config;
  }

  std::vector<trellis_comm> comms;
};

// Succeeds if the call did; else fails with the call's error message.
inline testing::AssertionResult done(trellis_result result) {
  if (result == TRELLIS_OK) return testing::AssertionSuccess();
  return testing::AssertionFailure() << trellis_result_text(result) << ": " << trellis_last_error();
}

// Succeeds if the call failed with this result, and its message has these words.
inline testing::AssertionResult refused(trellis_result result, trellis_result expected, const std::string& words) {
  const std::string message = trellis_last_error();
  if (result == expected && trellis_last_result() == expected && message.find(words) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << trellis_result_text(result) << ": '" << message << "'; expected "
                                     << trellis_result_text(expected) << " with '" << words << "'";
}

}  // namespace trellis::ccl
