// Every function over arrays as a value: its operands, and how to call it. Tests of bad input walk the list.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/types/dtype.h"

namespace trellis::kernels {

struct Piece {
  std::string name;  // as error messages name it
  DType type;
  std::size_t count;  // elements, if the call is for call_elements
  bool written = false;
  bool typed = false;     // the pointer names a type, so it must be aligned
  bool optional = false;  // null means that it isn't wanted

  std::size_t bytes() const { return count * size_of(type); }
};

inline constexpr std::size_t call_elements = 64;

struct Call {
  std::string name;
  std::set<std::string> families;  // the words that the names of its kernels begin with
  std::vector<Piece> pieces;
  // Calls the function with n in place of call_elements.
  std::function<void(const std::vector<void*>& at, std::size_t n, int threads)> run;
  std::vector<std::pair<int, int>> in_place = {};  // a written and a read piece that may be the same memory
  bool threaded = true;
};

std::vector<Call> calls();

}  // namespace trellis::kernels
