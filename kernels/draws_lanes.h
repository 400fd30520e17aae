// The random bits of an optimizer: of the parameters and of up to two states. What a kernel does not use costs nothing.
#pragma once

#include "kernels/bits_lanes.h"
#include "kernels/parameter.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

struct Draw {
  U kept, state[2];
};
class Draws {
 public:
  explicit Draws(const Stretch& s)
      : kept_(s.key),
        first_(static_cast<const StateKeys*>(s.settings)->keys[0]),
        second_(static_cast<const StateKeys*>(s.settings)->keys[1]) {}
  TRELLIS_INLINE void make(std::uint64_t group, int lane) {
    kept_.make(group, lane), first_.make(group, lane), second_.make(group, lane);
  }
  template <int rows>
  TRELLIS_INLINE Draw row(int r) const {
    return {kept_.row<rows>(r), {first_.row<rows>(r), second_.row<rows>(r)}};
  }

 private:
  Bits kept_, first_, second_;
};
#if defined(__AVX512BW__)
// The bits of whole groups of four rows, two rows at a time.
class NextDraws {
 public:
  explicit NextDraws(const Stretch& s)
      : kept_(s),
        first_(static_cast<const StateKeys*>(s.settings)->keys[0], s.first),
        second_(static_cast<const StateKeys*>(s.settings)->keys[1], s.first) {}
  TRELLIS_INLINE void next() { kept_.next(), first_.next(), second_.next(); }
  TRELLIS_INLINE Draw two_rows(bool others) const {
    return {kept_.two_rows(others), {first_.two_rows(others), second_.two_rows(others)}};
  }

 private:
  NextBits kept_, first_, second_;
};
#endif
struct NoDraws {
  explicit NoDraws(const Stretch&) {}
  TRELLIS_INLINE void make(std::uint64_t, int) {}
  template <int rows>
  TRELLIS_INLINE Draw row(int) const {
    return {U{}, {U{}, U{}}};
  }
};

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
