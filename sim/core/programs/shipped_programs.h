// The registry of shipped programs: what collectives and training do on a core. Each file of programs/ registers one
// with a reference, so that a run can be compared with the host's kernels.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/program/program_builder.h"
#include "sim/core/run/core_memory.h"

namespace trellis::sim::core {

// A parameter of a program: a size, a count, a choice.
struct ProgramParameter {
  std::string name;
  std::string meaning;
  double value = 0;                     // the default
  std::vector<std::string> words = {};  // the choices if it is a word; value is the index
};

class Arguments {
 public:
  explicit Arguments(const std::vector<ProgramParameter>&);
  void set(std::string_view name, std::string_view text);  // throws invalid_argument and lists the known names

  std::int64_t count(std::string_view name) const;  // a whole number from 1 to most_in_dim
  double number(std::string_view name) const;
  const std::string& word(std::string_view name) const;
  DType type(std::string_view name) const;

 private:
  const ProgramParameter& at(std::string_view name) const;
  std::vector<ProgramParameter> parameters_;
};

// How far results were from the reference.
struct Comparison {
  std::string what;  // an output's name
  std::uint64_t elements = 0;
  std::uint64_t wrong = 0;  // results beyond the bound
  double worst = 0;         // the largest error
  double bound = 0;         // allowed at that element; 0: must be equal to the bit
};

struct ShippedProgram {
  std::string name;
  std::string summary;  // one line
  std::vector<ProgramParameter> parameters;
  NeuronCoreProgram (*build)(const Arguments&, const ChipSpec&) = nullptr;
  // Fills the inputs with numbers that depend on the seed.
  void (*fill)(const Arguments&, CoreMemory&, std::uint64_t seed) = nullptr;
  // Compares the outputs with the host kernels' results, or with a reference in f64.
  std::vector<Comparison> (*compare)(const Arguments&, CoreMemory&) = nullptr;
};

struct RegisteredProgram {
  explicit RegisteredProgram(ShippedProgram);
};

const std::map<std::string, ShippedProgram, std::less<>>& shipped();
const ShippedProgram& shipped_named(std::string_view);  // throws invalid_argument and lists the known names

// Fills an input with normal numbers of the given deviation, rounded to the type. Equal seeds give equal numbers.
void fill_normal(CoreMemory&, std::string_view buffer, DType, std::uint64_t seed, double deviation = 1);

// Checks that every element is within absolute + relative * |truth| of the truth; both arrays are of that type.
Comparison compare_within(std::string_view what, DType, const void* got, const void* truth, std::size_t n,
                          double absolute, double relative);
Comparison compare_bits(std::string_view what, DType, const void* got, const void* truth, std::size_t n);

}  // namespace trellis::sim::core
