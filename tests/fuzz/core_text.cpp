// Any text as a program of a NeuronCore: it is refused, or it comes back the same when printed and read again, and can
// be checked against the chip's rules.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "sim/core/check/check.h"
#include "sim/core/program/assembler.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::sim;
  static const ChipSpec chip = chip_named("trn3");
  try {
    const core::NeuronCoreProgram program = core::parse({reinterpret_cast<const char*>(data), size});
    const std::string text = core::print(program);
    if (core::print(core::parse(text)) != text) std::abort();
    core::check(program, chip);
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
