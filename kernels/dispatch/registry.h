// Every kernel by name: its scalar truth, its fast twins, and what a test or a timing must know to call it.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/dispatch/cpu.h"
#include "kernels/types/dtype.h"
#include "kernels/types/random.h"

namespace trellis::kernels {

// What one call of a body works on: n elements of each operand. Pointers may have any alignment.
struct KernelArguments {
  std::size_t n = 0;
  void* const* writes = nullptr;
  const void* const* reads = nullptr;
  int sources = 0;                 // how many reads there are
  std::uint64_t first = 0;         // the global index of the first element, for random bits
  RandomKey key = {};              // of stochastic kernels
  const void* settings = nullptr;  // what the kernel is told beside its operands; its header says of what type
  bool streaming = false;          // the writes should go past the caches
};
using Body = void (*)(const KernelArguments&);

struct Kernel {
  std::string name = {};           // "cast.f32.bf16.stochastic"
  std::vector<DType> reads = {};   // element type of each read operand
  std::vector<DType> writes = {};  // and of each written one
  bool updates = false;            // the written operands are read too (axpy)
  bool copies = false;             // though it updates, the first written operand is only written (a bf16 copy)
  bool sums = false;               // the written operands have one element a part: what the part sums up to (dot)
  bool many = false;               // any number of reads of the last type, at least two (reduce)
  const void* settings = nullptr;  // a sample, for tests and timings; lives as long as the program
  double tolerance = 0;            // greatest relative difference of a twin from the truth; 0: bit-equal
  Body truth = nullptr;
  std::array<Body, isa_count> twins = {};  // null: none

  Body twin(Isa) const;                  // the twin for the best set up to this one that there is, or the truth
  Body chosen() const;                   // for this CPU
  std::string_view chosen_name() const;  // "avx512", ..., "truth"
  bool updates_operand(std::size_t written) const { return updates && !(copies && written == 0); }
};

// A kernel's name, made at compile time so that a twin's file computes nothing at start.
struct Name {
  char text[56] = {};

  template <class... Words>
  static constexpr Name of(Words... words) {
    Name name;
    std::size_t at = 0;
    for (std::string_view word : {std::string_view(words)...}) {
      if (at != 0) name.text[at++] = '.';
      for (char c : word) name.text[at++] = c;
    }
    return name;
  }
};

struct Twin {
  Name name;
  Body body;
};

// Defining one at namespace scope registers kernels, or their twins for a set of instructions. A table of twins must be
// constexpr: what runs at start in a file compiled for other CPUs must not need them.
struct Registered {
  explicit Registered(std::vector<Kernel> (*make)());
  Registered(Isa, const Twin* twins, std::size_t count);
  template <std::size_t count>
  Registered(Isa isa, const std::array<Twin, count>& twins) : Registered(isa, twins.data(), count) {}
};

const std::map<std::string, Kernel, std::less<>>& kernels();
const Kernel& kernel_named(std::string_view);  // throws invalid_argument, naming what is near

}  // namespace trellis::kernels
