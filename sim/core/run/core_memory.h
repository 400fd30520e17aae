// The memory of a program: SBUF and PSUM of each core, and the HBM buffers. It is accessed as raw bytes, or by rows
// that are converted from and to floating-point numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/reduce/cast.h"
#include "sim/core/program/program.h"
#include "sim/core/run/engine_state.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

inline constexpr int register_count = 64;  // of an engine
// Rounds a number towards zero to the integer that a register then holds. Throws beyond 1e12: a register is multiplied
// by a stride to form an address, and no address needs a larger one.
std::int64_t register_number(double);

// The order in which a row is reduced to one number. sequential: from left to right. lanes: as in
// kernels/layers/rows.h, element i is combined into state i % row_sums, which begins as neutral(); then the second half
// of the states is combined into the first until one is left. Only tensor_reduce's order on hardware is published
// (README.md).
enum class SumOrder : std::uint8_t { lanes, sequential };

class CoreMemory {
 public:
  CoreMemory(const NeuronCoreProgram&, const ChipSpec&);

  // An HBM buffer's contents, for the caller to fill and read. Throws invalid_argument for another name or space.
  std::span<std::byte> hbm(std::string_view buffer);
  template <class T>
  std::span<T> hbm_as(std::string_view buffer) {
    const std::span<std::byte> bytes = hbm(buffer);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  // The address of the first element of a row of a view. An indexed view is first moved by its register
  // (use_registers).
  std::byte* row(const View&, std::int64_t row);
  // Bytes from one row to the next.
  std::int64_t row_stride(const View&) const;

  // Convert a row to numbers, and numbers to a row. Engines compute in f32; f64 is for what f32 cannot hold, such as
  // large integers.
  void read(const View&, std::int64_t row, float* to);
  void read(const View&, std::int64_t row, double* to);
  void write(const View&, std::int64_t row, const float* from, const kernels::CastOptions& = {});
  void write(const View&, std::int64_t row, const double* from, const kernels::CastOptions& = {});
  // The raw bytes.
  void read_bytes(const View&, std::int64_t row, std::byte* to);
  void write_bytes(const View&, std::int64_t row, const std::byte* from);

  // Sets the engine whose registers index views from now on.
  void use_registers(std::int64_t* registers) { registers_ = registers; }
  std::int64_t& reg(std::size_t r) { return registers_[r]; }
  // The order of sums along a row where the hardware's isn't known.
  SumOrder sum_order() const { return sum_order_; }
  void use_sum_order(SumOrder order) { sum_order_ = order; }
  // Scratch floats for one instruction, uninitialised; invalid after the next call.
  float* scratch(std::size_t n) {
    if (scratch_size_ < n) {
      scratch_ = std::make_unique_for_overwrite<float[]>(n);
      scratch_size_ = n;
    }
    return scratch_.get();
  }
  // The state of the instruction's engine.
  EngineState& state(const Instruction& i) { return states_[stream_of(i)]; }

 private:
  struct Place {
    std::byte* at = nullptr;
    std::int64_t stride = 0;  // between partitions
    std::int64_t bytes = 0;   // of an HBM buffer, or of each partition of one on chip
  };
  template <class T>
  void read_as(const View&, std::int64_t, DType, T*);
  template <class T>
  void write_as(const View&, std::int64_t, DType, const T*, const kernels::CastOptions&);

  const NeuronCoreProgram& program_;
  std::vector<std::byte> on_chip_, hbm_;
  std::vector<Place> places_;  // of each buffer
  std::vector<std::byte> row_;
  std::int64_t* registers_ = nullptr;
  std::unique_ptr<float[]> scratch_;
  std::size_t scratch_size_ = 0;
  SumOrder sum_order_ = SumOrder::lanes;
  std::vector<EngineState> states_;  // core * engine_count + engine
};

// Whether a row's elements are contiguous.
bool contiguous(const View&);

// Calls visit(offset in elements, count) for each contiguous run of elements, in order.
template <class Visit>
void each_run(const View& v, Visit visit) {
  const int last = v.dims - 1;
  const Dim inner = v.dim[static_cast<std::size_t>(last)];
  std::int64_t outer = 1;
  for (int d = 0; d < last; ++d) outer *= v.dim[static_cast<std::size_t>(d)].count;
  for (std::int64_t o = 0; o < outer; ++o) {
    std::int64_t at = 0, rest = o;
    for (int d = last - 1; d >= 0; --d) {
      const Dim& dim = v.dim[static_cast<std::size_t>(d)];
      at += rest % dim.count * dim.stride;
      rest /= dim.count;
    }
    if (inner.stride == 1)
      visit(at, inner.count);
    else
      for (std::int64_t i = 0; i < inner.count; ++i) visit(at + i * inner.stride, 1);
  }
}

}  // namespace trellis::sim::core
