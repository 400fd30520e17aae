// The random bits of an optimizer: of the parameters and of up to two states. What a kernel does not use costs nothing.
#pragma once

#include "kernels/lanes/random_stream_lanes.h"
#include "kernels/optimizers/parameter.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

struct OptimizerBits {
  U kept, state[2];
};
class OptimizerRandomBits {
 public:
  explicit OptimizerRandomBits(const KernelArguments& s)
      : kept_(s.key),
        first_(static_cast<const StateRandomKeys*>(s.settings)->keys[0]),
        second_(static_cast<const StateRandomKeys*>(s.settings)->keys[1]) {}
  TRELLIS_INLINE void make(std::uint64_t group, int lane) {
    kept_.make(group, lane), first_.make(group, lane), second_.make(group, lane);
  }
  template <int rows>
  TRELLIS_INLINE OptimizerBits row(int r) const {
    return {kept_.row<rows>(r), {first_.row<rows>(r), second_.row<rows>(r)}};
  }

 private:
  RandomBits kept_, first_, second_;
};

// The random bits of 32 elements at a time: for the parameter if `keeps` (it is stored by stochastic rounding), and for
// `states` states. The states' keys are in the settings.
template <LaneOrder order, bool keeps, int states>
struct OptimizerRandomStream {
  RandomStreamFor<keeps, order> kept;
  RandomStreamFor<(states > 0), order> first;
  RandomStreamFor<(states > 1), order> second;

  explicit OptimizerRandomStream(const KernelArguments& s)
      : kept(s.key, s.first), first(key<(states > 0)>(s, 0), s.first), second(key<(states > 1)>(s, 1), s.first) {}
  TRELLIS_INLINE void next() { kept.next(), first.next(), second.next(); }

 private:
  template <bool used>
  TRELLIS_INLINE static const RandomKey& key(const KernelArguments& s, int state) {
    return used ? static_cast<const StateRandomKeys*>(s.settings)->keys[state] : s.key;
  }
};

struct NoOptimizerBits {
  explicit NoOptimizerBits(const KernelArguments&) {}
  TRELLIS_INLINE void make(std::uint64_t, int) {}
  template <int rows>
  TRELLIS_INLINE OptimizerBits row(int) const {
    return {U{}, {U{}, U{}}};
  }
};

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
