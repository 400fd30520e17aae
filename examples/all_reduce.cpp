// The sum of every rank's number, through the C++ API:
//
//   trellis launch -n 4 -- ./all_reduce_cpp
#include <exception>
#include <iostream>
#include <vector>

#include <trellis/communicator.h>

int main() try {
  const auto communicator = trellis::Communicator::from_environment();
  std::vector<float> data(1000, static_cast<float>(communicator->rank() + 1));
  communicator->all_reduce(std::span(data));

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
