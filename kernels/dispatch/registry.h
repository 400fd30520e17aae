// Every kernel by name.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>

#include "kernels/dispatch/kernel.h"

namespace trellis::kernels {

// A kernel's name, put together at compile time: code that runs at program start must not use the instructions of a set
// that the CPU may lack, as code in a file of twins would (see RegisteredAs).
struct KernelName {
  char text[56] = {};

  template <class... Words>
  static constexpr KernelName of(Words... words) {
    KernelName name;
    std::size_t at = 0;
    for (std::string_view word : {std::string_view(words)...}) {
      if (at != 0) name.text[at++] = '.';
      for (char c : word) name.text[at++] = c;
    }
    return name;
  }
};

template <class Body>
struct NamedTwin {
  KernelName name;
  Body body;
};
using Twin = NamedTwin<Body>;
using RowTwin = NamedTwin<RowBody>;

// A constant of this type at namespace scope registers kernels, or their twins for a set of instructions. A table of
// twins must be constexpr: code that filled it at program start would be compiled for that set, and might fail on a CPU
// without it.
template <class K, class Twin>
struct RegisteredAs {
  explicit RegisteredAs(std::vector<K> (*make)());
  RegisteredAs(std::initializer_list<void (*)(std::vector<K>&)> adders);  // each adds kernels of one type
  RegisteredAs(Isa, const Twin* twins, std::size_t count);
  template <std::size_t count>
  RegisteredAs(Isa isa, const std::array<Twin, count>& twins) : RegisteredAs(isa, twins.data(), count) {}
};
using Registered = RegisteredAs<Kernel, Twin>;
using RegisteredRows = RegisteredAs<RowKernel, RowTwin>;

const std::map<std::string, Kernel, std::less<>>& kernels();
const std::map<std::string, RowKernel, std::less<>>& row_kernels();
const Kernel& kernel_named(std::string_view);  // throws invalid_argument and lists similar names

}  // namespace trellis::kernels
