// A kernel: its scalar truth, its fast twins, and what a test or a timing must know to call it. There are kernels over
// elements, and kernels over tables: rows of columns, with operands of one element a row or one a column.
#pragma once

#include <array>
#include <cstddef>
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

// What one call of a kernel over rows works on. The pointers are to whole operands, of which the call handles only the
// rows (columns if by_columns) from `from` up to `to`.
struct RowKernelArguments {
  std::size_t rows = 0, columns = 0;
  std::size_t from = 0, to = 0;
  void* const* writes = nullptr;
  const void* const* reads = nullptr;
  const void* settings = nullptr;
};
using RowBody = void (*)(const RowKernelArguments&);

// The choice among a kernel's twins.
template <class K>
struct TwinChoice {
  // The twin for the best instruction set up to `isa` that has one; the truth if none has.
  auto twin(Isa isa) const {
    const K& kernel = static_cast<const K&>(*this);
    const int at = place(isa);
    return at < 0 ? kernel.truth : kernel.twins[static_cast<std::size_t>(at)];
  }
  auto chosen() const { return twin(cpu().best); }  // for this CPU
  std::string_view chosen_name() const {            // "avx512", ..., "truth"
    const int at = place(cpu().best);
    return at < 0 ? "truth" : kernels::name(static_cast<Isa>(at));
  }

 private:
  int place(Isa isa) const {
    int at = static_cast<int>(isa);
    while (at >= 0 && static_cast<const K&>(*this).twins[static_cast<std::size_t>(at)] == nullptr) --at;
    return at;
  }
};

struct Kernel : TwinChoice<Kernel> {
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

  bool updates_operand(std::size_t written) const { return updates && !(copies && written == 0); }
};

enum class OperandShape : std::uint8_t { table, row, column };  // rows x columns elements, one a row, one a column

struct RowOperandSpec {
  DType type;
  OperandShape extent;
};

struct RowKernel : TwinChoice<RowKernel> {
  std::string name = {};  // "rms_norm.bf16"
  std::vector<RowOperandSpec> reads = {};
  std::vector<RowOperandSpec> writes = {};
  bool by_columns = false;         // sums over rows, for each column
  const void* settings = nullptr;  // a sample, for tests and timings
  RowBody truth = nullptr;
  std::array<RowBody, isa_count> twins = {};
};

}  // namespace trellis::kernels
