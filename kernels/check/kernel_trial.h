// One call of a registered kernel: on hostile data (NaNs, infinities, subnormals, ends of ranges), or only on numbers
// of middling size, for which twins have their fastest paths.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/dispatch/registry.h"

namespace trellis::kernels {

// An operand of a trial. Under the address sanitizer the memory around it is poisoned, so that any access to it is
// reported; elsewhere all() includes 16 bytes on either side, in which stray writes show.
class GuardedOperand {
 public:
  GuardedOperand(std::size_t offset, std::size_t bytes);  // begins `offset` bytes past a multiple of 64
  GuardedOperand(const GuardedOperand&);
  GuardedOperand(GuardedOperand&&) = default;
  GuardedOperand& operator=(const GuardedOperand&) = delete;
  std::byte* start() const { return start_; }
  std::vector<std::byte> all() const;  // the operand, and these bytes around it

 private:
  std::size_t bytes_, offset_;
  std::unique_ptr<std::byte[]> store_;
  std::byte* start_;
};

class KernelTrial {
 public:
  enum class Data : std::uint8_t { hostile, plain };  // plain: middling numbers, those of written operands not negative

  // Operands begin past a multiple of 64 bytes: the first written and the first read one by `offset` bytes, each
  // further one by 3 (written) or 5 (read) bytes more.
  KernelTrial(const Kernel&, std::size_t n, std::size_t offset, int sources, std::uint64_t seed, Data = Data::hostile);

  // Runs the body. Returns what the written operands then hold, and the bytes right around them.
  std::vector<std::vector<std::byte>> after(Body, std::uint64_t first, bool streaming) const;

 private:
  std::uint64_t next();
  GuardedOperand made(DType, std::size_t offset, bool written);
  std::uint64_t special(DType, std::uint64_t random) const;
  std::uint64_t middling(DType, std::uint64_t random) const;

  const Kernel& kernel_;
  std::size_t n_;
  std::uint64_t seed_;
  Data data_;
  std::uint64_t count_ = 0;
  std::vector<GuardedOperand> written_, read_;
};

// Whether every twin that this CPU can run gives the truth's bits, over some lengths and alignments. True for kernels
// with a tolerance, which have checks of their own.
bool agrees(const Kernel&);

}  // namespace trellis::kernels
