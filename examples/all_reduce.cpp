// The sum of every rank's number, through the C++ API:
//
//   trellis launch -n 4 -- ./all_reduce_cpp
#include <exception>
#include <iostream>
#include <vector>

#include "ccl/communicator.h"
#include "ccl/rendezvous/environment.h"

int main() try {
  using namespace trellis;
  const ccl::Launched launched = ccl::launched_from_environment();
  const ccl::Config config = ccl::config_from_environment();
  const auto store = ccl::store_from_environment(launched, ccl::Clock::now() + config.timeout);
  const auto communicator = ccl::Communicator::create(store, launched.rank, launched.ranks, config);

  std::vector<float> data(1000, static_cast<float>(communicator->rank() + 1));
  communicator->all_reduce(data.data(), data.data(), data.size(), kernels::DType::f32);

  const auto ranks = static_cast<float>(communicator->ranks());
  for (const float element : data)
    if (element != ranks * (ranks + 1) / 2) throw std::runtime_error("the sum is wrong");
  std::cout << "rank " << communicator->rank() << " of " << ranks << ": the sum is " << data[0] << std::endl;
  communicator->finalize();
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
