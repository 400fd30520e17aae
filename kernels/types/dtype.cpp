#include "kernels/types/dtype.h"

#include <fmt/format.h>

#include <array>

#include "text/refuse.h"

namespace trellis::kernels {
namespace {

constexpr auto all = [] {
  std::array<DType, dtype_count> list{};
  for (std::size_t i = 0; i < dtype_count; ++i) list[i] = static_cast<DType>(i);
  return list;
}();

template <class E>
E named(std::string_view kind, std::string_view word, std::size_t count) {
  std::string known;
  for (std::size_t i = 0; i < count; ++i) {
    const E e = static_cast<E>(i);
    if (name(e) == word) return e;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name(e));
  }
  text::refuse("no {} is called '{}'; known are {}", kind, word, known);
}

}  // namespace

std::span<const DType> dtypes() { return all; }

DType dtype_named(std::string_view word) { return named<DType>("element type", word, dtype_count); }

Rounding rounding_named(std::string_view word) { return named<Rounding>("rounding", word, rounding_count); }

}  // namespace trellis::kernels
