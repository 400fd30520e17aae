// The programs that ship: what collectives and training do on a core. Each file of programs/ registers one and says
// what is right, so that a run can be held against the kernels on the host.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/builder.h"
#include "sim/core/memory.h"

namespace trellis::sim::core {

// A number that a program is made for: a size, a count, a choice.
struct Parameter {
  std::string name;
  std::string meaning;
  double value = 0;                     // unless another is given
  std::vector<std::string> words = {};  // the choices, for one that is a word: value is its place
};

class Arguments {
 public:
  explicit Arguments(const std::vector<Parameter>&);
  void set(std::string_view name, std::string_view text);  // throws invalid_argument, naming the known ones

  std::int64_t count(std::string_view name) const;  // a whole number, at least 1
  double number(std::string_view name) const;
  const std::string& word(std::string_view name) const;
  DType type(std::string_view name) const;

 private:
  const Parameter& at(std::string_view name) const;
  std::vector<Parameter> parameters_;
};

// How far results were from the truth.
struct Comparison {
  std::string what;  // an output's name
  std::uint64_t elements = 0;
  std::uint64_t wrong = 0;  // beyond the bound
  double worst = 0;         // the largest distance
  double bound = 0;         // that it may have there; 0: equal to the bit
};

struct Shipped {
  std::string name;
  std::string summary;  // one line
  std::vector<Parameter> parameters;
  Program (*build)(const Arguments&, const ChipSpec&) = nullptr;
  // Fills the inputs with numbers that follow from the seed.
  void (*fill)(const Arguments&, Memory&, std::uint64_t seed) = nullptr;
  // Holds the outputs against the kernels' truth.
  std::vector<Comparison> (*compare)(const Arguments&, Memory&) = nullptr;
};

struct RegisteredProgram {
  explicit RegisteredProgram(Shipped);
};

const std::map<std::string, Shipped, std::less<>>& shipped();
const Shipped& shipped_named(std::string_view);  // throws invalid_argument, naming the known ones

// Inputs: normal numbers of the given deviation, equal for equal seeds; rounded to the type.
void fill_normal(Memory&, std::string_view buffer, DType, std::uint64_t seed, double deviation = 1);

// Every element within `bound(i)` of the truth, both as the type holds them.
Comparison compare_within(std::string_view what, DType, const void* got, const void* truth, std::size_t n,
                          double absolute, double relative);
Comparison compare_bits(std::string_view what, DType, const void* got, const void* truth, std::size_t n);

}  // namespace trellis::sim::core
