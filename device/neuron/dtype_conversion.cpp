#include "device/neuron/dtype_conversion.h"

#include <utility>

namespace trellis::device {
namespace {

using kernels::DType;
using nrt::NrtDType;

constexpr std::pair<NrtDType, DType> types[] = {
    {NrtDType::u64, DType::u64},     {NrtDType::i8, DType::i8},       {NrtDType::u8, DType::u8},
    {NrtDType::i16, DType::i16},     {NrtDType::u16, DType::u16},     {NrtDType::bf16, DType::bf16},
    {NrtDType::f16, DType::f16},     {NrtDType::i32, DType::i32},     {NrtDType::u32, DType::u32},
    {NrtDType::f32, DType::f32},     {NrtDType::f32r, DType::tf32},   {NrtDType::i64, DType::i64},
    {NrtDType::f8e3, DType::f8e3m4}, {NrtDType::f8e4, DType::f8e4m3}, {NrtDType::f8e5, DType::f8e5m2}};

}  // namespace

std::optional<NrtDType> element_of(DType t) {
  for (const auto& [element, type] : types)
    if (type == t) return element;
  return std::nullopt;
}

DType type_of(NrtDType e) {
  for (const auto& [element, type] : types)
    if (element == e) return type;
  return DType::u8;
}

}  // namespace trellis::device
