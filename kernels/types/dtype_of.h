// The DType of a C++ type: dtype_of<float> is DType::f32. C++20 has no types of 8 and 16 bits for floating numbers; a
// program that has its own specializes this for them.
#pragma once

#include <concepts>
#include <cstdint>

#include "kernels/types/dtype.h"

namespace trellis::kernels {

template <class T>
inline constexpr auto dtype_of = nullptr;  // not an element type

template <>
inline constexpr auto dtype_of<double> = DType::f64;
template <>
inline constexpr auto dtype_of<float> = DType::f32;
template <>
inline constexpr auto dtype_of<std::int8_t> = DType::i8;
template <>
inline constexpr auto dtype_of<std::uint8_t> = DType::u8;
template <>
inline constexpr auto dtype_of<std::int16_t> = DType::i16;
template <>
inline constexpr auto dtype_of<std::uint16_t> = DType::u16;
template <>
inline constexpr auto dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr auto dtype_of<std::uint32_t> = DType::u32;
template <>
inline constexpr auto dtype_of<std::int64_t> = DType::i64;
template <>
inline constexpr auto dtype_of<std::uint64_t> = DType::u64;

// A type whose arrays collectives can work on.
template <class T>
concept Element = requires {
  { dtype_of<T> } -> std::convertible_to<DType>;
};

}  // namespace trellis::kernels
