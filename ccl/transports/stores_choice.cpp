#include "ccl/transports/stores_choice.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include <chrono>
#endif

namespace trellis::ccl {

using kernels::Stores;

std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc() | 1;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) | 1;
#endif
}

Stores StoresChoice::next() {
  const bool streaming = cost_[1] != 0 && cost_[1] < cost_[0];
  const bool other = turn_++ % round == 1;
  return streaming != other ? Stores::streaming : Stores::cached;
}

void StoresChoice::learn(Stores stores, double ticks, std::size_t bytes) {
  double& cost = cost_[stores == Stores::streaming ? 1 : 0];
  const double now = ticks / static_cast<double>(bytes);
  // A piece in whose midst somebody else had the core says nothing.
  if (cost != 0 && now > 20 * cost) return;
  cost = cost == 0 ? now : cost + (now - cost) / 4;
}

}  // namespace trellis::ccl
