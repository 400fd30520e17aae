// Work for a device beyond copies: a kernel by name, and a program that was loaded.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "device/stream.h"
#include "kernels/types/dtype.h"
#include "kernels/types/random.h"

namespace trellis::device {

// One call of a kernel of the registry over n elements of each operand.
struct KernelLaunch {
  std::string kernel;  // "axpy.f32.nearest"
  std::size_t n = 0;
  std::vector<void*> writes = {};
  std::vector<const void*> reads = {};
  const void* settings = nullptr;  // null: the kernel's sample settings, if it has any
  std::uint64_t first = 0;         // the global index of the first element, for random bits
  kernels::RandomKey key = {};
  int threads = 1;
};

// What a program reads or writes by name.
struct ProgramOperand {
  std::string name;
  std::size_t bytes = 0;
  kernels::DType type = kernels::DType::f32;
  bool output = false;
};

// The memory of an operand for one run.
struct Binding {
  std::string name;
  void* data = nullptr;
  std::size_t bytes = 0;
};

class LoadedProgram {
 public:
  virtual ~LoadedProgram() = default;
  virtual const std::string& name() const = 0;
  virtual const std::vector<ProgramOperand>& operands() const = 0;
  // Every operand must be bound, and no other name. The work is done when this returns if the stream is null. Throws
  // invalid_argument for a wrong binding.
  virtual void run(const std::vector<Binding>&, Stream* = nullptr) = 0;
  virtual Time time() const = 0;            // of the last run that ended
  virtual std::string profile() const = 0;  // what one run does, and when: a trace in the device's format
};

}  // namespace trellis::device
