#include "kernels/reduce/divide.h"

#include <cstring>
#include <type_traits>

#include "kernels/types/convert.h"

namespace trellis::kernels {
namespace {

template <class T>
void divide_as(void* data, std::size_t n, std::uint32_t divisor) {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T,
                                  std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
  for (std::size_t i = 0; i < n; ++i) {
    std::byte* const at = static_cast<std::byte*>(data) + i * sizeof(T);
    T value;
    std::memcpy(&value, at, sizeof value);
    value = static_cast<T>(static_cast<Wide>(value) / static_cast<Wide>(divisor));
    std::memcpy(at, &value, sizeof value);
  }
}

void divide_bf16(void* data, std::size_t n, std::uint32_t divisor) {
  for (std::size_t i = 0; i < n; ++i) {
    std::byte* const at = static_cast<std::byte*>(data) + i * 2;
    std::uint16_t code;
    std::memcpy(&code, at, sizeof code);
    code = bf16_nearest(widen_bf16(code) / static_cast<float>(divisor));
    std::memcpy(at, &code, sizeof code);
  }
}

void divide_narrow(DType type, void* data, std::size_t n, std::uint32_t divisor) {
  for (std::size_t i = 0; i < n; ++i) {
    std::byte* const at = static_cast<std::byte*>(data) + i * size_of(type);
    store(type, at, static_cast<double>(static_cast<float>(load(type, at)) / static_cast<float>(divisor)));
  }
}

}  // namespace

void divide(DType type, void* data, std::size_t n, std::uint32_t divisor) {
  switch (type) {
    case DType::f64:
      return divide_as<double>(data, n, divisor);
    case DType::f32:
      return divide_as<float>(data, n, divisor);
    case DType::bf16:
      return divide_bf16(data, n, divisor);
    case DType::i8:
      return divide_as<std::int8_t>(data, n, divisor);
    case DType::u8:
      return divide_as<std::uint8_t>(data, n, divisor);
    case DType::i16:
      return divide_as<std::int16_t>(data, n, divisor);
    case DType::u16:
      return divide_as<std::uint16_t>(data, n, divisor);
    case DType::i32:
      return divide_as<std::int32_t>(data, n, divisor);
    case DType::u32:
      return divide_as<std::uint32_t>(data, n, divisor);
    case DType::i64:
      return divide_as<std::int64_t>(data, n, divisor);
    case DType::u64:
      return divide_as<std::uint64_t>(data, n, divisor);
    default:
      return divide_narrow(type, data, n, divisor);
  }
}

}  // namespace trellis::kernels
